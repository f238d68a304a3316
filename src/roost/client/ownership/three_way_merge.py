"""The three-way merge of a declaration into a tree that other writers edit as well. Pure.

The base is the ownership record; the two sides are the declaration and the tree. The merge removes
what the owner owns and no longer declares. The merge leaves alone what the owner never put there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import DeclarationRefused
from roost.client.ownership.owner_names import is_owner_trait
from roost.client.ownership.provider_merge import (
    differs,
    merge_provider,
    undeclared_inventories,
)
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.identifiers import new_uuid

InventoriesInUse = Mapping[str, frozenset[str]]
"""Provider uuid -> resource classes of which there are allocations."""

NOTHING_IN_USE: InventoriesInUse = {}


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What the owner owns of the tree once it is merged.

    `pending` has what the owner is about to add and what it is about to remove: it is stored
    before the first write. `settled` is stored after the last write.
    """

    pending: OwnershipRecord
    settled: OwnershipRecord
    kept: tuple[str, ...] = ()
    """A line for each thing that is undeclared and cannot be removed."""

    @property
    def removed_inventories(self) -> InventoriesInUse:
        """The inventories that the merge removes, with those of deleted providers."""
        removed = {
            uuid: owned.inventories.keys() - self.settled.provider(uuid, "").inventories.keys()
            for uuid, owned in self.pending.providers.items()
        }
        return {uuid: frozenset(classes) for uuid, classes in removed.items() if classes}


def merge(
    tree: ProviderTree,
    declaration: Declaration,
    record: OwnershipRecord,
    owner_trait: str,
    in_use: InventoriesInUse = NOTHING_IN_USE,
) -> MergeResult:
    """Edit the tree: add what is declared, remove what is owned but not declared.

    Providers that the merge creates get the owner's trait. The merge keeps the inventories that
    are in use, and their providers.
    """
    return _TreeMerge(tree, record, owner_trait, in_use).run(declaration)


def may_remove_inventory(record: OwnershipRecord, declaration: Declaration) -> bool:
    """Whether the owner owns an inventory that it no longer declares."""
    declared = {provider.name: provider.inventories for provider in declaration.providers}
    return any(
        owned.inventories.keys() - declared.get(owned.name, {}).keys()
        for owned in record.providers.values()
    )


def written_record(
    merged: MergeResult, before: OwnershipRecord, wanted: ProviderTree, written: ProviderTree
) -> OwnershipRecord:
    """The record after a flush that ended half way: what was owned before, and what is written."""
    owned = {}
    for uuid, pending in merged.pending.providers.items():
        if not written.exists(uuid):
            continue
        was, there = before.provider(uuid, pending.name), written.data(uuid)
        aim = wanted.data(uuid).inventory if wanted.exists(uuid) else {}
        arrived = {
            name
            for name in there.inventory.keys() & aim.keys()
            if not differs(there.inventory[name], aim[name])
        }
        owned[uuid] = OwnedProvider(
            pending.name,
            pending.created,
            {
                name: fields
                for name, fields in pending.inventories.items()
                if name in was.inventories or name in arrived
            },
            pending.traits & (was.traits | there.traits),
            pending.aggregates & (was.aggregates | there.aggregates),
        )
    return OwnershipRecord.of_providers(owned)


