"""Stores of ownership records, in files or in memory; locks and records of the owners in them."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

import platformdirs

from roost.client.errors import NotConfigured, PlacementError, RecordsInUse, RecordsUnavailable
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.record import (
    OwnedProvider,
    OwnershipRecord,
    parsed_record,
    rendered_record,
)
from roost.client.whole_file import DRAFT, replace_text
from roost.model.identifiers import is_uuid
from roost.model.secrets import shown_words
from roost.model.trees.owner_names import is_owner_trait

_LOG = logging.getLogger(__name__)

_ATTEMPTS = 5
_ATTEMPT_SECONDS = 0.02

COMMAND_LENGTH_MAX = 100
"""How many characters of a command line a message has."""

# Names of owners have no dot.
_LOCK_ENDING = ".lock"
_DRAFT_SECONDS = 3600
_PASSING_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE})


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock; its command is empty if the process shows none.

    The command has no secrets.
    """

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id}" + (f" ({self.command})" if self.command else "")


def lock_holder(path: Path) -> LockHolder | None:
    """The process that holds the lock; `None` if none holds it.

    A process that crashed leaves its number behind. So the lock decides, not the number.
    """
    try:
        with path.open() as file:
            process_id = file.read().strip()
            if not process_id.isdecimal() or _can_be_locked(file.fileno()):
                return None
    except OSError:
        return None
    return LockHolder(int(process_id), _command_of(process_id))


def _can_be_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held_lock(path: Path) -> Iterator[None]:
    """Hold the lock; raises `RecordsInUse` if another process holds it.

    The kernel releases the lock when its process ends, however that happens.
    """
    with _opened(path) as handle:
        if not _is_locked(handle):
            raise RecordsInUse(_described(path))
        _write(handle, f"{os.getpid()}\n")
        try:
            yield
        finally:
            _write(handle, "")


def _is_locked(handle: int) -> bool:
    """Lock a file; whether that succeeded."""
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # `lock_holder` in another process may have the lock for a moment.
            time.sleep(_ATTEMPT_SECONDS)
        else:
            return True
    return False


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file of the lock; its directory if the file system takes no new files."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        handle = os.open(path if path.exists() else _existing(path.parent), os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _existing(directory: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    return next(found for found in (directory, *directory.parents) if found.is_dir())


def _write(handle: int, text: str) -> None:
    """Replace the text of the file; a full disk leaves it empty."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def _described(path: Path) -> str:
    process = lock_holder(path) or "another process"
    return (
        f"The ownership records in {path.with_suffix('')} are in use by {process}. Two processes "
        "with one owner undo each other: wait until it ends, stop it, or give this one another "
        "--owner"
    )


def _command_of(process_id: str) -> str:
    """The command line of a process; empty if the process shows none."""
    try:
        words = Path("/proc", process_id, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return _shortened([word.decode(errors="replace") for word in words])[:COMMAND_LENGTH_MAX]


def _shortened(words: list[str]) -> str:
    """A command line as an operator types it, without secrets.

    >>> _shortened(["/opt/bin/python3", "/opt/bin/roost", "agent", "--token", "geheim", ""])
    'roost agent --token ***'
    """
    if len(words) > 1 and Path(words[0]).name.startswith("python") and "/" in words[1]:
        words = [Path(words[1]).name, *words[2:]]
    return " ".join(shown_words(words)).strip()


class OwnershipStore(ABC):
    """The records of one owner, by the uuid of the tree's root."""

    @abstractmethod
    def load(self, root_uuid: str) -> OwnershipRecord | None:
        """The record of a tree; `None` if there is none."""

    @abstractmethod
    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Replace the record of a tree, in full or not at all; an empty record is removed."""

    @abstractmethod
    def trees(self) -> list[str]:
        """The root uuids of all trees that have a record."""

    def keep(self, root_uuid: str, record: OwnershipRecord) -> None:
        """Remember a record that could not be saved; `load` returns it, and saves it if it can."""
        self.save(root_uuid, record)

    def trees_with(self, uuids: Set[str]) -> list[str]:
        """The root uuids of the trees whose records have one of these providers."""
        return [each for each in self.trees() if not uuids.isdisjoint(self._providers(each))]

    def _providers(self, root_uuid: str) -> Set[str]:
        """The providers of a record. A damaged record of one tree holds up no report of others."""
        try:
            record = self.load(root_uuid)
        except PlacementError:
            return frozenset()
        return frozenset() if record is None else record.providers.keys()


class FileOwnershipStore(OwnershipStore):
    """Keeps one small JSON file for each tree, in one directory for each owner.

    A full or broken disk raises `RecordsUnavailable`, which may pass. A wrong directory raises
    `NotConfigured`.
    """

    def __init__(self, owner: str, directory: Path | None = None) -> None:
        self.place = directory or default_directory()
        self._directory = self.place / owner_name(owner)
        self._unsaved: dict[str, OwnershipRecord] = {}
        # The trees that have ever had a provider; `None` before the first question.
        self._trees_of: dict[str, set[str]] | None = None
        # To read a record may save it.
        self._lock = RLock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the records for this process alone, after a look whether they can be saved.

        Two processes with the records of one owner would delete each other's providers.
        """
        self._prepare()
        with held_lock(self._directory.with_suffix(_LOCK_ENDING)):
            yield

    def holder(self) -> LockHolder | None:
        """The process that holds the records; `None` if none holds them."""
        return lock_holder(self._directory.with_suffix(_LOCK_ENDING))

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
        self._note(root_uuid, record.providers.keys())

    def keep(self, root_uuid: str, record: OwnershipRecord) -> None:
        self._unsaved[root_uuid] = record
        self._note(root_uuid, record.providers.keys())

    def trees_with(self, uuids: Set[str]) -> list[str]:
        # One process at a time writes the records, so this one reads all of them once.
        with self._lock:
            if self._trees_of is None:
                self._trees_of = {}
                for root_uuid in filter(is_uuid, self.trees()):
                    self._note(root_uuid, self._providers(root_uuid))
            found = set().union(*(self._trees_of.get(uuid, ()) for uuid in uuids))
        return [each for each in sorted(found) if not uuids.isdisjoint(self._providers(each))]

    def _note(self, root_uuid: str, uuids: Set[str]) -> None:
        with self._lock:
            if self._trees_of is not None:
                for uuid in uuids:
                    self._trees_of.setdefault(uuid, set()).add(root_uuid)

    def trees(self) -> list[str]:
        # Several threads may save trees at once, so this one looks at a copy.
        unsaved = {uuid for uuid, record in dict(self._unsaved).items() if record.providers}
        return sorted(unsaved.union(path.stem for path in self._directory.glob("*.json")))

    def _path(self, root_uuid: str) -> Path:
        if not is_uuid(root_uuid):
            raise NotConfigured(
                f"The server has a provider whose uuid is {root_uuid!r}, which is no UUID"
            )
        return self._directory / f"{root_uuid}.json"


