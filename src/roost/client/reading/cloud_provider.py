"""Providers and whole trees as a reader gives them, however it has read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from roost.client.placement import ProviderBody
from roost.client.placement.answers import AmountsByClass, Inventories
from roost.client.provider_tree import ProviderTree
from roost.model.inventory import Inventory


@dataclass(frozen=True)
class CloudProvider:
    """A provider with the facets that the caller asked for; further facets are empty."""

    body: ProviderBody
    inventories: Inventories = field(default_factory=dict)
    aggregates: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    usages: AmountsByClass = field(default_factory=dict)
    allocations: Mapping[str, AmountsByClass] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        """The uuid of the provider."""
        return str(self.body["uuid"])

    @property
    def name(self) -> str:
        """The name of the provider."""
        return str(self.body["name"])

    @cached_property
    def used(self) -> AmountsByClass:
        """The amount of each class that all consumers together hold."""
        return self.usages or sum_of(self.allocations.values())

    def inventory(self, resource_class: str) -> Inventory:
        """An inventory of the provider, as a value."""
        return Inventory(resource_class, **self.inventories[resource_class])

    def put_into(self, tree: ProviderTree) -> None:
        """Set the associations and the generation of the provider in a tree."""
        tree.update_inventory(self.uuid, self.inventories, self.body["generation"])
        tree.update_aggregates(self.uuid, self.aggregates)
        tree.update_traits(self.uuid, self.traits)


def sum_of(amounts: Iterable[AmountsByClass]) -> AmountsByClass:
    """The amount of each class in all of these together."""
    total: Counter[str] = Counter()
    for held in amounts:
        total.update(held)
    return total


@dataclass(frozen=True, slots=True)
class CloudTree:
    """A tree, the root first and parents before children, and what other trees share with it."""

    providers: Sequence[CloudProvider]
    sharing: Sequence[CloudProvider]

    def put_into(self, tree: ProviderTree) -> None:
        """Add the providers to a tree, the sharing ones as lone roots."""
        tree.populate_from_iterable([provider.body for provider in self.providers])
        for provider in self.sharing:
            tree.new_root(provider.name, provider.uuid, provider.body["generation"])
        for provider in (*self.providers, *self.sharing):
            provider.put_into(tree)
