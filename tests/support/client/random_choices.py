"""Many small decisions out of one random string of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Choices:
    """A sequence of decisions, taken from the bits of a random string.

    One draw for all decisions is much cheaper than a draw for each. A string of zeros decides
    for the least, so examples shrink.
    """

    def __init__(self, drawn: bytes) -> None:
        self._left = int.from_bytes(drawn)

    def yes(self) -> bool:
        return self._below(2) == 1

    def likely(self) -> bool:
        return self._below(4) > 0

    def one(self, choices: Sequence[Choice]) -> Choice:
        """One of the choices; the first if the bits are used up."""
        return choices[self._below(len(choices))]

    def some(self, choices: Iterable[Choice]) -> list[Choice]:
        return [choice for choice in choices if self.yes()]

    def most(self, choices: Iterable[Choice]) -> list[Choice]:
        return [choice for choice in choices if self.likely()]

    def _below(self, bound: int) -> int:
        self._left, number = divmod(self._left, bound)
        return number
