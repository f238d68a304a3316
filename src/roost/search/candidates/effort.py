"""Effort: how much work in vain and how much memory a search may spend, so that it ends.

To fit different amounts into different rooms is a packing problem: for some clouds and queries
the exact answer takes years. Effort counts work instead of time. So the same query on the same
forest has the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

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
