"""The problem that a tree poses: which of its providers could fill which slot.

Providers of the tree stand in it by offset, sharing providers by `~sharing_number`. So trees that
are built alike and used alike pose the same problem, and the search solves it once for all of them.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple


class Problem(NamedTuple):
    """The providers that meet each requirement, and what the rules need to know of them."""

    # For each requirement, the providers that meet it.
    providers: tuple[tuple[int, ...], ...]
    # For each of `Rules.contested_requirement_indexes`: the room of each of these providers. Room
    # that no combination of amounts can use is left out.
    rooms: tuple[tuple[int, ...], ...] = ()
    # For each of `Rules.unsuffixed_requirement_indexes`: the trait choices that each of these
    # providers meets, as bits.
    trait_choices: tuple[tuple[int, ...], ...] = ()
    # For each provider of the tree the offset of its parent, if the query has same_subtree.
    parents: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many integers it consists of."""
        columns = chain(self.providers, self.rooms, self.trait_choices)
        return sum(map(len, columns)) + len(self.parents)

    @property
    def memory_words(self) -> int:
        """What it takes in memory, in words of eight bytes: a tuple has seven of its own."""
        tuples = len(self.providers) + len(self.rooms) + len(self.trait_choices)
        return 7 * tuples + self.size

    @property
    def has_sharing(self) -> bool:
        """Whether a sharing provider of another tree could fill a slot."""
        return any(provider < 0 for providers in self.providers for provider in providers)

    @property
    def leaves(self) -> set[int]:
        """The providers of the tree that have no child, if parents are known."""
        return set(range(len(self.parents))) - set(self.parents)
