"""The problem that a tree poses: which providers meet which requirement.

They are providers of the tree and sharing providers that reach it. Trees that are built alike and
used alike pose the same problem, and the search solves it once for all of them. A solution picks
a provider for each slot.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from itertools import chain
from typing import NamedTuple, TypeAlias

# A provider as problems and solutions know it: one of the tree by offset, a sharing provider by
# `~sharing_number`.
LocalProvider: TypeAlias = int
# For each slot of the plan, its provider.
Solution: TypeAlias = tuple[LocalProvider, ...]


class Problem(NamedTuple):
    """The providers that meet each requirement, and what the rules need to know of them."""

    # For each requirement, the providers that meet it.
    providers: tuple[tuple[LocalProvider, ...], ...]
    # For each of `Rules.contested_requirement_indexes`: the room of each of these providers. Room
    # that no combination of amounts can use is left out.
    usable_rooms: tuple[tuple[int, ...], ...] = ()
    # For each of `Rules.unsuffixed_requirement_indexes`: the trait choices that each of these
    # providers meets, as bits.
    met_trait_choices: tuple[tuple[int, ...], ...] = ()
    # For each provider of the tree the offset of its parent, if the query has same_subtree.
    parents: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many integers it consists of."""
        columns = chain(self.providers, self.usable_rooms, self.met_trait_choices)
        return sum(map(len, columns)) + len(self.parents)

    @property
    def memory_words(self) -> int:
        """What it takes in memory, in words of eight bytes: a tuple has seven of its own."""
        tuples = len(self.providers) + len(self.usable_rooms) + len(self.met_trait_choices)
        return 7 * tuples + self.size

    @property
    def has_sharing(self) -> bool:
        """Whether a sharing provider of another tree could fill a slot."""
        return any(provider < 0 for providers in self.providers for provider in providers)

    @property
    def leaves(self) -> set[LocalProvider]:
        """The providers of the tree that have no child, if parents are known."""
        return set(range(len(self.parents))) - set(self.parents)


def solution_key(solution: Solution) -> Hashable:
    """A key that is equal for equal solutions only.

    Python hashes -1 and -2 alike, so the tuples of two sharing providers would collide.

    >>> solution_key((0, 3)) == (0, 3), solution_key((~0, ~1)) == solution_key((~1, ~0))
    (True, False)
    """
    return solution if min(solution) >= 0 else array("i", solution).tobytes()
