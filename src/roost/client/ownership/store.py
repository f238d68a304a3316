"""Stores of ownership records: files, or the memory of the process."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import platformdirs

from roost.client.errors import NotConfigured, PlacementError, RecordsUnavailable
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.record_body import parsed_record, rendered_record
from roost.client.ownership.record_lock import LockHolder, held_lock, lock_holder
from roost.client.ownership.tree_members import TreeMembers
from roost.client.whole_file import DRAFT, replace_text
from roost.model.identifiers import is_uuid

# Names of owners have no dot.
_LOCK = ".lock"
_DRAFT_SECONDS = 3600
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE})

_LOG = logging.getLogger(__name__)


class OwnershipStore(Protocol):
    """The records of one owner, by the uuid of the tree's root."""

    def load(self, root_uuid: str) -> OwnershipRecord | None:
        """The record of a tree; `None` if there is none."""
        ...

    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace the record of a tree; an empty record is removed."""
        ...

    def keep(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Remember a record that could not be saved; `load` returns it, and saves it if it can."""
        ...

    def trees(self) -> list[str]:
        """The root uuids of all trees that have a record."""
        ...

    def trees_with(self, uuids: Set[str]) -> list[str]:
        """The root uuids of the trees whose records have one of these providers."""
        ...


class FileOwnershipStore:
    """Keeps one small JSON file for each tree, in one directory for each owner.

    A full or broken disk raises `RecordsUnavailable`, which may pass. A wrong directory raises
    `NotConfigured`.
    """

    def __init__(self, owner: str, directory: Path | None = None) -> None:
        self.place = directory or default_directory()
        self._directory = self.place / owner_name(owner)
        self._unsaved: dict[str, OwnershipRecord] = {}
        self._members = TreeMembers(self)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the records for this process alone, after a look whether they can be saved.

        Two processes with the records of one owner would delete each other's providers.
        """
        self._prepare()
        with held_lock(self._directory.with_suffix(_LOCK)):
            yield

    def holder(self) -> LockHolder | None:
        """The process that holds the records; `None` if none holds them."""
        return lock_holder(self._directory.with_suffix(_LOCK))

    def written_at(self) -> float | None:
        """When a record was last saved, in seconds since the epoch; `None` without records."""
        times = []
        for path in self._directory.glob("*.json"):
            # The process that holds the records may remove one meanwhile.
            with suppress(OSError):
                times.append(path.stat().st_mtime)
        return max(times, default=None)

    def _prepare(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._directory):
                pass
            _remove_old_drafts(self._directory)
        except OSError as error:
            if not _may_pass(error):
                raise NotConfigured(
                    f"Cannot save ownership records in {self._directory}: {error.strerror}; "
                    "choose another directory with --records"
                ) from error
            _LOG.warning(
                "Ownership records cannot be saved in %s: %s", self._directory, error.strerror
            )

    def load(self, root_uuid: str) -> OwnershipRecord | None:
        """The record of a tree; `None` if there is none."""
        if root_uuid in self._unsaved:
            record = self._unsaved[root_uuid]
            with suppress(RecordsUnavailable):
                self.save(root_uuid, record)
            return record if record.providers else None
        path = self._path(root_uuid)
        try:
            body = json.loads(path.read_text())
            record = parsed_record(body)
            if rendered_record(record) != body:
                raise ValueError("its content is not an ownership record")
            return record
        except FileNotFoundError:
            return None
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise NotConfigured(
                f"The ownership record {path} is damaged ({error}). Delete the file: its owner "
                "then owns again what it declares on providers that it created"
            ) from error
        except OSError as error:
            raise _failure(
                error,
                f"Cannot read the ownership record {path}: {error.strerror}; make the file "
                "readable, or choose another directory with --records",
            ) from error

    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace the record of a tree, in full or not at all."""
        path = self._path(root_uuid)
        try:
            if record.providers:
                path.parent.mkdir(parents=True, exist_ok=True)
                text = json.dumps(rendered_record(record), indent=1, sort_keys=True)
                replace_text(path, text, durable=True)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise _failure(
                error,
                f"Cannot save the ownership record {path}: {error.strerror}; make room there, or "
                "choose another directory with --records",
            ) from error
        self._unsaved.pop(root_uuid, None)
        self._members.take(root_uuid, record)

    def keep(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Remember a record that could not be saved; `load` returns it, and saves it if it can."""
        self._unsaved[root_uuid] = record
        self._members.take(root_uuid, record)

    def trees_with(self, uuids: Set[str]) -> list[str]:
        """The root uuids of the trees whose records have one of these providers.

        The store reads all records once. One process at a time writes them.
        """
        return self._members.trees_with(uuids)

    def trees(self) -> list[str]:
        """The root uuids of all trees that have a record."""
        # Several threads may save trees at once, so this one looks at a copy.
        unsaved = {uuid for uuid, record in dict(self._unsaved).items() if record.providers}
        return sorted(unsaved.union(path.stem for path in self._directory.glob("*.json")))

    def _path(self, root_uuid: str) -> Path:
        if not is_uuid(root_uuid):
            raise NotConfigured(
                f"The server has a provider whose uuid is {root_uuid!r}, which is no UUID"
            )
        return self._directory / f"{root_uuid}.json"


class InMemoryOwnershipStore:
    """Keeps the records until the process ends."""

    def __init__(self) -> None:
        self._records: dict[str, OwnershipRecord] = {}

    def load(self, root_uuid: str) -> OwnershipRecord | None:
        """The record of a tree; `None` if there is none."""
        return self._records.get(root_uuid)

    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace the record of a tree; an empty record is removed."""
        self._records.pop(root_uuid, None)
        if record.providers:
            self._records[root_uuid] = record

    def keep(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace the record of a tree."""
        self.save(root_uuid, record)

    def trees(self) -> list[str]:
        """The root uuids of all trees that have a record."""
        return sorted(self._records)

    def trees_with(self, uuids: Set[str]) -> list[str]:
        """The root uuids of the trees whose records have one of these providers."""
        return sorted(
            root_uuid
            for root_uuid, record in self._records.items()
            if not uuids.isdisjoint(record.providers)
        )


def default_directory() -> Path:
    """The state directory that systemd gives a service, else that of the user."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given) if given else platformdirs.user_state_path("roost") / "owners"


def _may_pass(error: OSError) -> bool:
    """Whether an error of the disk may end without a change of the configuration."""
    return error.errno in _PASSING


def _failure(error: OSError, message: str) -> PlacementError:
    return (RecordsUnavailable if _may_pass(error) else NotConfigured)(message)


def _remove_old_drafts(directory: Path) -> None:
    """Remove the drafts of processes that ended while they saved a record."""
    for draft in directory.glob(f"*{DRAFT}"):
        with suppress(OSError):
            # A running process may still be writing a younger draft.
            if draft.lstat().st_mtime < time.time() - _DRAFT_SECONDS:
                draft.unlink()
