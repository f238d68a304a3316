"""The trees whose records have a provider."""

from __future__ import annotations

from collections.abc import Set
from threading import RLock
from typing import Protocol

from roost.client.errors import PlacementError
from roost.client.ownership.record import OwnershipRecord
from roost.model.identifiers import is_uuid


class _Records(Protocol):
    def trees(self) -> list[str]: ...

    def load(self, root_uuid: str) -> OwnershipRecord | None: ...


class TreeMembers:
    """Knows the tree of each provider that the records of an owner have.

    The first question reads all records, and later records are told. Several threads may ask.
    """

    def __init__(self, records: _Records) -> None:
        self._records = records
        # To read a record may save it, which tells this object.
        self._lock = RLock()
        # A provider may be in two records for a moment, while it moves.
        self._trees: dict[str, set[str]] = {}
        self._members: dict[str, Set[str]] | None = None

    def trees_with(self, uuids: Set[str]) -> list[str]:
        """The root uuids of the trees whose records have one of these providers."""
        with self._lock:
            if self._members is None:
                self._members = {}
                for root_uuid in filter(is_uuid, self._records.trees()):
                    self._replace(root_uuid, self._read(root_uuid))
            found = (self._trees.get(uuid, set()) for uuid in uuids)
            return sorted(set().union(*found))

    def take(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace what is known of a tree."""
        with self._lock:
            if self._members is not None:
                self._replace(root_uuid, frozenset(record.providers))

    def _replace(self, root_uuid: str, uuids: Set[str]) -> None:
        assert self._members is not None, "the records were read"
        for gone in self._members.get(root_uuid, frozenset()) - uuids:
            self._trees[gone].discard(root_uuid)
        for uuid in uuids:
            self._trees.setdefault(uuid, set()).add(root_uuid)
        self._members[root_uuid] = uuids

    def _read(self, root_uuid: str) -> Set[str]:
        try:
            record = self._records.load(root_uuid)
        except PlacementError:
            # A damaged record of another tree holds up no report of this one.
            return frozenset()
        return frozenset() if record is None else frozenset(record.providers)
