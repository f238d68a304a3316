"""Batches: the candidates that a search finds, in a form that takes little memory."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

from roost.search.candidates.problem import LocalProvider

# For each slot of the plan, its provider.
Solution: TypeAlias = tuple[LocalProvider, ...]

# Packing costs about a microsecond for each batch, so only large answers are packed.
_PACKED_MIN = 4096


def solution_key(solution: Solution) -> Hashable:
    """A key that is equal for equal solutions only.

    Python hashes -1 and -2 alike, so the tuples of two sharing providers would collide.

    >>> solution_key((0, 3)) == (0, 3), solution_key((~0, ~1)) == solution_key((~1, ~0))
    (True, False)
    """
    return solution if min(solution) >= 0 else array("i", solution).tobytes()


def selection(tree_numbers: list[int]) -> slice | list[int]:
    """Ascending tree numbers as an index of columns.

    For neighbours it is a slice, which numpy need not convert.

    >>> selection([4, 5, 6]), selection([4, 6])
    (slice(4, 7, None), [4, 6])
    """
    first, last = tree_numbers[0], tree_numbers[-1]
    return slice(first, last + 1) if last - first + 1 == len(tree_numbers) else tree_numbers


class Batch(NamedTuple):
    """One solution for some trees of a block: a candidate for each of these trees."""

    block_number: int
    # Ascending.
    tree_numbers: list[int]
    solution: Solution


class Batches:
    """Batches in their order. A caller iterates once, and what it has taken is no longer held.

    A batch of three slots for one tree takes 24 bytes packed, and ten times as much otherwise.
    """

    def __init__(self) -> None:
        self._packed: deque[array[int]] = deque()
        self._recent: list[Batch] = []
        # The count of candidates, not of batches.
        self.count = 0

    def append(self, batch: Batch) -> None:
        """Add a batch at the end."""
        self.count += len(batch.tree_numbers)
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
    """For each batch: block number, count of trees, count of slots, tree numbers, solution."""
    integers = array("i")
    for block_number, tree_numbers, solution in batches:
        integers.extend((block_number, len(tree_numbers), len(solution)))
        integers.extend(tree_numbers)
        integers.extend(solution)
    return integers


def _unpacked(integers: array[int]) -> Iterator[Batch]:
    position, end = 0, len(integers)
    while position < end:
        block_number, tree_count, slot_count = integers[position : position + 3]
        middle = position + 3 + tree_count
        tree_numbers = integers[position + 3 : middle].tolist()
        position = middle + slot_count
        yield Batch(block_number, tree_numbers, tuple(integers[middle:position]))
