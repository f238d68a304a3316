"""Looking at trees: what there is, and how much of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import ResourceProviderRetrievalFailed
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.client.reporting.placement import Placement, ProviderBody
from roost.client.reporting.reading import TreeReader
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.inventory import DEFAULTS

CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class InspectedTree:
    """A tree with its sharing providers, and how much of everything is used."""

    root_uuid: str
    tree: ProviderTree
    usages: Mapping[str, Mapping[str, int]]

    @property
    def sharing(self) -> list[str]:
        """The uuids of the providers that are not in the tree but share with it."""
        members = set(self.tree.get_provider_uuids_in_tree(self.root_uuid))
        return [uuid for uuid in self.tree.get_provider_uuids() if uuid not in members]

    def children(self, uuid: str) -> list[ProviderData]:
        """The providers right below one."""
        below = self.tree.get_provider_uuids(uuid)[1:]
        found = (self.tree.data(child) for child in below)
        return [child for child in found if child.parent_uuid == uuid]

    def as_json(self) -> dict[str, Any]:
        """The same for programs: nested as it is drawn."""
        return {
            **self._provider_json(self.tree.data(self.root_uuid)),
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
            "aggregates": sorted(provider.aggregates),
            "children": [self._provider_json(child) for child in self.children(provider.uuid)],
        }


def find_provider(placement: Placement, name_or_uuid: str) -> ProviderBody:
    """The provider of this name or uuid."""
    if is_uuid(name_or_uuid):
        provider = placement.provider(canonical_uuid(name_or_uuid))
        if provider is not None:
            return provider
    for named in placement.providers_named(name_or_uuid):
        return named
    raise ResourceProviderRetrievalFailed(
        f"No provider has the name or uuid {name_or_uuid}; `roost tree show` lists the trees"
    )


def inspect_tree(placement: Placement, root_uuid: str) -> InspectedTree:
    """Read a tree and its usage."""
    tree = _read(placement, root_uuid)
    with_inventory = [uuid for uuid in tree.get_provider_uuids() if tree.has_inventory(uuid)]
    with ThreadPoolExecutor(CONCURRENCY) as executor:
        usages = dict(
            zip(with_inventory, executor.map(placement.usages, with_inventory), strict=True)
        )
    return InspectedTree(root_uuid, tree, usages)


def declaration_of(placement: Placement, root_uuid: str) -> Declaration:
    """All of a tree as a declaration; what has its default is left out."""
    tree = _read(placement, root_uuid)
    return Declaration(
        tuple(
            _declared(tree, tree.data(uuid)) for uuid in tree.get_provider_uuids_in_tree(root_uuid)
        )
    )


def _read(placement: Placement, root_uuid: str) -> ProviderTree:
    tree = TreeReader(placement, CONCURRENCY).read(root_uuid)
    if not tree.exists(root_uuid):
        raise ResourceProviderRetrievalFailed(
            f"Provider {root_uuid} was deleted by somebody else just now; try again"
        )
    return tree


def _declared(tree: ProviderTree, provider: ProviderData) -> DeclaredProvider:
    return DeclaredProvider(
        provider.name,
        tree.data(provider.parent_uuid).name if provider.parent_uuid else None,
        provider.uuid,
        {name: _without_defaults(fields) for name, fields in provider.inventory.items()},
        frozenset(provider.traits),
        frozenset(provider.aggregates),
    )


def _without_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in fields.items()
        if name not in DEFAULTS or DEFAULTS[name] != value
    }
