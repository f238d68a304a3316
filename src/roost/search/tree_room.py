"""The room of all trees at once: every provider of the forest has one number.

Searches ask a block at a time. To move consumers from one tree to any of the rest, all trees stand
side by side here.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from roost.model.capacity import is_allowed, takes_any_unit
from roost.search.columns import IntColumn
from roost.search.forest import Forest
from roost.search.rows import AllocationRows

# A class, and what is asked of it.
Amount: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClassRoom:
    """One resource class, by the number of the provider."""

    # What is left; below zero without an inventory of the class.
    free: array[int]
    # For providers that do not take every amount: smallest unit, largest unit, step.
    units: dict[int, tuple[int, int, int]]
    # By tree: the sum of what is left, and the most of a single provider.
    free_of_tree: IntColumn
    most_of_tree: IntColumn

    def takes(self, provider: int, amount: int, taken: int) -> bool:
        """Whether a provider of which so much is taken has room for one more allocation."""
        if self.free[provider] - taken < amount:
            return False
        units = self.units.get(provider)
        return units is None or is_allowed(amount, *units)


class TreeRoom:
    """The providers of a forest, numbered through, and what is left of each class."""

    def __init__(self, forest: Forest, rows: AllocationRows) -> None:
        self.forest = forest
        sizes = [np.diff(block.starts) for block in forest.blocks]
        joined = np.concatenate([[0], *sizes]).astype(np.int64)
        # Where each tree starts; the last value is the end of the last tree.
        self.starts = np.cumsum(joined)
        self.tree_count = len(joined) - 1
        self.trees: IntColumn = np.repeat(np.arange(self.tree_count), joined[1:])
        self._ids = np.concatenate([[-1], *[block.ids for block in forest.blocks]])[1:]
        self._by_id = np.argsort(self._ids)
        self._firsts = np.cumsum([0, *map(len, forest.blocks)])
        self.providers, self.known = self._numbers(rows.provider_ids)
        self.classes = self._class_rooms(rows)

    def root_uuid(self, tree: int) -> str:
        """The uuid of the root of a tree."""
        provider = int(self.starts[tree])
        block_number = int(np.searchsorted(self._firsts, provider, side="right")) - 1
        block = self.forest.blocks[block_number]
        return block.uuids[provider - int(self._firsts[block_number])].decode()

    def number(self, block_number: int, index: int) -> int:
        """The number of the provider at an index of a block."""
        return int(self._firsts[block_number]) + index

    def _numbers(self, ids: IntColumn) -> tuple[IntColumn, IntColumn]:
        """The number of the provider with each id, and which rows have one."""
        if not len(self._ids):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = np.searchsorted(self._ids, ids, sorter=self._by_id).clip(max=len(self._ids) - 1)
        numbers = self._by_id[found]
        known = np.flatnonzero(self._ids[numbers] == ids)
        return numbers[known], known

    def _class_rooms(self, rows: AllocationRows) -> dict[int, ClassRoom]:
        class_ids, used = rows.class_ids[self.known], rows.used[self.known]
        names = dict.fromkeys(id_ for block in self.forest.blocks for id_ in block.inventories)
        rooms = {}
        for class_id in names:
            its = class_ids == class_id
            taken = np.zeros(len(self._ids), np.int64)
            np.add.at(taken, self.providers[its], used[its])
            rooms[class_id] = self._class_room(class_id, taken)
        return rooms

    def _class_room(self, class_id: int, taken: IntColumn) -> ClassRoom:
        free = np.full(len(self._ids), -1, np.int64)
        units: dict[int, tuple[int, int, int]] = {}
        for first, block in zip(self._firsts.tolist(), self.forest.blocks, strict=False):
            columns = block.inventories.get(class_id)
            if columns is None:
                continue
            numbers = columns.indexes.astype(np.int64) + first
            free[numbers] = columns.capacity - taken[numbers]
            odd = ~takes_any_unit(columns.min_unit, columns.step_size)
            odd |= columns.max_unit < columns.capacity
            for row in np.flatnonzero(odd).tolist():
                units[int(numbers[row])] = (
                    int(columns.min_unit[row]),
                    int(columns.max_unit[row]),
                    int(columns.step_size[row]),
                )
        left = np.maximum(free, 0)
        return ClassRoom(
            array("q", free.tobytes()),
            units,
            np.add.reduceat(left, self.starts[:-1]),
            np.maximum.reduceat(left, self.starts[:-1]),
        )
