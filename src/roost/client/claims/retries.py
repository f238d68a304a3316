"""The tries of a write that meets conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

RETRIES = 3
"""How often a write is tried again after the first try."""


class Retries:
    """The numbers of the tries, from 0; sleeps a random time before each but the first."""

    def __init__(
        self, sleep: Callable[[float], None], random: Callable[[float, float], float]
    ) -> None:
        self._sleep = sleep
        self._random = random

    def __iter__(self) -> Iterator[int]:
        yield 0
        for number in range(1, RETRIES + 1):
            self._sleep(self._random(0, 2 * number))
            yield number
