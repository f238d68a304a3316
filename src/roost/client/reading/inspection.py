"""Inspection of trees: their providers, inventories and usages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from roost.client.errors import ResourceProviderRetrievalFailed
from roost.client.placement import Placement
from roost.client.provider_tree import (
    LEVELS_MAX,
    ProviderData,
    ProviderTree,
    providers_too_deep,
)
from roost.client.reading.cloud_reader import THREADS, CloudReader
from roost.client.reading.parallel import in_order
from roost.model.inventory import DEFAULTS
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.owner_names import is_owner_trait, owner_of_trait

INVENTORY_FIELDS = ("total", *DEFAULTS)
"""The fields of an inventory that a declaration can have."""


@dataclass(frozen=True)
class InspectedTree:
    """A tree with its sharing providers, and the usages of all of them.

    The tree has at most `LEVELS_MAX` levels. Callers do not edit it.
    """

    root_uuid: str
    tree: ProviderTree
    usages: Mapping[str, Mapping[str, int]]

    @cached_property
    def sharing(self) -> list[str]:
        """The uuids of the sharing providers, which are in other trees."""
        members = set(self.tree.get_provider_uuids_in_tree(self.root_uuid))
        return [uuid for uuid in self.tree.get_provider_uuids() if uuid not in members]

    def children(self, uuid: str) -> list[ProviderData]:
        """The children of a provider."""
        return self._children.get(uuid, [])

    @cached_property
    def _children(self) -> dict[str | None, list[ProviderData]]:
        """The providers of the tree by the uuid of their parent."""
        found: dict[str | None, list[ProviderData]] = {}
        for uuid in self.tree.get_provider_uuids_in_tree(self.root_uuid):
            provider = self.tree.data(uuid)
            found.setdefault(provider.parent_uuid, []).append(provider)
        return found

    def members(self) -> list[ProviderData]:
        """All providers of the tree, parents first, and then the sharing providers."""
        uuids = [*self.tree.get_provider_uuids_in_tree(self.root_uuid), *self.sharing]
        return [self.tree.data(uuid) for uuid in uuids]

    def as_json(self) -> dict[str, Any]:
        """The tree as a JSON value, with children nested in their parents."""
        root = self._provider_json(self.tree.data(self.root_uuid))
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            below = [self._provider_json(child) for child in self.children(parent["uuid"])]
            parent["children"] += below
            waiting += below
        return {
            **root,
            "sharing": [self._provider_json(self.tree.data(uuid)) for uuid in self.sharing],
        }

    def _provider_json(self, provider: ProviderData) -> dict[str, Any]:
        used = self.usages.get(provider.uuid, {})
        return {
            "name": provider.name,
            "uuid": provider.uuid,
            "generation": provider.generation,
            "inventories": {
                name: {**fields, "used": used.get(name, 0)}
                for name, fields in provider.inventory.items()
            },
            "traits": sorted(provider.traits),
            "owners": owners_of(provider),
            "aggregates": sorted(provider.aggregates),
            "children": [],
        }


def owners_of(provider: ProviderData) -> list[str]:
    """The owners whose mark a provider has: those that created it."""
    found = map(owner_of_trait, provider.traits)
    return sorted({owner for owner in found if owner is not None})


def inspect_tree(placement: Placement, root_uuid: str) -> InspectedTree:
    """Read a tree and its usages."""
    tree, usages = CloudReader(placement).tree_and_usages(root_uuid)
    _demand_usual_tree(tree, root_uuid)
    return InspectedTree(root_uuid, tree, usages)


def declarations_of(placement: Placement, roots: Sequence[str]) -> Iterator[Declaration]:
    """Each of these trees as a declaration, in order."""
    reader = CloudReader(placement, max(1, THREADS // max(1, len(roots))))

    def read(root_uuid: str) -> Declaration:
        tree = reader.tree(root_uuid)
        _demand_usual_tree(tree, root_uuid)
        return declaration_in(tree, root_uuid)

    return in_order(roots, read, THREADS)


def declaration_in(tree: ProviderTree, root_uuid: str) -> Declaration:
    """A tree as a declaration, without the traits of owners.

    A declaration with the trait of an owner could be applied by that owner only. Fields with
    their default value are declared as well: otherwise the declaration would not undo a later
    change of such a field by another writer.
    """
    members = tree.get_provider_uuids_in_tree(root_uuid)
    return Declaration(tuple(_declared(tree, tree.data(uuid)) for uuid in members))


def _demand_usual_tree(tree: ProviderTree, root_uuid: str) -> None:
    """Raise an error if the tree is gone, or has too many levels."""
    if not tree.exists(root_uuid):
        raise ResourceProviderRetrievalFailed(
            f"Provider {root_uuid} was deleted by another writer just now; try again"
        )
    members = tree.get_provider_uuids_in_tree(root_uuid)
    for uuid in providers_too_deep({uuid: tree.data(uuid).parent_uuid for uuid in members}):
        raise ResourceProviderRetrievalFailed(
            f"Provider {tree.data(uuid).name} ({uuid}) is on level {LEVELS_MAX + 1} of its tree, "
            f"and this command takes {LEVELS_MAX}. Give it a parent nearer to the root, or read "
            f"the tree with GET /resource_providers?in_tree={root_uuid}",
            provider_uuid=uuid,
        )


def _declared(tree: ProviderTree, provider: ProviderData) -> DeclaredProvider:
    return DeclaredProvider(
        provider.name,
        tree.data(provider.parent_uuid).name if provider.parent_uuid else None,
        provider.uuid,
        {
            name: {field: fields[field] for field in INVENTORY_FIELDS if field in fields}
            for name, fields in provider.inventory.items()
        },
        frozenset(trait for trait in provider.traits if not is_owner_trait(trait)),
        frozenset(provider.aggregates),
    )
