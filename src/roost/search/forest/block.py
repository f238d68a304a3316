"""A block: some whole trees, as columns. A block never changes; a change makes a new block.

A block is small enough to be copied at every write, and large enough that a search needs few array
operations. A search keeps the blocks that it began with, whatever the replica reads meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from roost.model.capacity import is_within, keeps_units, room_of, takes_any_unit
from roost.search.forest.name_column import NameColumn
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn, IntColumn
from roost.search.forest.uuid_column import UuidColumn

# The larger the blocks, the faster a search, and the slower a change. Measured with 70,000
# providers, 7 to a tree, in blocks of 1,024 / 4,096 / 16,384: a search for the trees of one
# aggregate took 13 / 3.9 / 2.0 ms. To take a changed tree out of its block took 0.4 / 1.2 / 5.0 ms.
BLOCK_PROVIDERS = 4096
_VERSIONS = count(1)
NO_INDEXES: IndexColumn = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Outline:
    """The numbers of the trait sets and aggregate sets that providers of a block have, each once.

    By its outline, a search skips a block without a look at its columns. What the block has of a
    resource class at most stands in `InventoryColumns.room_max`.
    """

    trait_set_numbers: IndexColumn
    aggregate_set_numbers: IndexColumn

    @classmethod
    def of(cls, trait_set_numbers: IndexColumn, aggregate_set_numbers: IndexColumn) -> Outline:
        """The outline of providers with these trait sets and aggregate sets."""
        return cls(np.unique(trait_set_numbers), np.unique(aggregate_set_numbers))


@dataclass(frozen=True, slots=True)
class InventoryColumns:
    """The inventories of one resource class in a block, one row each, in the order of indexes."""

    indexes: IndexColumn
    capacity: IntColumn
    min_unit: IntColumn
    max_unit: IntColumn
    step_size: IntColumn
    used: IntColumn
    # What the capacity is made of. No search asks it: overviews and metrics show it.
    total: IntColumn
    reserved: IntColumn
    allocation_ratio: FloatColumn
    # The largest amount of one more allocation; below zero where more than the capacity is used.
    room: IntColumn
    # Whether every inventory takes any unit, as is usual. Then only room decides.
    plain: bool
    # The largest room; zero if there is none.
    room_max: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "room_max", int(self.room.max(initial=0)))

    @classmethod
    def of(cls, *, indexes: IndexColumn, **columns: Any) -> InventoryColumns:
        """These columns, with the room that follows from them."""
        room = _room(columns["capacity"], columns["used"], columns["max_unit"])
        return cls(indexes=indexes, **columns, room=room, plain=_is_plain(columns))

    def fits(self, amount: int) -> BoolColumn:
        """For each row, whether one more allocation of this amount fits."""
        enough: BoolColumn = is_within(amount, self.room)
        if not self.plain:
            enough &= keeps_units(amount, self.min_unit, self.step_size)
        return enough

    def allows(self, amount: int) -> BoolColumn:
        """For each row, whether a single allocation may have this amount, whatever is used."""
        allowed: BoolColumn = is_within(amount, self.max_unit)
        if not self.plain:
            allowed &= keeps_units(amount, self.min_unit, self.step_size)
        return allowed

    def row_of(self, index: int) -> int:
        """The row of the provider at this index; -1 if it has no inventory of the class."""
        row = int(np.searchsorted(self.indexes, index))
        return row if row < len(self.indexes) and self.indexes[row] == index else -1

    def with_capacity(self, capacity: IntColumn) -> InventoryColumns:
        """The same inventories with another capacity."""
        room = _room(capacity, self.used, self.max_unit)
        return replace(self, capacity=capacity, room=room)

    def with_used(self, used: IntColumn) -> InventoryColumns:
        """The same inventories with another usage."""
        return replace(self, used=used, room=_room(self.capacity, used, self.max_unit))

    def with_used_at(self, used_at: Mapping[int, int]) -> InventoryColumns:
        """The same inventories with another usage at some indexes."""
        indexes = np.fromiter(used_at, np.int32, len(used_at))
        rows = np.minimum(self.indexes.searchsorted(indexes), len(self.indexes) - 1)
        present = self.indexes[rows] == indexes
        rows = rows[present]
        used, room = self.used.copy(), self.room.copy()
        used[rows] = np.fromiter(used_at.values(), np.int64, len(used_at))[present]
        room[rows] = _room(self.capacity[rows], used[rows], self.max_unit[rows])
        return replace(self, used=used, room=room)

    def at(self, indexes: npt.NDArray[np.integer]) -> InventoryColumns:
        """Only the rows of the providers at these indexes."""
        rows = np.minimum(self.indexes.searchsorted(indexes), len(self.indexes) - 1)
        return self.rows(rows[self.indexes[rows] == indexes])

    def rows(self, rows: npt.NDArray[np.integer] | BoolColumn) -> InventoryColumns:
        """Only these rows."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _INVENTORY_COLUMNS}
        return replace(self, **columns, plain=self.plain or _is_plain(columns))

    def selected(self, rows: BoolColumn, new_indexes: IndexColumn) -> InventoryColumns:
        """Only these rows; `new_indexes` has the new index of each provider by its old one."""
        found = self.rows(rows)
        return replace(found, indexes=new_indexes[found.indexes])

    def followed_by(self, other: InventoryColumns, shift: int) -> InventoryColumns:
        """These rows, then those of another block, whose indexes grow by `shift`."""
        moved = replace(other, indexes=other.indexes + np.int32(shift))
        columns: dict[str, Any] = {
            name: np.concatenate((getattr(self, name), getattr(moved, name)))
            for name in _INVENTORY_COLUMNS
        }
        return replace(self, **columns, plain=self.plain and other.plain)


