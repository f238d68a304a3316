"""Building blocks from the rows of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from roost.model.capacity import exact_capacity
from roost.search.forest.block import (
    BLOCK_PROVIDERS,
    Block,
    InventoryColumns,
    Outline,
    id_range,
    new_versions,
)
from roost.search.forest.rows import (
    BoolColumn,
    FloatColumn,
    ForestRows,
    IndexColumn,
    IntColumn,
    InventoryRows,
    MembershipRows,
    UsageRows,
)
from roost.search.forest.set_table import EMPTY_SET, Member, TableGrowth
from roost.search.forest.uuid_column import UuidColumn

# No requested amount reaches it, and the sum of two capacities still fits into a column.
CAPACITY_MAX = 2**61


@dataclass(frozen=True, slots=True)
class _ProviderOrder:
    """The order of the providers of all new blocks together, and the place of each id in it."""

    # For each place, the row of the provider.
    rows: IntColumn
    ids: IntColumn
    _sorted_ids: IntColumn
    _places: IntColumn

    @classmethod
    def of(cls, rows: ForestRows) -> _ProviderOrder:
        providers = rows.providers
        not_root = providers.ids != providers.root_ids
        order = np.lexsort((providers.ids, not_root, providers.root_ids))
        ids = providers.ids[order]
        places = np.argsort(ids)
        return cls(order, ids, ids[places], places)

    def find(self, ids: IntColumn) -> tuple[IntColumn, BoolColumn]:
        """The place of each id, and whether a provider with that id exists."""
        if not len(self.ids):
            return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
        found = np.searchsorted(self._sorted_ids, ids).clip(max=len(self.ids) - 1)
        return self._places[found], self._sorted_ids[found] == ids


def build_blocks(
    rows: ForestRows,
    trait_sets: TableGrowth[int],
    aggregate_sets: TableGrowth[str],
    sharing_trait: int | None,
) -> list[Block]:
    """Blocks of all these trees, with numbers for their sets."""
    order = _ProviderOrder.of(rows)
    if not len(order.ids):
        return []
    root_ids = rows.providers.root_ids[order.rows]
    starts = np.flatnonzero(np.concatenate(([True], root_ids[1:] != root_ids[:-1])))
    places, has_parent = order.find(rows.providers.parent_ids[order.rows])
    columns = _OrderedColumns(
        ids=order.ids,
        uuids=[rows.providers.uuids[row] for row in order.rows.tolist()],
        parents=np.where(has_parent, places, -1),
        starts=np.append(starts, len(order.ids)),
        trait_set_numbers=_set_numbers(rows.traits, order, trait_sets, int),
        aggregate_set_numbers=_set_numbers(rows.aggregates, order, aggregate_sets, str),
        inventories=_OrderedInventories.of(rows.inventories, rows.usages, order),
    )
    # By trait set, whether a provider with that set is a sharing provider.
    sharing_mask = trait_sets.table.with_any([] if sharing_trait is None else [sharing_trait])
    return [
        _block(columns, first_tree, end_tree, sharing_mask, aggregate_sets)
        for first_tree, end_tree in _block_bounds(columns.starts)
    ]


@dataclass(frozen=True, slots=True)
class _OrderedInventories:
    """All inventories, in the order of their providers, before they are cut into blocks."""

    class_ids: IntColumn
    # Their indexes are places.
    columns: InventoryColumns

    @classmethod
    def of(
        cls, rows: InventoryRows, usages: UsageRows, order: _ProviderOrder
    ) -> _OrderedInventories:
        places, known = order.find(rows.provider_ids)
        sequence = np.flatnonzero(known)
        sequence = sequence[np.argsort(places[sequence], kind="stable")]
        places = places[sequence]
        class_ids = rows.class_ids[sequence]
        columns = InventoryColumns.of(
            indexes=places.astype(np.int32),
            capacity=capacities_of(rows)[sequence],
            min_unit=rows.min_unit[sequence],
            max_unit=rows.max_unit[sequence],
            step_size=rows.step_size[sequence],
            used=_used(places, class_ids, usages, order),
            reserved=rows.reserved[sequence],
        )
        return cls(class_ids, columns)


@dataclass(frozen=True, slots=True)
class _OrderedColumns:
    """All columns of all providers in their final order, before they are cut into blocks."""

    ids: IntColumn
    uuids: list[bytes]
    parents: IntColumn
    starts: IntColumn
    trait_set_numbers: IndexColumn
    aggregate_set_numbers: IndexColumn
    inventories: _OrderedInventories


def capacities_of(rows: InventoryRows) -> IntColumn:
    """The capacity of each inventory, cut to its integer part as the API shows it."""
    exact: FloatColumn = exact_capacity(rows.total, rows.reserved, rows.allocation_ratio)
    return np.clip(exact, -CAPACITY_MAX, CAPACITY_MAX).astype(np.int64)


def _used(
    places: IntColumn, class_ids: IntColumn, usages: UsageRows, order: _ProviderOrder
) -> IntColumn:
    used = np.zeros(len(places), np.int64)
    if not len(places) or not len(usages.used):
        return used
    usage_places, known = order.find(usages.provider_ids)
    keys = ((usage_places << 32) | usages.class_ids)[known]
    if not len(keys):
        return used
    by_key = np.argsort(keys)
    wanted = (places << 32) | class_ids
    found = by_key[np.searchsorted(keys, wanted, sorter=by_key).clip(max=len(keys) - 1)]
    matches = keys[found] == wanted
    used[matches] = usages.used[known][found[matches]]
    return used


def _set_numbers(
    rows: MembershipRows,
    order: _ProviderOrder,
    sets: TableGrowth[Member],
    parse: Callable[[str], Member],
) -> IndexColumn:
    """For each provider, the number of its set."""
    set_numbers = np.full(len(order.ids), EMPTY_SET, np.int32)
    # Most providers have one of a few texts, so each text is parsed once.
    numbers_by_text: dict[str, int] = {}
    for text in rows.members:
        if text not in numbers_by_text:
            members = frozenset(parse(member) for member in text.split(","))
            numbers_by_text[text] = sets.set_number(members)
    places, known = order.find(rows.provider_ids)
    found = np.fromiter(map(numbers_by_text.__getitem__, rows.members), np.int32, len(rows.members))
    set_numbers[places[known]] = found[known]
    return set_numbers


def _block_bounds(starts: IntColumn) -> Iterator[tuple[int, int]]:
    """The first tree of each block, and the first tree after the block."""
    first = 0
    while first < len(starts) - 1:
        end = int(np.searchsorted(starts, starts[first] + BLOCK_PROVIDERS, side="right")) - 1
        end = max(end, first + 1)
        yield first, end
        first = end


def _block(
    columns: _OrderedColumns,
    first_tree: int,
    end_tree: int,
    sharing_mask: BoolColumn,
    aggregate_sets: TableGrowth[str],
) -> Block:
    tree_count = end_tree - first_tree
    begin, end = int(columns.starts[first_tree]), int(columns.starts[end_tree])
    starts = (columns.starts[first_tree : end_tree + 1] - begin).astype(np.int32)
    parents = columns.parents[begin:end]
    aggregate_set_numbers = columns.aggregate_set_numbers[begin:end].copy()
    tree_numbers = np.repeat(np.arange(tree_count, dtype=np.int32), np.diff(starts))
    trait_set_numbers = columns.trait_set_numbers[begin:end].copy()
    ids = columns.ids[begin:end].copy()
    return Block(
        ids=ids,
        id_range=id_range(ids),
        uuids=UuidColumn(columns.uuids[begin:end]),
        parents=np.where(parents < 0, -1, parents - begin).astype(np.int32),
        tree_numbers=tree_numbers,
        starts=starts,
        trait_set_numbers=trait_set_numbers,
        aggregate_set_numbers=aggregate_set_numbers,
        tree_aggregate_set_numbers=_tree_aggregate_set_numbers(
            aggregate_set_numbers, tree_numbers, tree_count, aggregate_sets
        ),
        outline=Outline.of(trait_set_numbers, aggregate_set_numbers),
        inventories=_inventories_of(columns.inventories, begin, end),
        sharing_indexes=tuple(np.flatnonzero(sharing_mask[trait_set_numbers]).tolist()),
        tree_versions=new_versions(tree_count),
    )


def _tree_aggregate_set_numbers(
    aggregate_set_numbers: IndexColumn,
    tree_numbers: IndexColumn,
    tree_count: int,
    aggregate_sets: TableGrowth[str],
) -> IndexColumn:
    set_numbers = np.full(tree_count, EMPTY_SET, np.int32)
    sets_by_tree: dict[int, set[int]] = {}
    indexes = np.flatnonzero(aggregate_set_numbers != EMPTY_SET)
    for tree_number, set_number in zip(
        tree_numbers[indexes].tolist(), aggregate_set_numbers[indexes].tolist(), strict=True
    ):
        sets_by_tree.setdefault(tree_number, set()).add(set_number)
    for tree_number, sets in sets_by_tree.items():
        set_numbers[tree_number] = (
            next(iter(sets))
            if len(sets) == 1
            else aggregate_sets.set_number(
                frozenset().union(*(aggregate_sets[set_number] for set_number in sets))
            )
        )
    return set_numbers


def _inventories_of(
    inventories: _OrderedInventories, begin: int, end: int
) -> dict[int, InventoryColumns]:
    first_row, end_row = np.searchsorted(inventories.columns.indexes, (begin, end)).tolist()
    class_ids = inventories.class_ids[first_row:end_row]
    found = {}
    for class_id in np.unique(class_ids).tolist():
        columns = inventories.columns.rows(np.flatnonzero(class_ids == class_id) + first_row)
        found[class_id] = replace(columns, indexes=columns.indexes - np.int32(begin))
    return found
