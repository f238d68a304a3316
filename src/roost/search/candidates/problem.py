"""The problem that a tree poses: which providers meet which requirement.

They are providers of the tree and sharing providers that reach it. Trees that are built alike and
used alike pose the same problem, and the search solves it once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import inf
from typing import NamedTuple, TypeAlias

# A provider as problems and solutions know it: one of the tree by offset, a sharing provider by
# `~sharing_number`.
LocalProvider: TypeAlias = int


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


# Effort: how much work in vain and how much memory a search may spend, so that it ends.
#
# To fit different amounts into different rooms is a packing problem: for some clouds and queries
# the exact answer takes years. Effort counts work instead of time. So the same query on the same
# forest has the same answer on every machine.

# The work in vain that a search may spend: one or two seconds, in units of about half a
# microsecond. Usual queries need none.
UNITS_MAX = 3_000_000
# The memory of the problems of a search and of their dead ends, in words of eight bytes.
WORDS_MAX = 6_000_000


def no_pause() -> None:
    """The pause of a search that takes no turns: it returns at once."""


class Effort:
    """The effort that is left to a search; all its problems share it."""

    __slots__ = ("_units", "_words", "exhausted", "gave_up", "pause")

    def __init__(
        self,
        *,
        bounded: bool = True,
        units: int | None = None,
        pause: Callable[[], None] = no_pause,
    ) -> None:
        usual = UNITS_MAX if units is None else units
        self._units: float = usual if bounded else inf
        self._words = WORDS_MAX
        # Whether no work in vain is left, and whether the search may have missed a candidate.
        self.exhausted = False
        self.gave_up = False
        # The search calls it between two pieces of work, so that searches can take turns.
        self.pause = pause

    def spend(self, units: int) -> None:
        """Count work that may be in vain."""
        self._units -= units
        if self._units < 0:
            self.exhausted = self.gave_up = True
        self.pause()

    def regain(self, units: int) -> None:
        """Take back units, because they led to a solution."""
        self._units += units

    def hold(self, words: int) -> bool:
        """Whether memory for a problem is left; if so, count it as held."""
        if words > self._words:
            return False
        self._words -= words
        return True

    def remember(self, words: int) -> bool:
        """The same for a dead end: at least half of the memory stays for problems."""
        return self._words > WORDS_MAX // 2 and self.hold(words)
