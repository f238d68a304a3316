"""A driver that merges a declaration into the tree of its host, and keeps the record of that tree.

Without a record, an owner does not know after a restart what it put on the server, and never
removes it. While records cannot be saved, the owner changes and removes what its record has, and
adds nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import replace

from roost.client.drivers.driver import Allocations
from roost.client.errors import (
    DeclarationRefused,
    RecordsUnavailable,
    ResourceProviderRetrievalFailed,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.record import (
    OwnedProvider,
    OwnershipRecord,
    adopted_record,
    recovered_record,
)
from roost.client.ownership.store import OwnershipStore
from roost.client.ownership.three_way_merge import (
    InventoriesInUse,
    MergeResult,
    TreeMerge,
    WithdrawalPolicy,
    found_providers,
    may_remove_inventory,
    written_record,
)
from roost.client.placement import Placement
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.client.versions import OLDEST_THAT_MOVES, ServerVersion, newest_of_server
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.owner_names import child_uuid, older_traits_of_owner, trait_of_owner

_UNSAVED = "the ownership records cannot be saved"


class TreeOwnership:
    """Loads and saves what one owner owns of one tree.

    With `adopt`, the owner takes over all that is on its declared providers. With `read_only`,
    nothing is saved. Each record belongs to one server, and that of another server is refused.
    """

    def __init__(
        self,
        store: OwnershipStore,
        owner: str,
        server: KnownServer,
        *,
        adopt: bool,
        read_only: bool,
    ) -> None:
        self.owner_trait = trait_of_owner(owner)
        self._owner = owner
        self._server = server
        self._marks = {self.owner_trait, *older_traits_of_owner(owner)}
        self._store = store
        self._adopt = adopt
        self._read_only = read_only
        self._root_uuid = ""
        self._stored: OwnershipRecord | None = None
        # What is left of the records of other trees that had providers of this one.
        self._moved: dict[str, OwnershipRecord] = {}

    def load(self, tree: ProviderTree, host_uuid: str, declaration: Declaration) -> OwnershipRecord:
        """The record of a host's tree: stored, else recovered from it and from other records."""
        uuids = tree.get_provider_uuids_in_tree(host_uuid)
        self._root_uuid, members = uuids[0], frozenset(uuids)
        self._stored = self._recorded(self._root_uuid)
        record = self._with_moved(members)
        recovered = recovered_record(tree, self._root_uuid, declaration, self.owner_trait)
        if self._stored is None and members.isdisjoint(self._moved):
            record = recovered.united(record)
        else:
            # Declared children that the record lacks were in another tree. Their uuids follow from
            # the host and the owner, so no other writer created them.
            children = {
                child_uuid(host_uuid, self.owner_trait, provider.name)
                for provider in declaration.providers
                if provider.parent is not None
            }
            record = record.united(recovered.only(children - record.providers.keys()))
        if self._adopt:
            record = adopted_record(tree, self._root_uuid, declaration, self._marks, record)
        return record

    def save(self, record: OwnershipRecord) -> None:
        """Store the record of the tree that was loaded last, if it differs."""
        if self._read_only:
            return
        record = self._bound(record)
        if record == (self._stored or OwnershipRecord()) and not self._moved:
            return
        self._store.save(self._root_uuid, record)
        self._stored = record
        # What is left in the former records is in two of them, which harms nothing.
        with suppress(RecordsUnavailable):
            for former_uuid, rest in self._moved.items():
                self._store.save(former_uuid, rest)
            self._moved = {}

    def save_or_keep(self, record: OwnershipRecord) -> None:
        """The same; a record that cannot be saved stays in memory, and is saved later."""
        try:
            self.save(record)
        except RecordsUnavailable:
            self._store.keep(self._root_uuid, self._bound(record))

    def _recorded(self, root_uuid: str) -> OwnershipRecord | None:
        """The stored record of a tree, if it does not belong to another server."""
        return self._server.demand(self._store, self._owner, root_uuid)

    def _bound(self, record: OwnershipRecord) -> OwnershipRecord:
        """The record, bound to the server; an empty one is removed, and belongs to none."""
        if not record.providers:
            return OwnershipRecord()
        return self._server.taken(record, self._stored.server if self._stored else None)

    def _with_moved(self, members: Set[str]) -> OwnershipRecord:
        """The stored record, and what other records have of providers that an operator has moved.

        A member of the tree that was a root has moved with all of its record. Without both, the
        tree is new: its providers may be in the record of any other tree.
        """
        self._moved = {}
        record = self._stored or OwnershipRecord()
        for former_uuid in members - {self._root_uuid}:
            former = self._recorded(former_uuid)
            if former is not None:
                record = record.united(former)
                self._moved[former_uuid] = OwnershipRecord()
        if self._stored is None and not self._moved:
            for former_uuid in self._store.trees_with(members):
                former = self._recorded(former_uuid)
                if former is not None:
                    record = record.united(former.only(members))
                    self._moved[former_uuid] = former.without(members)
        return record


