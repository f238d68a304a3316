"""The ownership record of one tree, while one declaration is reported."""

from __future__ import annotations

from contextlib import suppress

from roost.client.declaration import Declaration
from roost.client.errors import RecordsUnavailable
from roost.client.ownership.owner_names import older_traits_of_owner, trait_of_owner
from roost.client.ownership.record import OwnershipRecord, adopted_record, recovered_record
from roost.client.ownership.store import OwnershipStore
from roost.client.provider_tree import ProviderTree


class TreeOwnership:
    """Loads and saves what one owner owns of one tree.

    With `adopt`, the owner takes over all that is on its declared providers. With `read_only`,
    nothing is saved.
    """

    def __init__(self, store: OwnershipStore, owner: str, *, adopt: bool, read_only: bool) -> None:
        self.owner_trait = trait_of_owner(owner)
        self._marks = {self.owner_trait, *older_traits_of_owner(owner)}
        self._store = store
        self._adopt = adopt
        self._read_only = read_only
        self._root_uuid = ""
        self._stored: OwnershipRecord | None = None

    def load(self, tree: ProviderTree, root_uuid: str, declaration: Declaration) -> OwnershipRecord:
        """The record of a tree: stored, else recovered from the tree."""
        self._root_uuid = root_uuid
        self._stored = self._with_former_trees(tree, self._store.load(root_uuid))
        record = self._stored
        if record is None:
            record = recovered_record(tree, root_uuid, declaration, self.owner_trait)
        if self._adopt:
            record = adopted_record(tree, root_uuid, declaration, self._marks, record)
        return record

    def save(self, record: OwnershipRecord) -> None:
        """Store the record of the tree that was loaded last, if it differs."""
        if not self._read_only and record != (self._stored or OwnershipRecord()):
            self._store.save(self._root_uuid, record)
            self._stored = record

    def save_or_keep(self, record: OwnershipRecord) -> None:
        """The same; a record that cannot be saved stays in memory, and is saved later."""
        try:
            self.save(record)
        except RecordsUnavailable:
            self._store.keep(self._root_uuid, record)

    def _with_former_trees(
        self, tree: ProviderTree, stored: OwnershipRecord | None
    ) -> OwnershipRecord | None:
        """The record, and those of members of the tree that were roots when they were stored."""
        former = {
            uuid: record
            for uuid in tree.get_provider_uuids_in_tree(self._root_uuid)
            if uuid != self._root_uuid and (record := self._store.load(uuid)) is not None
        }
        if not former:
            return stored
        merged = stored or OwnershipRecord()
        for record in former.values():
            merged = merged.united(record)
        if not self._read_only:
            # What cannot be saved at present is merged again by the next report.
            with suppress(RecordsUnavailable):
                self._store.save(self._root_uuid, merged)
                for uuid in former:
                    self._store.save(uuid, OwnershipRecord())
        return merged
