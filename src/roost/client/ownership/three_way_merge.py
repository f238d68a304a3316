"""The three-way merge of a declaration into a tree that other writers edit as well. Pure.

The base is the ownership record; the two sides are the declaration and the tree. The merge removes
what the owner owns and no longer declares. The merge leaves alone what the owner never put there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from roost.client.declaration import Declaration, DeclaredProvider, UnreadProviders
from roost.client.ownership.provider_merge import (
    differs,
    merge_provider,
    undeclared_inventories,
)
from roost.client.ownership.record import Absence, OwnedProvider, OwnershipRecord
from roost.client.ownership.tree_shape import TreeShape
from roost.client.ownership.withdrawal import WithdrawalPolicy, refuse_sudden_loss
from roost.client.provider_tree import ProviderData, ProviderTree

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
    *,
    policy: WithdrawalPolicy | None = None,
    may_move: bool = True,
) -> MergeResult:
    """Edit the tree: add what is declared, remove what is owned but not declared.

    Providers that the merge creates get the owner's trait. The merge keeps the inventories that
    are in use, and their providers. Without a policy, it withdraws at once what is not declared.
    A server that is too old to move providers needs `may_move=False`.
    """
    run = _TreeMerge(tree, record, owner_trait, in_use, policy=policy, may_move=may_move)
    return run.run(declaration)


def wants_move(tree: ProviderTree, declaration: Declaration) -> bool:
    """Whether a declared provider has another parent in the tree."""
    for provider in declaration.providers:
        address = provider.uuid or provider.name
        if provider.parent is not None and tree.exists(address):
            parent_uuid = tree.data(address).parent_uuid
            if parent_uuid is not None and tree.data(parent_uuid).name != provider.parent:
                return True
    return False


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
            pending.absence,
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
        *,
        policy: WithdrawalPolicy | None,
        may_move: bool,
    ) -> None:
        self._tree = tree
        self._record = record
        self._owner_trait = owner_trait
        self._in_use = in_use
        self._policy = policy
        self._shape = TreeShape(tree, record, owner_trait, may_move=may_move)
        self._kept: list[str] = []
        self._pending: dict[str, OwnedProvider] = {}
        self._settled: dict[str, OwnedProvider] = {}

    def run(self, declaration: Declaration) -> MergeResult:
        declared = {self._shape.find_or_add(each): each for each in declaration.providers}
        absences = self._hold_unread_and_missing(declared, declaration.unread)
        uuids = self._tree.get_provider_uuids()
        self._children = Counter(self._tree.data(uuid).parent_uuid for uuid in uuids)
        for uuid in reversed(uuids):
            provider = self._tree.data(uuid)
            if uuid in declared:
                self._update(provider, declared[uuid])
            elif uuid in self._settled:
                # The provider is held as it is.
                continue
            elif provider.generation is None:
                # The caller began a tree of which nothing is declared.
                self._tree.remove(uuid)
            elif self._record.provider(uuid, provider.name):
                self._withdraw(provider, absences.get(uuid))
        return MergeResult(
            OwnershipRecord.of_providers(self._pending),
            OwnershipRecord.of_providers(self._settled),
            (*self._shape.kept, *self._kept),
        )

    # -- undeclared providers

    def _hold_unread_and_missing(
        self, declared: Mapping[str, DeclaredProvider], unread: UnreadProviders
    ) -> Mapping[str, Absence]:
        """Hold the owned providers that are not read, or not missing for long enough.

        Returns the absences of the missing ones.
        """
        recorded = {
            uuid: owned for uuid, owned in self._record.providers.items() if self._tree.exists(uuid)
        }
        undeclared = {uuid: owned for uuid, owned in recorded.items() if uuid not in declared}
        missing = {
            uuid: owned for uuid, owned in undeclared.items() if not unread.covers(owned.name)
        }
        for uuid, owned in undeclared.items():
            if uuid not in missing:
                self._hold(uuid, owned, "stays as it is, the driver cannot read it")
        if self._policy is None:
            return {}
        refuse_sudden_loss(recorded, missing.values())
        absences = {uuid: self._policy.absence_of(owned) for uuid, owned in missing.items()}
        for uuid, absence in absences.items():
            if not self._policy.is_due(absence):
                owned = replace(missing[uuid], absence=absence)
                self._hold(uuid, owned, self._policy.describe())
        return absences

    def _hold(self, uuid: str, owned: OwnedProvider, reason: str) -> None:
        """Leave a provider as it is; the owner goes on owning what it owns of it."""
        self._pending[uuid] = self._settled[uuid] = owned
        self._kept.append(f"{owned.name}: {reason}")

    def _withdraw(self, provider: ProviderData, absence: Absence | None) -> None:
        """Delete a provider that is not declared, or else remove what the owner owns of it."""
        owned = self._record.provider(provider.uuid, provider.name)
        obstacle = self._obstacle_to_deletion(provider, owned)
        if owned.created and not obstacle:
            self._pending[provider.uuid] = owned
            self._children[provider.parent_uuid] -= 1
            self._tree.remove(provider.uuid)
            return
        if owned.created:
            self._kept.append(f"{provider.name}: not deleted, {obstacle}")
        self._update(provider, DeclaredProvider(provider.name), absence)

    def _obstacle_to_deletion(self, provider: ProviderData, owned: OwnedProvider) -> str:
        """Why a provider must not be deleted; empty if it may be."""
        obstacles = []
        if provider.uuid in self._in_use:
            obstacles.append("it is in use")
        if foreign := sorted(provider.inventory.keys() - owned.inventories.keys()):
            obstacles.append(f"other writers have inventory on it ({', '.join(foreign)})")
        if self._children[provider.uuid]:
            obstacles.append("there are providers below it")
        return " and ".join(obstacles)

    # -- both

    def _update(
        self, provider: ProviderData, declared: DeclaredProvider, absence: Absence | None = None
    ) -> None:
        """Merge the declaration of one provider; a missing one keeps its absence."""
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
        self._pending[provider.uuid] = replace(merged.pending, absence=absence)
        self._settled[provider.uuid] = replace(merged.settled, absence=absence)
