"""A draft of a tree: its providers one by one, so that each of them can be changed.

A forest has capacities only. So a draft takes capacity and reserved together for the total, with a
ratio of one: that makes the same capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roost.search.block import Block
from roost.search.columns import column
from roost.search.forest import Forest, TreeRef
from roost.search.rows import (
    NO_PARENT,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
)


@dataclass(frozen=True, slots=True)
class DraftInventory:
    """One inventory of a draft, and its usage."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0


@dataclass(slots=True)
class DraftProvider:
    """One provider of a draft. Inventories are by the id of their class, traits are ids."""

    id: int
    uuid: str
    parent_id: int
    traits: frozenset[int]
    aggregates: frozenset[str]
    inventories: dict[int, DraftInventory]

    def copied(self, id_: int, uuid: str, parent_id: int, *, empty: bool) -> DraftProvider:
        """Another provider that has the same."""
        return DraftProvider(
            id_,
            uuid,
            parent_id,
            self.traits,
            self.aggregates,
            {
                class_id: replace(inventory, used=0) if empty else inventory
                for class_id, inventory in self.inventories.items()
            },
        )


@dataclass(slots=True)
class DraftTree:
    """The providers of a tree, the root first."""

    root_id: int
    providers: list[DraftProvider]

    def provider(self, uuid: str) -> DraftProvider | None:
        """The provider with this uuid; `None` if the tree has none."""
        return next((provider for provider in self.providers if provider.uuid == uuid), None)

    def subtree(self, top: DraftProvider) -> list[DraftProvider]:
        """The provider and all below it."""
        below: dict[int, list[DraftProvider]] = {}
        for provider in self.providers:
            below.setdefault(provider.parent_id, []).append(provider)
        found, waiting = {top.id: top}, [top]
        while waiting:
            # A damaged database may have a circle of parents: follow it once.
            children = [child for child in below.get(waiting.pop().id, ()) if child.id not in found]
            found |= {child.id: child for child in children}
            waiting += children
        return list(found.values())


def draft_of(forest: Forest, ref: TreeRef) -> DraftTree:
    """The draft of a tree of the forest."""
    block = forest.blocks[ref.block_number]
    start, end = block.starts[ref.tree_number : ref.tree_number + 2].tolist()
    ids = block.ids[start:end].tolist()
    inventories = _inventories(block, start, end)
    providers = [
        DraftProvider(
            id_,
            block.uuids[start + offset].decode(),
            NO_PARENT if parent < 0 else ids[parent - start],
            forest.trait_sets[trait_set],
            forest.aggregate_sets[aggregate_set],
            inventories[offset],
        )
        for offset, (id_, parent, trait_set, aggregate_set) in enumerate(
            zip(
                ids,
                block.parents[start:end].tolist(),
                block.trait_set_numbers[start:end].tolist(),
                block.aggregate_set_numbers[start:end].tolist(),
                strict=True,
            )
        )
    ]
    return DraftTree(ids[0], providers)


def rows_of(trees: Iterable[DraftTree]) -> ForestRows:
    """The rows of which a forest builds these trees."""
    placed = [(provider, tree.root_id) for tree in trees for provider in tree.providers]
    providers = [provider for provider, _ in placed]
    inventories = [
        (provider.id, class_id, inventory)
        for provider in providers
        for class_id, inventory in provider.inventories.items()
    ]
    return ForestRows(
        ProviderRows(
            column([provider.id for provider in providers]),
            [provider.uuid.encode() for provider in providers],
            column([provider.parent_id for provider in providers]),
            column([root_id for _, root_id in placed]),
        ),
        _inventory_rows(inventories),
        UsageRows(
            column([provider_id for provider_id, _, _ in inventories]),
            column([class_id for _, class_id, _ in inventories]),
            column([inventory.used for _, _, inventory in inventories]),
        ),
        _memberships([(provider.id, provider.traits) for provider in providers]),
        _memberships([(provider.id, provider.aggregates) for provider in providers]),
    )


def _inventories(block: Block, start: int, end: int) -> list[dict[int, DraftInventory]]:
    """The inventories of the providers from one index of a block to another."""
    found: list[dict[int, DraftInventory]] = [{} for _ in range(end - start)]
    for class_id, columns in block.inventories.items():
        first, last = np.searchsorted(columns.indexes, (start, end)).tolist()
        for row in range(first, last):
            reserved = int(columns.reserved[row])
            found[int(columns.indexes[row]) - start][class_id] = DraftInventory(
                total=int(columns.capacity[row]) + reserved,
                reserved=reserved,
                min_unit=int(columns.min_unit[row]),
                max_unit=int(columns.max_unit[row]),
                step_size=int(columns.step_size[row]),
                used=int(columns.used[row]),
            )
    return found


def _inventory_rows(inventories: Sequence[tuple[int, int, DraftInventory]]) -> InventoryRows:
    values = [inventory for _, _, inventory in inventories]
    return InventoryRows(
        provider_ids=column([provider_id for provider_id, _, _ in inventories]),
        class_ids=column([class_id for _, class_id, _ in inventories]),
        total=column([inventory.total for inventory in values]),
        reserved=column([inventory.reserved for inventory in values]),
        min_unit=column([inventory.min_unit for inventory in values]),
        max_unit=column([inventory.max_unit for inventory in values]),
        step_size=column([inventory.step_size for inventory in values]),
        allocation_ratio=column([inventory.allocation_ratio for inventory in values], np.float64),
    )


def _memberships(sets: Sequence[tuple[int, frozenset[int] | frozenset[str]]]) -> MembershipRows:
    filled = [(id_, ",".join(map(str, members))) for id_, members in sets if members]
    return MembershipRows(column([id_ for id_, _ in filled]), [text for _, text in filled])