class InMemoryOwnershipStore(OwnershipStore):
    """Keeps the records until the process ends."""

    def __init__(self) -> None:
        self._records: dict[str, OwnershipRecord] = {}

    def load(self, root_uuid: str) -> OwnershipRecord | None:
        return self._records.get(root_uuid)

    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        self._records.pop(root_uuid, None)
        if record.providers:
            self._records[root_uuid] = record

    def trees(self) -> list[str]:
        return sorted(self._records)


def default_directory() -> Path:
    """The state directory that systemd gives a service, else that of the user."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given) if given else platformdirs.user_state_path("roost") / "owners"


def _may_pass(error: OSError) -> bool:
    """Whether an error of the disk may end without a change of the configuration."""
    return error.errno in _PASSING_ERRORS


def _failure(error: OSError, message: str) -> PlacementError:
    return (RecordsUnavailable if _may_pass(error) else NotConfigured)(message)


def _remove_old_drafts(directory: Path) -> None:
    """Remove the drafts of processes that ended while they saved a record."""
    for draft in directory.glob(f"*{DRAFT}"):
        with suppress(OSError):
            # A running process may still be writing a younger draft.
            if draft.lstat().st_mtime < time.time() - _DRAFT_SECONDS:
                draft.unlink()


@dataclass(frozen=True, slots=True)
class RecordedOwner:
    """What the records of one owner claim, by the uuid of the tree's root.

    `problems` has a sentence for each record that cannot be read.
    """

    name: str
    trees: Mapping[str, OwnershipRecord]
    written_at: float | None
    holder: LockHolder | None
    problems: tuple[str, ...] = ()

    def providers(self) -> Iterator[tuple[str, OwnedProvider]]:
        """All providers of which the owner owns something, by uuid."""
        for record in self.trees.values():
            yield from record.providers.items()

    @property
    def servers(self) -> list[str]:
        """The servers that the records belong to; those of older versions name none."""
        named = (record.server for record in self.trees.values())
        return sorted({str(server) for server in named if server is not None})

    def __bool__(self) -> bool:
        return bool(self.trees or self.holder or self.problems)


def owned_traits(owned: OwnedProvider) -> list[str]:
    """The traits that an owner owns of a provider, without its own mark."""
    return sorted(trait for trait in owned.traits if not is_owner_trait(trait))


def owners_in(directory: Path) -> list[str]:
    """The names of the owners that have a directory here; none without the directory."""
    return sorted(path.name for path in _files(directory) if path.is_dir() and _is_owner(path.name))


def read_owner(name: str, directory: Path) -> RecordedOwner:
    """The records of an owner. A record that cannot be read is a problem of its own."""
    store = FileOwnershipStore(name, directory)
    trees: dict[str, OwnershipRecord] = {}
    problems: list[str] = []
    # The store takes a directory that it cannot read for an empty one.
    _files(directory / name)
    for root_uuid in filter(is_uuid, store.trees()):
        try:
            record = store.load(root_uuid)
        except PlacementError as error:
            problems.append(str(error))
        else:
            # Another process may have removed it just now.
            if record is not None:
                trees[root_uuid] = record
    return RecordedOwner(name, trees, store.written_at(), store.holder(), tuple(problems))


def _files(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NotConfigured(
            f"Cannot read the ownership records in {directory}: {error.strerror}; become a user "
            "that may read them, or choose another directory with --records"
        ) from error


def _is_owner(name: str) -> bool:
    try:
        return owner_name(name) == name
    except NotConfigured:
        return False
