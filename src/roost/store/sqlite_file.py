"""The file of connections to SQLite: only its owner may read it, and its replacement is noticed."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import InvalidatePoolError

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
