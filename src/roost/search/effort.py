"""How much a search may do in vain and may hold, so that every search ends.

To pack different amounts into different rooms is hard in a way that no counting helps: there
are clouds and queries for which the exact answer would take years. Work is counted instead of
timed, so the same question to the same forest has the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

# Work in vain, in units of about half a microsecond: one or two seconds. What people ask needs
# none.
UNITS_MAX = 3_000_000
# What the problems of a search and the dead ends in them may take, in words of eight bytes.
WORDS_MAX = 6_000_000


def no_pause() -> None:
    """What a search does between two pieces of work if it is alone: nothing."""


class Effort:
    """What is left to a search; all its problems share it."""

    __slots__ = ("_units", "_words", "exhausted", "gave_up", "pause")

    def __init__(self, *, bounded: bool = True, pause: Callable[[], None] = no_pause) -> None:
        self._units: float = UNITS_MAX if bounded else inf
        self._words = WORDS_MAX
        # Whether nothing more may be tried in vain, and whether something was given up.
        self.exhausted = False
        self.gave_up = False
        # Called between pieces of work, so that searches can take turns.
        self.pause = pause

    def spend(self, units: int) -> None:
        """Note work that may be in vain."""
        self._units -= units
        if self._units < 0:
            self.exhausted = self.gave_up = True
        self.pause()

    def regain(self, units: int) -> None:
        """Take back what was spent: it was not in vain."""
        self._units += units

    def hold(self, words: int) -> bool:
        """Whether a problem of this size may be held until it is solved; if so, it is noted."""
        if words > self._words:
            return False
        self._words -= words
        return True

    def remember(self, words: int) -> bool:
        """The same for what is only useful: half of the room is left to the problems."""
        return self._words > WORDS_MAX // 2 and self.hold(words)
