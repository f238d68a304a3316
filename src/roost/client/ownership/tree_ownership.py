"""The ownership record of one tree, while one declaration is reported."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress

from roost.client.declaration import Declaration
from roost.client.errors import RecordsUnavailable
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.owner_names import older_traits_of_owner, trait_of_owner
from roost.client.ownership.record import OwnershipRecord, adopted_record, recovered_record
from roost.client.ownership.store import OwnershipStore
from roost.client.provider_tree import ProviderTree


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

    def load(self, tree: ProviderTree, root_uuid: str, declaration: Declaration) -> OwnershipRecord:
        """The record of a tree: stored, else recovered from the tree and from other records."""
        self._root_uuid = root_uuid
        self._moved = {}
        members = frozenset(tree.get_provider_uuids_in_tree(root_uuid))
        self._stored = self._with_former_roots(members, self._recorded(root_uuid))
        record = self._stored
        if record is None:
            record = recovered_record(tree, root_uuid, declaration, self.owner_trait)
            record = record.united(self._moved_record(members))
        if self._adopt:
            record = adopted_record(tree, root_uuid, declaration, self._marks, record)
        return record

    def save(self, record: OwnershipRecord) -> None:
        """Store the record of the tree that was loaded last, if it differs."""
        if self._read_only:
            return
        record = self._bound(record)
        if record == (self._stored or OwnershipRecord()):
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

    def _with_former_roots(
        self, members: Set[str], stored: OwnershipRecord | None
    ) -> OwnershipRecord | None:
        """The record, and those of members of the tree that were roots when they were stored."""
        former = {
            uuid: record
            for uuid in members
            if uuid != self._root_uuid and (record := self._recorded(uuid)) is not None
        }
        if not former:
            return stored
        merged = stored or OwnershipRecord()
        for record in former.values():
            merged = merged.united(record)
        merged = self._server.taken(merged, merged.server)
        if not self._read_only:
            try:
                self._store.save(self._root_uuid, merged)
                for uuid in former:
                    self._store.save(uuid, OwnershipRecord())
            except RecordsUnavailable:
                # The next report finds the former records again.
                self._store.keep(self._root_uuid, merged)
        return merged

    def _moved_record(self, members: Set[str]) -> OwnershipRecord:
        """What the records of other trees have of these providers, which have become a tree."""
        moved = OwnershipRecord()
        for former_uuid in self._store.trees_with(members):
            former = self._recorded(former_uuid)
            if former is not None:
                moved = moved.united(former.only(members))
                self._moved[former_uuid] = former.without(members)
        return moved
