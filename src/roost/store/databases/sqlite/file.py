"""The file of an SQLite database.

Only its owner may read the file. A file that is no database of Placement is refused before a
connection would change it. A file that was replaced or removed is noticed at the next use.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.pool import NullPool

from roost.store.connections.driver_errors import advice, reason
from roost.store.connections.errors import DatabaseUnusable
from roost.store.migrations.histories import HISTORIES
from roost.store.migrations.schema import SchemaState, SchemaStatus, read_status
from roost.store.tables import metadata, resource_providers

_LOG = logging.getLogger(__name__)

_OPENED = "roost.opened"

FileIdentity = tuple[int, int]
"""Device and inode."""


def watch_file(engine: Engine, path: str) -> None:
    """Close a connection of the engine before its use if its file was replaced or removed.

    SQLite silently continues to read and write such a file. The comparison takes about two
    microseconds.
    """
    file = _WatchedFile(path)
    event.listen(engine, "do_connect", file.before_connect)
    event.listen(engine, "checkout", file.before_use)
    _watched[engine] = file


def currency_check(engine: Engine) -> Callable[[Connection], bool]:
    """A function that says whether a connection of the engine still has the file of that name."""
    file = _watched.get(engine)
    return (lambda _: True) if file is None else (lambda connection: file.has(connection.info))


def make_file(path: str) -> None:
    """Make an empty file that no other user can read; SQLite gives `-wal` and `-shm` its mode.

    A failure is ignored: SQLite then fails with the better reason.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def identity(path: str) -> FileIdentity | None:
    """What distinguishes a file from a later one of the same name; `None` without a file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class _WatchedFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._log_path = f"{os.path.realpath(path)}-wal"
        self._lock = threading.Lock()
        # The file and the write-ahead log that the engine opened last.
        self._file: FileIdentity | None = None
        self._log: FileIdentity | None = None
        # The write-ahead log of an earlier file. While it is open, no new file has its inode.
        self._stale_log: int | None = None

    def before_connect(self, _dialect: Any, record: Any, _args: Any, _parameters: Any) -> None:
        """Make the file the first time; record which file is about to be opened."""
        with self._lock:
            if self._file is None:
                make_file(self._path)
            found = self._usable_file()
            if self._file not in (None, found):
                _LOG.warning("The file %s was replaced: opening the new file", self._path)
            self._file, self._log = found, None
        if record is not None:
            record.info[_OPENED] = found

    def before_use(self, _connection: Any, record: Any, _proxy: Any) -> None:
        """Have the connection closed if another file has the name now."""
        if not self.has(record.info):
            raise InvalidatePoolError

    def has(self, info: Mapping[Any, Any]) -> bool:
        """Whether the file that a connection opened still has the name."""
        if info.get(_OPENED) == identity(self._path):
            if self._log is None:
                self._log = identity(self._log_path)
            return True
        with self._lock:
            self._note_stale_log()
        return False

    def _usable_file(self) -> FileIdentity | None:
        found = identity(self._path)
        if found is None and self._file is not None:
            raise sqlite3.OperationalError(
                f"the file {self._path} is missing. Put it back, or restart the service"
            )
        if self._stale_log is not None:
            status = os.fstat(self._stale_log)
            left = identity(self._log_path) == (status.st_dev, status.st_ino)
            if left and found != self._file:
                raise sqlite3.OperationalError(
                    f"{self._path} was replaced, but {self._log_path} still belongs to the earlier "
                    f"file. Remove {self._log_path} and {self._path}-shm"
                )
            os.close(self._stale_log)
            self._stale_log = None
        return found

    def _note_stale_log(self) -> None:
        """Record that the log of the earlier file is still there: it would corrupt the new file."""
        if self._log is None or self._log != identity(self._log_path):
            return
        if self._stale_log is None and os.path.getsize(self._log_path):
            self._stale_log = os.open(self._log_path, os.O_RDONLY | os.O_CLOEXEC)


_watched: WeakKeyDictionary[Engine, _WatchedFile] = WeakKeyDictionary()


def prepare_file(file: Path) -> None:
    """Make the directory of a new file; refuse a file that cannot be used."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(
            f"The directory {file.parent} for the database cannot be made: {error.strerror}. "
            "Name another file, or let this user make the directory."
        ) from None
    if file.exists():
        _check_file(file)
    elif not os.access(file.parent, os.W_OK | os.X_OK):
        raise DatabaseUnusable(
            f"The database file {file} cannot be made: this user may not write the directory "
            f"{file.parent}. Let this user write it, or name another file."
        )


def require_file(file: Path) -> None:
    """Refuse a file that does not exist: a connection would make it."""
    if not file.exists():
        raise DatabaseUnusable(
            f"There is no database at {file} yet. Make one with `roost serve` or `roost db sync`."
        )
    _check_file(file)


def _check_file(file: Path) -> None:
    """Refuse a file that is no database of Placement, without any change to the file."""
    if not file.is_file():
        kind = "a directory" if file.is_dir() else "no regular file"
        raise DatabaseUnusable(f"The database file {file} is {kind}. Name a file.")
    if not os.access(file, os.R_OK | os.W_OK):
        raise DatabaseUnusable(
            f"The database file {file} may not be written by this user. Run Roost as the owner of "
            "the file, or let this user write it."
        )
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise DatabaseUnusable(
            f"The directory {file.parent} may not be written by this user, and SQLite keeps its "
            f"log beside {file.name}. Let this user write the directory."
        )
    foreign = _foreign_tables(file)
    if foreign:
        raise DatabaseUnusable(
            f"The database file {file} belongs to another application: it has tables "
            f"({', '.join(sorted(foreign)[:3])}), but no revision of Placement's schema. Name "
            "another file."
        )


def _foreign_tables(file: Path) -> set[str]:
    """The tables of another application; empty for an empty file or a database of Placement."""
    try:
        status, tables = _look(file, leave_no_trace=True)
    except DBAPIError:
        # Another process may have written at this moment.
        status, tables = _look_or_explain(file)
    recorded = status.placement_revision is not None or status.roost_revision is not None
    if recorded and status.state is not SchemaState.UNKNOWN:
        return set()
    foreign = tables - {*metadata.tables, *(history.version_table for history in HISTORIES)}
    if resource_providers.name in tables:
        return set() if recorded else foreign
    # Other applications have tables `users` and `projects` as well.
    return tables - {history.version_table for history in HISTORIES} or foreign


def _look_or_explain(file: Path) -> tuple[SchemaStatus, set[str]]:
    try:
        return _look(file, leave_no_trace=False)
    except DBAPIError as error:
        url = sa.make_url(f"sqlite:///{file}")
        said = reason(error, url)
        raise DatabaseUnusable(
            f"The database file {file} cannot be read: {said}. {advice(said, url)}"
        ) from None


def _look(file: Path, *, leave_no_trace: bool) -> tuple[SchemaStatus, set[str]]:
    """The status and the tables of the file, unchanged; if wanted, without new files beside it."""
    path = file.resolve()
    # Without a log beside it, the file is complete, and SQLite needs to make none.
    complete = leave_no_trace and not Path(f"{path}-wal").exists()
    address = f"{path.as_uri()}?{'immutable=1' if complete else 'mode=ro'}"
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, timeout=10),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        return read_status(connection), set(sa.inspect(connection).get_table_names())