def without_additions(
    declaration: Declaration, tree: ProviderTree, record: OwnershipRecord, owner_trait: str
) -> tuple[Declaration, tuple[str, ...]]:
    """The declaration without all that would be new to the record; a line for what waits."""
    present = found_providers(tree, declaration, record, owner_trait)
    kept: dict[str, DeclaredProvider] = {}
    held: set[str] = set()
    waiting: list[str] = []
    for provider in declaration.providers:
        # A new tree has its root already, without a generation.
        is_new = provider.name in present and tree.data(present[provider.name]).generation is None
        if provider.name not in present or is_new:
            waiting.append(f"{provider.name}: not created yet, {_UNSAVED}")
            continue
        found = tree.data(present[provider.name])
        owned = record.provider(found.uuid, found.name)
        if provider.parent is not None and provider.parent not in kept:
            # Its declared parent does not exist yet.
            held.add(owned.name)
        else:
            reduced = _without_additions(provider, found, owned)
            if reduced != provider:
                waiting.append(f"{provider.name}: some of it is not added yet, {_UNSAVED}")
            kept[provider.name] = reduced
    unread = replace(declaration.unread, names=declaration.unread.names | held)
    return Declaration(tuple(kept.values()), unread), tuple(waiting)


def _without_additions(
    declared: DeclaredProvider, found: ProviderData, owned: OwnedProvider
) -> DeclaredProvider:
    return replace(
        declared,
        inventories={
            name: {key: value for key, value in fields.items() if key in owned.inventories[name]}
            for name, fields in declared.inventories.items()
            if name in owned.inventories
        },
        traits=_known(declared.traits, found.traits, owned.traits),
        aggregates=_known(declared.aggregates, found.aggregates, owned.aggregates),
    )


def _known(declared: frozenset[str], present: Set[str], owned: frozenset[str]) -> frozenset[str]:
    """The declared names that the owner owns, or that need not be added."""
    return declared & (owned | frozenset(present))


class DeclarationDriver:
    """Edits a tree by the three-way merge, and keeps the ownership record true.

    Each report needs a driver of its own. `uuid` is the provider of the host. If records cannot be
    saved, the driver may add nothing that the record lacks (`may_add`): after a restart, the owner
    would not know that it put these things there.
    """

    def __init__(
        self,
        declaration: Declaration,
        uuid: str,
        ownership: TreeOwnership,
        placement: Placement,
        *,
        policy: WithdrawalPolicy | None,
        may_add: bool,
    ) -> None:
        self._uuid = uuid
        self._given = declaration
        # What the driver may write of it; each attempt of a report decides anew.
        self._declaration = declaration
        self._ownership = ownership
        self._placement = placement
        self._policy = policy
        self._may_add = may_add
        self._newest: ServerVersion | None = None
        self._waiting: tuple[str, ...] = ()
        self._before = OwnershipRecord()
        self._merged = MergeResult(OwnershipRecord(), OwnershipRecord())
        self._wanted = ProviderTree()

    @property
    def kept(self) -> tuple[str, ...]:
        """A line for each part of the declaration that could not be made true."""
        return self._waiting + self._merged.kept

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Merge the declaration, and save what will be owned before the reporter writes it."""
        found = provider_tree.data(self._uuid).name
        if found != nodename:
            raise DeclarationRefused(
                f"Provider {self._uuid} is named {found}, not {nodename}; providers are not "
                "renamed: give the name that it has, or another uuid"
            )
        self._before = self._ownership.load(provider_tree, self._uuid, self._given)
        if not self._may_add:
            self._declaration, self._waiting = without_additions(
                self._given, provider_tree, self._before, self._ownership.owner_trait
            )
        in_use = self._inventories_in_use(provider_tree)
        self._merged = self._merge(provider_tree, in_use)
        self._wanted = provider_tree
        if self._may_add:
            self._ownership.save(self._merged.pending)

    def save_written(self, written: ProviderTree, error: Exception) -> None:
        """Save what the owner owns after a flush that ended half way.

        If the outcome of the last write is unknown, the owner may own all that it was to write.
        """
        if outcome_of(error) is Outcome.NOT_DONE:
            record = written_record(self._merged, self._before, self._wanted, written)
            self._ownership.save_or_keep(record)

    def save_settled(self) -> None:
        """Save what the owner owns after a flush that succeeded."""
        self._ownership.save_or_keep(self._merged.settled)

    def _merge(self, tree: ProviderTree, in_use: InventoriesInUse) -> MergeResult:
        trait = self._ownership.owner_trait
        run = TreeMerge(tree, self._before, trait, in_use, self._policy, self._server_moves)
        return run.run(self._declaration)

    def _server_moves(self) -> bool:
        """Whether the server moves providers. Most reports move none, and need not ask."""
        if self._newest is None:
            self._newest = newest_of_server(self._placement)
        return self._newest >= OLDEST_THAT_MOVES

    def _inventories_in_use(self, tree: ProviderTree) -> InventoriesInUse:
        """The inventories that the merge would remove, and that are in use."""
        if not may_remove_inventory(self._before, self._declaration):
            return {}
        removed = self._merge(copy.deepcopy(tree), {}).removed_inventories
        used = {
            uuid: classes & {name for name, amount in self._usages(uuid).items() if amount}
            for uuid, classes in removed.items()
        }
        return {uuid: classes for uuid, classes in used.items() if classes}

    def _usages(self, uuid: str) -> Mapping[str, int]:
        try:
            return self._placement.usages(uuid)
        except ResourceProviderRetrievalFailed as error:
            if error.status != 404:
                raise
            # A provider that is gone has no allocations.
            return {}
