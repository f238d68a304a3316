"""The room of all trees at once: every provider of the forest has one number.

Searches ask a block at a time. To move consumers from one tree to any of the rest, all trees stand
side by side here.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from roost.model.capacity import is_allowed, keeps_units
from roost.search.forest.forest import Forest
from roost.search.forest.rows import AllocationRows, BoolColumn, IntColumn

# Sums count no more than this of one provider, so that those of a million providers do not
# overflow. No tree holds as much.
FREE_MAX = 2**43

# A class, and what is asked of it.
Amount: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class UnitColumns:
    """The units of one resource class, by the number of the provider."""

    min_unit: array[int]
    max_unit: array[int]
    step_size: array[int]

    def allow(self, provider: int, amount: int) -> bool:
        """Whether a provider takes a single allocation of this amount."""
        return is_allowed(
            amount, self.min_unit[provider], self.max_unit[provider], self.step_size[provider]
        )

    def allowing(self, amount: int) -> BoolColumn:
        """The same for all providers at once."""
        allowed: BoolColumn = keeps_units(
            amount, column_of(self.min_unit), column_of(self.step_size)
        )
        return allowed & (column_of(self.max_unit) >= amount)


@dataclass(frozen=True, slots=True)
class ClassRoom:
    """One resource class, by the number of the provider."""

    # What is left; below zero without an inventory of the class.
    free: array[int]
    # `None` if every provider takes every amount that is left.
    units: UnitColumns | None
    # By tree: the sum of what is left, and the most of a single provider.
    free_of_tree: IntColumn
    most_of_tree: IntColumn

    def takes(self, provider: int, amount: int, taken: int) -> bool:
        """Whether a provider of which so much is taken has room for one more allocation."""
        if self.free[provider] - taken < amount:
            return False
        return self.units is None or self.units.allow(provider, amount)

    def taking(self, amount: int) -> BoolColumn:
        """The same for all providers at once, of which nothing is taken."""
        fits: BoolColumn = column_of(self.free) >= amount
        return fits if self.units is None else fits & self.units.allowing(amount)

    @property
    def columns(self) -> list[IntColumn]:
        """All that tells one provider from another."""
        units = self.units
        own = [] if units is None else [units.min_unit, units.max_unit, units.step_size]
        return [column_of(values) for values in (self.free, *own)]


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
        min_unit, max_unit, step_size = (np.ones(len(self._ids), np.int64) for _ in range(3))
        takes_all = True
        for first, block in zip(self._firsts.tolist(), self.forest.blocks, strict=False):
            columns = block.inventories.get(class_id)
            if columns is None:
                continue
            numbers = columns.indexes.astype(np.int64) + first
            free[numbers] = columns.capacity - taken[numbers]
            min_unit[numbers] = columns.min_unit
            max_unit[numbers] = columns.max_unit
            step_size[numbers] = columns.step_size
            takes_all &= columns.plain and bool((columns.max_unit >= columns.capacity).all())
        units = UnitColumns(*map(_packed, (min_unit, max_unit, step_size)))
        left = free.clip(0, FREE_MAX)
        return ClassRoom(
            _packed(free),
            None if takes_all else units,
            np.add.reduceat(left, self.starts[:-1]),
            np.maximum.reduceat(left, self.starts[:-1]),
        )


def column_of(values: array[int]) -> IntColumn:
    """The same numbers as a column, without a copy."""
    return np.frombuffer(values, np.int64)


def _packed(values: IntColumn) -> array[int]:
    """The same numbers as an array, in which a look at one of them is ten times as fast."""
    return array("q", values.tobytes())
