"""The forest of providers that a driver edits, in memory, by name or by uuid.

The class has the interface of the class of the same name in Nova.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping, ValuesView
from typing import Any, ClassVar, Self

from roost.client.provider_tree.forest import (
    AssignedResources,
    InventoriesByClass,
    ProviderData,
    ProviderForest,
    ProviderNode,
    copied_inventory,
    top_down,
)
from roost.model.identifiers import new_uuid

__all__ = ["SHARING_TRAIT", "ProviderData", "ProviderSubTree", "ProviderTree"]

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a sharing provider: the members of its aggregates may use its inventories."""


class ProviderTree:
    """Any number of provider trees. The class validates no values and asks no server.

    `name_or_uuid` finds a root by uuid, then the youngest root with the name. After the roots it
    finds the first provider with the uuid or the name from the top down; a child with the uuid
    comes before its siblings. Methods raise ValueError if there is no such provider. The class
    stores generations without comparing them.
    """

    # All trees of the process share one lock, as in Nova. The lock belongs to the class, so a copy
    # or a pickle of a tree does not contain it. It is reentrant because comparing and copying run
    # code of the stored objects.
    lock: ClassVar = threading.RLock()

    origin: str | None = None
    """The id of the reading of a server that the tree came from; copies keep it."""

    moved: frozenset[str] = frozenset()
    """The uuids of the providers that `move` moved. A flush moves no further providers."""

    def __init__(self) -> None:
        self._forest = ProviderForest()

    # -- copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        duplicate = type(self).__new__(type(self))
        memo[id(self)] = duplicate
        with self.lock:
            state = {name: copy.deepcopy(value, memo) for name, value in vars(self).items()}
        vars(duplicate).update(state)
        return duplicate

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return {**vars(self), "_forest": self._forest.snapshot()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._forest = ProviderForest(state["_forest"])

    def subtree(self, name_or_uuid: str) -> ProviderSubTree:
        """A copy of the tree with this root; ValueError if the provider is not a root."""
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            if not provider.is_root:
                raise ValueError(
                    f"Provider {name_or_uuid} is not a root; a subtree is that of a root, here "
                    f"{self._forest.root_of(provider).uuid}"
                )
            subtree = ProviderSubTree(name_or_uuid)
            subtree._forest = self._forest.tree(provider)
            subtree.origin = self.origin
            subtree.moved = self.moved
            return subtree

    # -- looking

    @property
    def roots(self) -> ValuesView[ProviderNode]:
        """The roots themselves, not snapshots; the caller holds the lock."""
        return self._forest.roots.values()

    def get_provider_uuids(self, name_or_uuid: str | None = None) -> list[str]:
        """The uuids of a provider and all below it, or of all providers, from the top down."""
        with self.lock:
            if name_or_uuid is None:
                return [provider.uuid for provider in self._forest]
            return _uuids(self._find_with_lock(name_or_uuid))

    def get_provider_uuids_in_tree(self, name_or_uuid: str) -> list[str]:
        """The uuids of the whole tree of the provider, from the top down."""
        with self.lock:
            return _uuids(self._find_with_lock(name_or_uuid, return_root=True))

    def exists(self, name_or_uuid: str) -> bool:
        """Whether the forest has the provider."""
        with self.lock:
            return self._forest.find(name_or_uuid) is not None

    def data(self, name_or_uuid: str) -> ProviderData:
        """A snapshot of a provider; changes of the snapshot do not change the tree."""
        with self.lock:
            return self._find_with_lock(name_or_uuid).data()

    def _find_with_lock(self, name_or_uuid: str, return_root: bool = False) -> ProviderNode:
        """The provider itself, or the root of its tree; the caller holds the lock.

        Tests of Nova call this method, so it is part of the interface in spite of its name.
        """
        provider = self._forest.find(name_or_uuid)
        if provider is None:
            raise ValueError(f"No such provider {name_or_uuid}")
        return self._forest.root_of(provider) if return_root else provider

    # -- adding and removing providers

    def new_root(self, name: str, uuid: str, generation: int | None = None) -> str:
        """Add a root; ValueError if a provider already has this uuid, or has it as its name."""
        with self.lock:
            self._demand_unknown(uuid)
            self._forest.add(ProviderNode(uuid, name, generation))
            return uuid

    def new_child(
        self, name: str, parent: str, uuid: str | None = None, generation: int | None = None
    ) -> str:
        """Add a child below `parent`, a name or a uuid, and return the child's uuid.

        ValueError if the uuid is the uuid or the name of a provider. Without a uuid the same
        holds for the name.
        """
        with self.lock:
            self._demand_unknown(name if uuid is None else uuid)
            parent_uuid = self._find_with_lock(parent).uuid
            # Nova accepts a root whose uuid is `None`, in spite of the types.
            if parent_uuid is None:
                raise ValueError(
                    f"Provider {parent} cannot have children because it was added without uuid; "
                    "add it with one"
                )
            if uuid is None:
                uuid = new_uuid()
            self._forest.add(ProviderNode(uuid, name, generation, parent_uuid))
            return uuid

    def remove(self, name_or_uuid: str) -> None:
        """Remove a provider and all below it."""
        with self.lock:
            self._forest.remove(self._find_with_lock(name_or_uuid))

    def move(self, name_or_uuid: str, parent: str) -> None:
        """Put a child, with all below it, below another parent; a flush moves it on the server.

        Nova's class has no such method: its report client moves no providers.
        """
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            if provider.is_root:
                raise ValueError(f"Provider {name_or_uuid} is a root, and roots are not moved")
            self._forest.move(provider, self._find_with_lock(parent))
            self.moved |= {provider.uuid}

    def populate_from_iterable(self, provider_dicts: Iterable[Mapping[str, Any]] | None) -> None:
        """Add providers as the server lists them, in any order.

        A given provider replaces the provider with its uuid and all below that, and starts
        without inventory, traits and aggregates. ValueError if a parent is neither in the tree
        nor given, or if some of the given are each other's ancestors.
        """
        with self.lock:
            arriving = [_arriving(provider) for provider in provider_dicts or ()]
            self._forest.replace({provider.uuid: provider for provider in arriving})

    def _demand_unknown(self, name_or_uuid: str) -> None:
        found = self._forest.find(name_or_uuid)
        if found is not None:
            raise ValueError(
                f"There is a provider {name_or_uuid} already: {found.name} ({found.uuid})"
            )

    # -- inventory

    def has_inventory(self, name_or_uuid: str) -> bool:
        """Whether the provider has an inventory."""
        with self.lock:
            return bool(self._find_with_lock(name_or_uuid).inventory)

    def has_inventory_changed(self, name_or_uuid: str, inventory: InventoriesByClass) -> bool:
        """Whether the inventory differs from the stored one.

        A missing field counts as equal, a missing class as different.
        """
        with self.lock:
            return self._find_with_lock(name_or_uuid).has_inventory_changed(inventory)

    def update_inventory(
        self, name_or_uuid: str, inventory: InventoriesByClass, generation: int | None = None
    ) -> bool:
        """Replace the inventory if it has changed; whether it has."""
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            changed = provider.has_inventory_changed(inventory)
            if changed:
                provider.inventory = copied_inventory(inventory)
            _store_generation(provider, generation)
            return changed

    def has_sharing_provider(self, resource_class: str) -> bool:
        """Whether a sharing provider has inventory of the class."""
        with self.lock:
            return any(
                resource_class in provider.inventory and SHARING_TRAIT in provider.traits
                for provider in self._forest
            )

    # -- traits

    def has_traits(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Whether the provider has all of the traits."""
        with self.lock:
            return self._find_with_lock(name_or_uuid).traits.issuperset(traits)

    def have_traits_changed(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Whether the traits of the provider differ from these."""
        with self.lock:
            return self._find_with_lock(name_or_uuid).traits != set(traits)

    def update_traits(
        self, name_or_uuid: str, traits: Iterable[str], generation: int | None = None
    ) -> bool:
        """Replace the traits; whether that changed them."""
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            before, provider.traits = provider.traits, set(traits)
            _store_generation(provider, generation)
            return provider.traits != before

    def add_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Add traits. A call without traits does nothing, even if the provider does not exist."""
        with self.lock:
            if traits:
                self._find_with_lock(name_or_uuid).traits.update(traits)

    def remove_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Remove traits, if the provider has them. A call without traits does nothing."""
        with self.lock:
            if traits:
                self._find_with_lock(name_or_uuid).traits.difference_update(traits)

    # -- aggregates

    def in_aggregates(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Whether the provider is in all of the aggregates."""
        with self.lock:
            return self._find_with_lock(name_or_uuid).aggregates.issuperset(aggregates)

    def have_aggregates_changed(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Whether the aggregates of the provider differ from these."""
        with self.lock:
            return self._find_with_lock(name_or_uuid).aggregates != set(aggregates)

    def update_aggregates(
        self, name_or_uuid: str, aggregates: Iterable[str], generation: int | None = None
    ) -> bool:
        """Replace the aggregates; whether that changed them."""
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            before, provider.aggregates = provider.aggregates, set(aggregates)
            _store_generation(provider, generation)
            return provider.aggregates != before

    def add_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Put the provider into aggregates."""
        with self.lock:
            self._find_with_lock(name_or_uuid).aggregates.update(aggregates)

    def remove_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Take the provider out of aggregates, if it is in them."""
        with self.lock:
            self._find_with_lock(name_or_uuid).aggregates.difference_update(aggregates)

    # -- resources

    def update_resources(self, name_or_uuid: str, resources: AssignedResources) -> bool:
        """Replace the assigned resources; whether that changed them."""
        with self.lock:
            provider = self._find_with_lock(name_or_uuid)
            changed = provider.resources != resources
            if changed:
                provider.resources = copy.deepcopy(resources)
            return changed


class ProviderSubTree(ProviderTree):
    """A copy of one tree. A flush of it concerns the providers of this tree only."""

    def __init__(self, scope_rp_uuid: str) -> None:
        super().__init__()
        self._scope_rp_uuid = scope_rp_uuid

    @property
    def scope_rp_uuid(self) -> str:
        """The name or uuid of the root that `ProviderTree.subtree` was called with."""
        return self._scope_rp_uuid


def _uuids(top: ProviderNode) -> list[str]:
    return [provider.uuid for provider in top_down(top)]


def _store_generation(provider: ProviderNode, generation: int | None) -> None:
    """Store a known generation, even if the update changed nothing."""
    if generation is not None:
        provider.generation = generation


def _arriving(provider: Mapping[str, Any]) -> ProviderNode:
    missing = [key for key in ("uuid", "name") if key not in provider]
    if missing:
        raise ValueError(f"A provider to be added has no {' and no '.join(missing)}: {provider}")
    return ProviderNode(
        provider["uuid"],
        provider["name"],
        provider.get("generation"),
        provider.get("parent_provider_uuid"),
    )
