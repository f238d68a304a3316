"""Building blocks from rows of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from roost.search.block import BLOCK_PROVIDERS, Block, IndexColumn, Stock, id_range
from roost.search.rows import (
    BoolColumn,
    ForestRows,
    IntColumn,
    InventoryRows,
    MembershipRows,
    UsageRows,
)
from roost.search.set_table import EMPTY_SET, Member, SetTable
from roost.search.uuid_column import UuidColumn

# No amount that is asked for reaches this, and sums of two capacities still fit a column.
CAPACITY_MAX = 2**61

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Order:
    """The order in which providers will stand, and where each id is found in it."""

    # The row of the provider that stands at each place.
    rows: IntColumn
    ids: IntColumn
    _sorted_ids: IntColumn
    _places: IntColumn

    @classmethod
    def of(cls, rows: ForestRows) -> _Order:
        providers = rows.providers
        not_root = providers.ids != providers.root_ids
        order = np.lexsort((providers.ids, not_root, providers.root_ids))
        ids = providers.ids[order]
        places = np.argsort(ids)
        return cls(order, ids, ids[places], places)

    def places(self, ids: IntColumn) -> tuple[IntColumn, BoolColumn]:
        """The place of each id, and whether there is a provider with that id at all."""
        if not len(self.ids):
            return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
        found = np.searchsorted(self._sorted_ids, ids).clip(max=len(self.ids) - 1)
        return self._places[found], self._sorted_ids[found] == ids


def build_blocks(
    rows: ForestRows,
    trait_sets: SetTable[int],
    aggregate_sets: SetTable[str],
    sharing_trait: int | None,
) -> list[Block]:
    """Blocks of all these trees. New sets of traits and aggregates get numbers in the tables."""
    order = _Order.of(rows)
    if not len(order.ids):
        return []
    root_ids = rows.providers.root_ids[order.rows]
    starts = np.flatnonzero(np.concatenate(([True], root_ids[1:] != root_ids[:-1])))
    places, has_parent = order.places(rows.providers.parent_ids[order.rows])
    columns = _Columns(
        ids=order.ids,
        uuids=[rows.providers.uuids[row] for row in order.rows.tolist()],
        parents=np.where(has_parent, places, -1),
        starts=np.append(starts, len(order.ids)),
        traits=_numbers(rows.traits, order, trait_sets, int),
        aggregates=_numbers(rows.aggregates, order, aggregate_sets, str),
        inventories=_Inventories.of(rows.inventories, rows.usages, order),
    )
    shares = (
        trait_sets.with_any([sharing_trait])
        if sharing_trait is not None
        else np.zeros(len(trait_sets), np.bool_)
    )
    return [
        _block(columns, first, last, shares, aggregate_sets)
        for first, last in _cuts(columns.starts)
    ]


@dataclass(frozen=True, slots=True)
class _Inventories:
    """All inventories, in the order of their providers."""

    places: IntColumn
    class_ids: IntColumn
    capacity: IntColumn
    min_unit: IntColumn
    max_unit: IntColumn
    step_size: IntColumn
    used: IntColumn

    @classmethod
    def of(cls, rows: InventoryRows, usages: UsageRows, order: _Order) -> _Inventories:
        places, known = order.places(rows.provider_ids)
        sequence = np.flatnonzero(known)
        sequence = sequence[np.argsort(places[sequence], kind="stable")]
        places = places[sequence]
        class_ids = rows.class_ids[sequence]
        return cls(
            places,
            class_ids,
            capacity_of(rows)[sequence],
            rows.min_unit[sequence],
            rows.max_unit[sequence],
            rows.step_size[sequence],
            _used(places, class_ids, usages, order),
        )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Everything in its final order, before it is cut into blocks."""

    ids: IntColumn
    uuids: list[bytes]
    parents: IntColumn
    starts: IntColumn
    traits: IndexColumn
    aggregates: IndexColumn
    inventories: _Inventories


def capacity_of(rows: InventoryRows) -> IntColumn:
    """How much each inventory can hand out: cut to a whole number, as the API shows it."""
    real = (rows.total - rows.reserved) * rows.allocation_ratio
    return np.clip(real, -CAPACITY_MAX, CAPACITY_MAX).astype(np.int64)