class _TreeMerge:
    """One run of `merge`."""

    def __init__(
        self,
        tree: ProviderTree,
        record: OwnershipRecord,
        owner_trait: str,
        in_use: InventoriesInUse,
    ) -> None:
        self._tree = tree
        self._record = record
        self._owner_trait = owner_trait
        self._in_use = in_use
        self._kept: list[str] = []
        self._pending: dict[str, OwnedProvider] = {}
        self._settled: dict[str, OwnedProvider] = {}
        # An earlier request to create these providers may still be on its way to the server.
        self._uuids_on_the_way = {
            owned.name: uuid
            for uuid, owned in record.providers.items()
            if owned.created and not tree.exists(uuid)
        }

    def run(self, declaration: Declaration) -> MergeResult:
        declared = {self._find_or_add(provider): provider for provider in declaration.providers}
        uuids = self._tree.get_provider_uuids()
        self._children = Counter(self._tree.data(uuid).parent_uuid for uuid in uuids)
        for uuid in reversed(uuids):
            provider = self._tree.data(uuid)
            if uuid in declared:
                self._update(provider, declared[uuid])
            elif provider.generation is None:
                # The caller began a tree of which nothing is declared.
                self._tree.remove(uuid)
            elif self._record.provider(uuid, provider.name):
                self._withdraw(provider)
        return MergeResult(
            OwnershipRecord.of_providers(self._pending),
            OwnershipRecord.of_providers(self._settled),
            tuple(self._kept),
        )

    def _find_or_add(self, provider: DeclaredProvider) -> str:
        """The uuid of a declared provider, which is added to the tree if it is missing."""
        self._check_traits(provider)
        address = provider.uuid or provider.name
        if self._tree.exists(address):
            return self._check(provider, self._tree.data(address))
        if self._tree.exists(provider.name):
            found = self._tree.data(provider.name).uuid
            raise DeclarationRefused(
                f"Provider {provider.name} is declared with uuid {provider.uuid}, but has {found}: "
                "declare that uuid, or none"
            )
        uuid = provider.uuid or self._uuids_on_the_way.get(provider.name) or new_uuid()
        if provider.parent is None:
            return self._tree.new_root(provider.name, uuid)
        return self._tree.new_child(provider.name, provider.parent, uuid)

    def _check_traits(self, provider: DeclaredProvider) -> None:
        for trait in provider.traits:
            if is_owner_trait(trait) and trait != self._owner_trait:
                raise DeclarationRefused(
                    f"Provider {provider.name} is declared with {trait}, the trait of another "
                    "owner: leave the trait out, or write as that owner"
                )

    def _check(self, provider: DeclaredProvider, found: ProviderData) -> str:
        if found.name != provider.name:
            raise DeclarationRefused(
                f"Provider {found.uuid} is declared as {provider.name}, but is named {found.name}; "
                "providers are not renamed: declare the name that it has"
            )
        parent = self._tree.data(found.parent_uuid).name if found.parent_uuid else None
        if provider.parent is not None and parent != provider.parent:
            place = f"below {parent}" if parent else "a root"
            self._kept.append(
                f"{found.name}: stays {place}, though declared below {provider.parent}; "
                "delete it to have it created there"
            )
        return found.uuid

    def _withdraw(self, provider: ProviderData) -> None:
        """Delete a provider that is not declared, or else remove what the owner owns of it."""
        owned = self._record.provider(provider.uuid, provider.name)
        obstacle = self._obstacle(provider, owned)
        if owned.created and not obstacle:
            self._pending[provider.uuid] = owned
            self._children[provider.parent_uuid] -= 1
            self._tree.remove(provider.uuid)
            return
        if owned.created:
            self._kept.append(f"{provider.name}: not deleted, {obstacle}")
        self._update(provider, DeclaredProvider(provider.name))

    def _obstacle(self, provider: ProviderData, owned: OwnedProvider) -> str:
        """Why a provider must not be deleted; empty if it may be."""
        obstacles = []
        if provider.uuid in self._in_use:
            obstacles.append("it is in use")
        if foreign := sorted(provider.inventory.keys() - owned.inventories.keys()):
            obstacles.append(f"other writers have inventory on it ({', '.join(foreign)})")
        if self._children[provider.uuid]:
            obstacles.append("there are providers below it")
        return " and ".join(obstacles)

    def _update(self, provider: ProviderData, declared: DeclaredProvider) -> None:
        """Merge the declaration of one provider."""
        owned = self._record.provider(provider.uuid, provider.name)
        if owned.created or provider.generation is None:
            declared = replace(declared, traits=declared.traits | {self._owner_trait})
        if provider.uuid in self._in_use:
            classes = self._in_use[provider.uuid]
            undeclared = undeclared_inventories(provider, declared, owned, classes)
            declared = replace(declared, inventories={**undeclared, **declared.inventories})
            self._kept += [
                f"{provider.name}: inventory {name} not removed, in use" for name in undeclared
            ]
        merged = merge_provider(provider, declared, owned)
        self._tree.update_inventory(provider.uuid, merged.inventory)
        self._tree.update_traits(provider.uuid, merged.traits)
        self._tree.update_aggregates(provider.uuid, merged.aggregates)
        self._pending[provider.uuid] = merged.pending
        self._settled[provider.uuid] = merged.settled