_INVENTORY_COLUMNS = (
    "indexes",
    "capacity",
    "min_unit",
    "max_unit",
    "step_size",
    "used",
    "total",
    "reserved",
    "allocation_ratio",
    "room",
)


def _is_plain(columns: Mapping[str, IntColumn]) -> bool:
    return bool(takes_any_unit(columns["min_unit"], columns["step_size"]).all())


@dataclass(frozen=True, slots=True)
class Block:
    """Whole trees in a row; the root is the first provider of its tree."""

    ids: IntColumn
    # The lowest and the highest of the ids.
    id_range: tuple[int, int]
    uuids: UuidColumn
    names: NameColumn
    # The index of the parent; -1 for a root.
    parents: IndexColumn
    # For each provider, the number of its tree.
    tree_numbers: IndexColumn
    # The index at which each tree starts; the last value is the end of the last tree.
    starts: IndexColumn
    # For each provider, the number of its trait set and of its aggregate set.
    trait_set_numbers: IndexColumn
    aggregate_set_numbers: IndexColumn
    # For each tree, the number of the set of all aggregates of its providers.
    tree_aggregate_set_numbers: IndexColumn
    outline: Outline
    # By resource class.
    inventories: Mapping[int, InventoryColumns]
    # The indexes of sharing providers.
    sharing_indexes: tuple[int, ...]
    # The version of each tree. A tree gets a new one when it is built, when its usage changes and
    # when the name of a resource class changes. A process gives no version out twice.
    tree_versions: IntColumn
    # Every block has its own token, by which a cache knows what it has worked out for the block.
    # The cache does not keep the block alive.
    token: object = field(default_factory=object, init=False, compare=False)

    def __len__(self) -> int:
        return len(self.uuids)

    @property
    def tree_count(self) -> int:
        """How many trees there are."""
        return len(self.starts) - 1

    @property
    def roots(self) -> IndexColumn:
        """The index of each tree's root."""
        return self.starts[:-1]

    def root_uuid(self, tree_number: int) -> str:
        """The uuid of a tree's root."""
        return self.uuids[int(self.starts[tree_number])].decode()

    def are_among(self, indexes: Sequence[int], found: IndexColumn) -> BoolColumn:
        """For each of a few indexes, whether it is among those that were found."""
        # A set of all that were found takes six times as long.
        mask = np.zeros(len(self), np.bool_)
        mask[found] = True
        return mask[indexes]

    def indexes_of(self, ids: Sequence[int]) -> IndexColumn:
        """The indexes of those providers of the block that have one of a few sorted ids."""
        low, high = self.id_range
        near = ids[bisect_left(ids, low) : bisect_right(ids, high)]
        if not near:
            return NO_INDEXES
        # One comparison for each id is four times as fast as one numpy call for all ids.
        found = [np.flatnonzero(self.ids == id_) for id_ in near]
        return np.concatenate(found).astype(np.int32)

    def indexes_in(self, wanted: BoolColumn) -> IndexColumn:
        """The indexes of providers that are wanted, by id; the last value stands for higher ids."""
        found = wanted[np.minimum(self.ids, len(wanted) - 1)]
        return np.flatnonzero(found).astype(np.int32)

    def subtree(self, top: int) -> IndexColumn:
        """The indexes of a provider and of all providers below it, ascending."""
        tree_number = self.tree_numbers[top]
        start, end = int(self.starts[tree_number]), int(self.starts[tree_number + 1])
        # A root has no parent. It looks at itself instead, which adds nothing.
        offsets = np.arange(end - start)
        parents = np.where(self.parents[start:end] < 0, offsets, self.parents[start:end] - start)
        below = offsets == top - start
        count = 0
        while count < (grown := int(np.count_nonzero(below))):
            count = grown
            below |= below[parents]
        return (np.flatnonzero(below) + start).astype(np.int32)

    def trees_with_roots_at(self, indexes: IndexColumn) -> BoolColumn:
        """For each tree, whether its root has one of these indexes."""
        tree_numbers = self.tree_numbers[indexes]
        found = np.zeros(self.tree_count, np.bool_)
        found[tree_numbers[self.starts[tree_numbers] == indexes]] = True
        return found

    def with_all_usages(self, indexes: IndexColumn, used: Mapping[int, Mapping[int, int]]) -> Block:
        """The same trees, with all usages of the providers at these indexes.

        `used` has the amounts by class and provider id. It may have other providers, too.
        """
        inventories = {
            class_id: self._with_usage(inventory, indexes, used.get(class_id, {}))
            for class_id, inventory in self.inventories.items()
        }
        return self._with_inventories(indexes, inventories)

    def with_some_usages(
        self, indexes: IndexColumn, changed: Mapping[int, Mapping[int, int]]
    ) -> Block:
        """The same trees, with some usages of the providers at these indexes, class by class.

        `changed` has the amounts by provider id and class. It may have other providers, too.
        """
        by_class: dict[int, dict[int, int]] = {}
        for index, id_ in zip(indexes.tolist(), self.ids[indexes].tolist(), strict=True):
            for class_id, used in changed[id_].items():
                by_class.setdefault(class_id, {})[index] = used
        inventories = dict(self.inventories)
        for class_id, used_at in by_class.items():
            if class_id in inventories:
                inventories[class_id] = inventories[class_id].with_used_at(used_at)
        return self._with_inventories(indexes, inventories)

    def _with_inventories(
        self, indexes: IndexColumn, inventories: Mapping[int, InventoryColumns]
    ) -> Block:
        """The same trees with these inventories, new at these indexes."""
        tree_numbers = list(set(self.tree_numbers[indexes].tolist()))
        tree_versions = self.tree_versions.copy()
        tree_versions[tree_numbers] = new_versions(len(tree_numbers))
        return replace(self, inventories=inventories, tree_versions=tree_versions)

    def _with_usage(
        self, inventory: InventoryColumns, indexes: IndexColumn, used_of: Mapping[int, int]
    ) -> InventoryColumns:
        rows = np.minimum(inventory.indexes.searchsorted(indexes), len(inventory.indexes) - 1)
        rows = rows[inventory.indexes[rows] == indexes]
        if not len(rows):
            return inventory
        used = inventory.used.copy()
        used[rows] = [used_of.get(id_, 0) for id_ in self.ids[inventory.indexes[rows]].tolist()]
        return inventory.with_used(used)

    def only_at(self, indexes: npt.NDArray[np.integer]) -> Block:
        """The same trees, of which only the providers at these indexes have inventories."""
        inventories = {class_id: its.at(indexes) for class_id, its in self.inventories.items()}
        return replace(self, inventories=inventories)

    def without(self, dropped: BoolColumn) -> Block:
        """The block without these trees."""
        selected = ~dropped[self.tree_numbers]
        new_indexes = (np.cumsum(selected) - 1).astype(np.int32)
        new_tree_numbers = (np.cumsum(~dropped) - 1).astype(np.int32)
        sizes = np.diff(self.starts)[~dropped]
        parents = self.parents[selected]
        inventories = {}
        for class_id, inventory in self.inventories.items():
            rows = selected[inventory.indexes]
            if rows.any():
                inventories[class_id] = inventory.selected(rows, new_indexes)
        ids = self.ids[selected]
        trait_set_numbers = self.trait_set_numbers[selected]
        aggregate_set_numbers = self.aggregate_set_numbers[selected]
        return Block(
            ids=ids,
            id_range=id_range(ids),
            uuids=self.uuids.selected(np.flatnonzero(selected)),
            names=self.names.selected(selected),
            parents=np.where(parents < 0, np.int32(-1), new_indexes[parents]),
            tree_numbers=new_tree_numbers[self.tree_numbers[selected]],
            starts=_starts(sizes),
            trait_set_numbers=trait_set_numbers,
            aggregate_set_numbers=aggregate_set_numbers,
            tree_aggregate_set_numbers=self.tree_aggregate_set_numbers[~dropped],
            outline=Outline.of(trait_set_numbers, aggregate_set_numbers),
            inventories=inventories,
            sharing_indexes=tuple(
                int(new_indexes[index]) for index in self.sharing_indexes if selected[index]
            ),
            tree_versions=self.tree_versions[~dropped],
        )

    def followed_by(self, other: Block) -> Block:
        """These trees, then those of another block."""
        shift = len(self)
        inventories = dict(self.inventories)
        for class_id, inventory in other.inventories.items():
            mine = inventories.get(class_id)
            inventories[class_id] = (
                replace(inventory, indexes=inventory.indexes + np.int32(shift))
                if mine is None
                else mine.followed_by(inventory, shift)
            )
        parents = np.where(other.parents < 0, other.parents, other.parents + np.int32(shift))
        trait_set_numbers = np.concatenate((self.trait_set_numbers, other.trait_set_numbers))
        aggregate_set_numbers = np.concatenate(
            (self.aggregate_set_numbers, other.aggregate_set_numbers)
        )
        return Block(
            ids=np.concatenate((self.ids, other.ids)),
            id_range=(
                min(self.id_range[0], other.id_range[0]),
                max(self.id_range[1], other.id_range[1]),
            ),
            uuids=self.uuids.followed_by(other.uuids),
            names=self.names.followed_by(other.names),
            parents=np.concatenate((self.parents, parents)),
            tree_numbers=np.concatenate(
                (self.tree_numbers, other.tree_numbers + np.int32(self.tree_count))
            ),
            starts=np.concatenate((self.starts[:-1], other.starts + np.int32(shift))),
            trait_set_numbers=trait_set_numbers,
            aggregate_set_numbers=aggregate_set_numbers,
            tree_aggregate_set_numbers=np.concatenate(
                (self.tree_aggregate_set_numbers, other.tree_aggregate_set_numbers)
            ),
            outline=Outline.of(trait_set_numbers, aggregate_set_numbers),
            inventories=inventories,
            sharing_indexes=(
                *self.sharing_indexes,
                *(index + shift for index in other.sharing_indexes),
            ),
            tree_versions=np.concatenate((self.tree_versions, other.tree_versions)),
        )


def new_versions(tree_count: int) -> IntColumn:
    """New versions for this many trees. No two calls return the same version."""
    return np.fromiter(islice(_VERSIONS, tree_count), np.int64, tree_count)


def _room(capacity: IntColumn, used: IntColumn, max_unit: IntColumn) -> IntColumn:
    room: IntColumn = room_of(capacity, used, max_unit, np.minimum)
    return room


def id_range(ids: IntColumn) -> tuple[int, int]:
    """The lowest and the highest of some ids."""
    return int(ids.min()), int(ids.max())


def _starts(sizes: npt.NDArray[np.integer]) -> IndexColumn:
    """The index at which each tree starts, from the sizes of the trees."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
