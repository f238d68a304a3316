"""The overlay: a forest with changes that exist in no database.

The forest under it never changes, and neither do its tables of sets. An overlay drafts each tree
that a change touches. It puts all drafts into a new forest when a caller asks for the forest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from roost.search.draft_tree import DraftInventory, DraftProvider, DraftTree, draft_of, rows_of
from roost.search.forest import Forest

# The uuids of added providers follow from it, so that the same changes make the same forest.
_MADE_UP = UUID("7c5bf0f5-3d2b-4a0f-9d4f-0b6a3c1f6e52")


class Terms(NamedTuple):
    """What a capacity is made of, for an inventory whose fields change one by one."""

    total: int
    reserved: int
    allocation_ratio: float


class NotInOverlay(Exception):
    """The overlay has no provider with this uuid: it never was there, or a change removed it."""


class Overlay:
    """A private copy of a forest that changes. For one thread.

    `terms` has those of all inventories of providers whose inventories will change, by the ids of
    provider and class.
    """

    def __init__(self, forest: Forest, terms: Mapping[tuple[int, int], Terms]) -> None:
        self._forest = forest
        self._terms = dict(terms)
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
                self._put(provider, class_id, replace(inventory, reserved=inventory.total))
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
        self._put(provider, class_id, changed)

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
            self._forest = forest.with_changed_usages(changed)

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
        for provider in tree.providers:
            for class_id, inventory in provider.inventories.items():
                terms = self._terms.get((provider.id, class_id))
                if terms is not None:
                    provider.inventories[class_id] = replace(inventory, **terms._asdict())
        self._keep(tree)
        return tree

    def _keep(self, tree: DraftTree) -> None:
        self._drafts[tree.root_id] = tree
        self._drafted |= {provider.uuid: tree for provider in tree.providers}

    def _put(self, provider: DraftProvider, class_id: int, inventory: DraftInventory) -> None:
        provider.inventories[class_id] = inventory
        # The forest keeps no totals and no ratios, so later changes of this inventory need them.
        self._terms[provider.id, class_id] = Terms(
            inventory.total, inventory.reserved, inventory.allocation_ratio
        )

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
        for provider, copy in zip(like.providers, copies, strict=True):
            for class_id in provider.inventories:
                terms = self._terms.get((provider.id, class_id))
                if terms is not None:
                    self._terms[copy.id, class_id] = terms
        self._keep(DraftTree(new_ids[like.root_id], copies))
        return [provider.uuid for provider in copies]
