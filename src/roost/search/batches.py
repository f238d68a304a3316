"""Candidates as a search finds them, and many of them packed."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

# For each part of the query the provider that serves it.
Solution: TypeAlias = tuple[int, ...]

# Packing costs about a microsecond a batch, so it is for answers that are large anyway.
_PACKED_MIN = 4096


def solution_key(solution: Solution) -> Hashable:
    """What is equal for equal solutions, and nothing else.

    Python hashes -1 and -2 alike, so tuples of two sharing providers would all collide.

    >>> solution_key((0, 3)) == (0, 3), solution_key((~0, ~1)) == solution_key((~1, ~0))
    (True, False)
    """
    return solution if min(solution) >= 0 else array("i", solution).tobytes()


class Batch(NamedTuple):
    """The same answer for some trees of a block: for each part of the query its provider.

    Members of a tree by their place in it, lenders by `~number`. A candidate for each tree.
    """

    block: int
    trees: list[int]
    solution: Solution


class Batches:
    """Batches to be taken once, in their order; many of them are packed.

    A batch of three parts for one tree takes 24 bytes packed, ten times as much otherwise. What
    is taken is no longer held.
    """

    def __init__(self) -> None:
        self._packed: deque[array[int]] = deque()
        self._recent: list[Batch] = []
        # How many candidates there are.
        self.count = 0

    def append(self, batch: Batch) -> None:
        """Add a batch at the end."""
        self.count += len(batch.trees)
        self._recent.append(batch)
        if len(self._recent) >= _PACKED_MIN:
            self._packed.append(_packed(self._recent))
            self._recent = []

    def __iter__(self) -> Iterator[Batch]:
        while self._packed:
            yield from _unpacked(self._packed.popleft())
        recent, self._recent = self._recent, []
        yield from recent


def _packed(batches: list[Batch]) -> array[int]:
    """For each batch its block, the lengths of what follows, trees, solution."""
    numbers = array("i")
    for block, trees, solution in batches:
        numbers.extend((block, len(trees), len(solution)))
        numbers.extend(trees)
        numbers.extend(solution)
    return numbers


def _unpacked(numbers: array[int]) -> Iterator[Batch]:
    place, end = 0, len(numbers)
    while place < end:
        block, tree_count, part_count = numbers[place : place + 3]
        middle = place + 3 + tree_count
        trees = numbers[place + 3 : middle].tolist()
        place = middle + part_count
        yield Batch(block, trees, tuple(numbers[middle:place]))