def _used(places: IntColumn, class_ids: IntColumn, usages: UsageRows, order: _Order) -> IntColumn:
    used = np.zeros(len(places), np.int64)
    if not len(places) or not len(usages.used):
        return used
    usage_places, known = order.places(usages.provider_ids)
    keys = ((usage_places << 32) | usages.class_ids)[known]
    if not len(keys):
        return used
    by_key = np.argsort(keys)
    wanted = (places << 32) | class_ids
    found = by_key[np.searchsorted(keys, wanted, sorter=by_key).clip(max=len(keys) - 1)]
    matches = keys[found] == wanted
    used[matches] = usages.used[known][found[matches]]
    return used


def _numbers(
    rows: MembershipRows, order: _Order, table: SetTable[Member], parse: Callable[[str], Member]
) -> IndexColumn:
    """The number of each provider's set."""
    numbers = np.full(len(order.ids), EMPTY_SET, np.int32)
    # Most providers spell one of a few sets in the same way.
    by_spelling: dict[str, int] = {}
    for spelling in rows.members:
        if spelling not in by_spelling:
            members = frozenset(parse(member) for member in spelling.split(","))
            by_spelling[spelling] = table.number(members)
    places, known = order.places(rows.provider_ids)
    found = np.fromiter(map(by_spelling.__getitem__, rows.members), np.int32, len(rows.members))
    numbers[places[known]] = found[known]
    return numbers


def _cuts(starts: IntColumn) -> Iterator[tuple[int, int]]:
    """The first and the last tree (which is not in it any more) of each block."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + BLOCK_PROVIDERS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _block(
    columns: _Columns, first: int, last: int, shares: BoolColumn, aggregate_sets: SetTable[str]
) -> Block:
    begin, end = int(columns.starts[first]), int(columns.starts[last])
    starts = (columns.starts[first : last + 1] - begin).astype(np.int32)
    parents = columns.parents[begin:end]
    aggregates = columns.aggregates[begin:end].copy()
    trees = np.repeat(np.arange(last - first, dtype=np.int32), np.diff(starts))
    traits = columns.traits[begin:end].copy()
    ids = columns.ids[begin:end].copy()
    return Block(
        ids=ids,
        id_range=id_range(ids),
        uuids=UuidColumn(columns.uuids[begin:end]),
        parents=np.where(parents < 0, -1, parents - begin).astype(np.int32),
        trees=trees,
        starts=starts,
        traits=traits,
        aggregates=aggregates,
        tree_aggregates=_tree_aggregates(aggregates, trees, last - first, aggregate_sets),
        stocks=_stocks(columns.inventories, begin, end),
        sharing=tuple(np.flatnonzero(shares[traits]).tolist()),
        fragments=[None] * (last - first),
    )


def _tree_aggregates(
    aggregates: IndexColumn, trees: IndexColumn, tree_count: int, table: SetTable[str]
) -> IndexColumn:
    numbers = np.full(tree_count, EMPTY_SET, np.int32)
    together: dict[int, set[int]] = {}
    members = np.flatnonzero(aggregates != EMPTY_SET)
    for tree, number in zip(trees[members].tolist(), aggregates[members].tolist(), strict=True):
        together.setdefault(tree, set()).add(number)
    for tree, sets in together.items():
        numbers[tree] = (
            next(iter(sets))
            if len(sets) == 1
            else table.number(frozenset().union(*(table[number] for number in sets)))
        )
    return numbers


def _stocks(inventories: _Inventories, begin: int, end: int) -> dict[int, Stock]:
    first, last = np.searchsorted(inventories.places, (begin, end)).tolist()
    class_ids = inventories.class_ids[first:last]
    stocks = {}
    for class_id in np.unique(class_ids).tolist():
        rows = np.flatnonzero(class_ids == class_id) + first
        stocks[class_id] = Stock.of(
            places=(inventories.places[rows] - begin).astype(np.int32),
            capacity=inventories.capacity[rows],
            min_unit=inventories.min_unit[rows],
            max_unit=inventories.max_unit[rows],
            step_size=inventories.step_size[rows],
            used=inventories.used[rows],
        )
    return stocks
