"""The overlay: a forest with changes that exist in no database.

The forest under it never changes, and neither do its tables of sets. An overlay drafts each tree
that a change touches. It puts all drafts into a new forest when a caller asks for the forest.

A draft has the providers of a tree one by one, so that each of them can be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

import numpy as np

from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import (
    NO_PARENT,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
    column,
)

# The uuids of added providers follow from it, so that the same changes make the same forest.
_MADE_UP = UUID("7c5bf0f5-3d2b-4a0f-9d4f-0b6a3c1f6e52")


class NotInOverlay(Exception):
    """The overlay has no provider with this uuid: it never was there, or a change removed it."""


class Overlay:
    """A private copy of a forest that changes. For one thread."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        # Drafts by the id of their root, and the drafted tree of each provider.
        self._drafts: dict[int, DraftTree] = {}
        self._drafted: dict[str, DraftTree] = {}
        self._gone: set[int] = set()
        self._next_id = 1 + max((block.id_range[1] for block in forest.blocks), default=0)
        self._added = 0

    @property
    def forest(self) -> Forest:
        """The forest with all changes so far."""
        if self._drafts or self._gone:
            self._forest = self._forest.with_trees(rows_of(self._drafts.values()), self._gone)
            self._drafts, self._drafted, self._gone = {}, {}, set()
        return self._forest

    def drain(self, uuid: str) -> int:
        """Reserve everything in the subtree of a provider; how many inventories there are."""
        tree, top = self._find(uuid)
        drained = 0
        for provider in tree.subtree(top):
            for class_id, inventory in provider.inventories.items():
                provider.inventories[class_id] = replace(inventory, reserved=inventory.total)
                drained += 1
        return drained

    def remove(self, uuid: str) -> int:
        """Take the subtree of a provider away; how many providers it has."""
        tree, top = self._find(uuid)
        removed = tree.subtree(top)
        for provider in removed:
            del self._drafted[provider.uuid]
        if top.id == tree.root_id:
            del self._drafts[tree.root_id]
            self._gone.add(tree.root_id)
        else:
            ids = {provider.id for provider in removed}
            tree.providers = [provider for provider in tree.providers if provider.id not in ids]
        return len(removed)

    def inventory(self, uuid: str, class_id: int) -> DraftInventory | None:
        """The inventory of a class; `None` if the provider has none of it."""
        return self._find(uuid)[1].inventories.get(class_id)

    def change_inventory(self, uuid: str, class_id: int, fields: Mapping[str, Any]) -> None:
        """Give an inventory these fields; a new inventory has defaults for the rest."""
        _, provider = self._find(uuid)
        present = provider.inventories.get(class_id)
        changed = DraftInventory(**fields) if present is None else replace(present, **fields)
        provider.inventories[class_id] = changed

    def change_traits(self, uuid: str, added: Iterable[int], removed: Iterable[int]) -> None:
        """Give a provider some traits and take some away."""
        _, provider = self._find(uuid)
        provider.traits = (provider.traits | frozenset(added)) - frozenset(removed)

    def tree_size(self, uuid: str) -> int:
        """How many providers the tree of a provider has."""
        return len(self._find(uuid)[0].providers)

    def add_trees(self, like: str, count: int, *, empty: bool) -> list[list[str]]:
        """Add trees as the tree of a provider; the uuids of each, the root first."""
        tree, _ = self._find(like)
        return [self._add_tree(tree, empty=empty) for _ in range(count)]

    def use(self, amounts: Mapping[str, Mapping[str, int]], sign: int = 1) -> None:
        """Add amounts to the usage, or take them away: by provider and by name of class.

        Providers and inventories that the overlay does not have are ignored.
        """
        forest = self.forest
        changed: dict[int, dict[int, int]] = {}
        for uuid, resources in amounts.items():
            ref = forest.find_provider(uuid)
            if ref is None:
                continue
            block, index = forest.blocks[ref.block_number], ref.provider_index
            for name, amount in resources.items():
                class_id = forest.vocabulary.class_ids.get(name, -1)
                columns = block.inventories.get(class_id)
                row = -1 if columns is None else columns.row_of(index)
                if columns is not None and row >= 0:
                    used = max(0, int(columns.used[row]) + sign * amount)
                    changed.setdefault(int(block.ids[index]), {})[class_id] = used
        if changed:
            self._forest = forest.with_some_usages(changed)

    def _find(self, uuid: str) -> tuple[DraftTree, DraftProvider]:
        """The draft of the tree of a provider, and the provider there."""
        tree = self._drafted.get(uuid) or self._draft(uuid)
        provider = tree.provider(uuid)
        if provider is None:
            raise NotInOverlay(uuid)
        return tree, provider

    def _draft(self, uuid: str) -> DraftTree:
        ref = self._forest.find_tree(uuid)
        if ref is None:
            raise NotInOverlay(uuid)
        block = self._forest.blocks[ref.block_number]
        root_id = int(block.ids[block.starts[ref.tree_number]])
        if root_id in self._gone or root_id in self._drafts:
            # A change has removed the provider, or its whole tree.
            raise NotInOverlay(uuid)
        tree = draft_of(self._forest, ref)
        self._keep(tree)
        return tree

    def _keep(self, tree: DraftTree) -> None:
        self._drafts[tree.root_id] = tree
        self._drafted |= {provider.uuid: tree for provider in tree.providers}

    def _add_tree(self, like: DraftTree, *, empty: bool) -> list[str]:
        self._added += 1
        first_id = self._next_id
        self._next_id += len(like.providers)
        new_ids = {provider.id: first_id + at for at, provider in enumerate(like.providers)}
        copies = [
            provider.copied(
                new_ids[provider.id],
                str(uuid5(_MADE_UP, f"{self._added} {provider.uuid}")),
                new_ids.get(provider.parent_id, provider.parent_id),
                empty=empty,
            )
            for provider in like.providers
        ]
        self._keep(DraftTree(new_ids[like.root_id], copies))
        return [provider.uuid for provider in copies]


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
    name: str
    parent_id: int
    traits: frozenset[int]
    aggregates: frozenset[str]
    inventories: dict[int, DraftInventory]

    def copied(self, id_: int, uuid: str, parent_id: int, *, empty: bool) -> DraftProvider:
        """Another provider that has the same."""
        return DraftProvider(
            id_,
            uuid,
            # No provider of the database has it.
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
    names, inventories = block.names.texts(range(start, end)), _inventories(block, start, end)
    providers = [
        DraftProvider(
            id_,
            block.uuids[start + offset].decode(),
            names[offset],
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
            [provider.name.encode() for provider in providers],
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
            found[int(columns.indexes[row]) - start][class_id] = DraftInventory(
                total=int(columns.total[row]),
                reserved=int(columns.reserved[row]),
                min_unit=int(columns.min_unit[row]),
                max_unit=int(columns.max_unit[row]),
                step_size=int(columns.step_size[row]),
                allocation_ratio=float(columns.allocation_ratio[row]),
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
