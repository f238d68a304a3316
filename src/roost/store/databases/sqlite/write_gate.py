"""A queue for the writers of SQLite, which has one writer at a time and no queue."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from roost.store.connections.errors import Busy, DatabaseUnusable
from roost.store.databases.sqlite.file import FileIdentity, identity

_LOG = logging.getLogger(__name__)

_POLL_SECONDS = 0.001
# After this number of looks at an open gate, the waiters in front count as asleep: their process is
# stopped, or too busy to enter.
_OPEN_LOOKS_MAX = 30
_LOOK_AT_FILE_SECONDS = 1
_OPEN = os.O_RDWR | os.O_CLOEXEC
# Another process has locked a byte. Every other error means that the file system has no such locks.
_LOCKED = (errno.EAGAIN, errno.EACCES)
# A thread that finds so many bytes locked, each of another moment, has met a file system that locks
# nothing and refuses everything.
_MOMENTS_MAX = 1000
# Bytes that no writer locks: the clock does not get there.
_PROBED_BYTES = range(1 << 62, (1 << 63) - 1)
# The structure `flock` of the operating system: type, whence, first byte, length, process.
_FLOCK = struct.Struct("hhqqi0q")


class WriteGate:
    """Admits one thread of one process at a time, in the order of their arrival.

    The queue consists of locks on the bytes of a file beside the database. A waiter locks the byte
    whose offset is the nanosecond of its arrival. A writer locks all bytes up to that offset, which
    succeeds when no waiter is before it. Processes share the clock. The operating system frees the
    locks of a process that was killed.

    Without a queue, SQLite makes waiting writers sleep and try again. An unlucky writer waits for
    seconds and then fails.
    """

    def __init__(self, path: str, seconds_max: float) -> None:
        """`path` is that of the locked file, beside the file of the database."""
        self._path = path
        self._seconds_max = seconds_max
        # Protects the members below.
        self._lock = threading.Lock()
        # The threads of this process, in order. Only the first one looks at the file.
        self._waiters: deque[_Waiter] = deque()
        self._file: int | None = None
        self._identity: FileIdentity | None = None
        self._look_at = 0.0
        self._process_id: int | None = None
        # Waiters of other processes that arrived before this moment count as asleep.
        self._awake_from = 0

    @contextmanager
    def passed(self, deadline: float | None = None) -> Iterator[None]:
        """Be the only writer; `Busy` after the deadline, a value of `time.monotonic`."""
        began = time.monotonic()
        latest = began + self._seconds_max
        deadline = latest if deadline is None else min(deadline, latest)
        waiter = self._queue_up()
        try:
            if not waiter.is_first.acquire(timeout=max(0, deadline - began)):
                raise _busy(began)
            while not self._try(waiter):
                if time.monotonic() > deadline:
                    raise _busy(began)
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            self._leave(waiter)

    def probe(self) -> None:
        """Raise `DatabaseUnusable` unless two processes would keep each other out."""
        byte = random.choice(_PROBED_BYTES)
        files: list[int] = []
        try:
            # Two openings of a file keep each other out as two processes do.
            files += [_open_beside_database(self._path)]
            files += [_open_beside_database(self._path)]
            found = [_lock_bytes(file, byte, byte) for file in files]
        except OSError as error:
            raise _unlockable(self._path, error) from error
        finally:
            for file in files:
                os.close(file)
        if found != [True, False]:
            reason = "its locks keep no process out" if found[0] else "every byte is locked"
            raise _unlockable(self._path, OSError(errno.ENOLCK, reason))

    def close(self) -> None:
        """Close the file. The next writer opens it again."""
        with self._lock:
            self._forget_file()

    def _queue_up(self) -> _Waiter:
        with self._lock:
            file = self._opened()
            alone = not self._waiters
            try:
                arrived, is_inside = _arrival(file, alone=alone)
            except OSError as error:
                raise _unlockable(self._path, error) from error
            waiter = _Waiter(file, arrived, is_inside)
            if not alone:
                waiter.is_first.acquire()
            self._waiters.append(waiter)
            return waiter

    def _try(self, waiter: _Waiter) -> bool:
        """Whether the first waiter of this process is inside now."""
        if not waiter.is_inside:
            try:
                self._look(waiter)
            except OSError as error:
                raise _unlockable(self._path, error) from error
        return waiter.is_inside

    def _look(self, waiter: _Waiter) -> None:
        """Enter if no waiter is in front."""
        # A blocking lock has no timeout, and only the main thread could get a signal to interrupt
        # it. So the thread polls.
        if _lock_bytes(waiter.file, 0, waiter.arrived):
            self._awake_from = 0
            waiter.is_inside = True
        elif _is_locked(waiter.file, 0):
            # A writer is inside. `open_looks` stays: otherwise a busy process could pass again and
            # again between two looks of this thread.
            pass
        elif 0 < self._awake_from <= waiter.arrived or waiter.open_looks >= _OPEN_LOOKS_MAX:
            self._overtake(waiter)
        else:
            waiter.open_looks += 1

    def _overtake(self, waiter: _Waiter) -> None:
        """Enter before waiters that are asleep: byte 0 keeps them out when they wake."""
        if waiter.open_looks >= _OPEN_LOOKS_MAX:
            self._awake_from = waiter.arrived
        if _lock_bytes(waiter.file, 0, 0):
            if _lock_bytes(waiter.file, self._awake_from, waiter.arrived):
                waiter.is_inside = True
            else:
                _unlock_bytes(waiter.file, 0, 0)

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            self._unlock(waiter)
            is_first = self._waiters[0] is waiter
            self._waiters.remove(waiter)
            if is_first and self._waiters:
                self._waiters[0].is_first.release()
            if waiter.file != self._file:
                self._close(waiter.file)

    def _unlock(self, waiter: _Waiter) -> None:
        """Free the bytes of a waiter, also if the file system fails: what it wrote is written."""
        try:
            _unlock_bytes(waiter.file, 0 if waiter.is_inside else waiter.arrived, waiter.arrived)
        except OSError as error:
            _LOG.error("%s cannot be unlocked, and is closed instead: %s", self._path, error)
            if waiter.file == self._file:
                # The next writer opens the file anew. The last waiter closes this one.
                self._file = None

    def _opened(self) -> int:
        if self._process_id != os.getpid():
            # After a fork, a lock on the inherited file would be one of parent and child together.
            self._waiters.clear()
            self._forget_file()
            self._process_id = os.getpid()
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_AT_FILE_SECONDS
            if self._identity != identity(self._path):
                self._forget_file()
        if self._file is None:
            self._file = _open_beside_database(self._path)
            self._identity = identity(self._path)
        return self._file

    def _forget_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            self._close(file)

    def _close(self, file: int) -> None:
        """Close the file unless a waiter needs it."""
        if all(waiter.file != file for waiter in self._waiters):
            os.close(file)


class _Waiter:
    """A thread at the gate."""

    __slots__ = ("arrived", "file", "is_first", "is_inside", "open_looks")

    def __init__(self, file: int, arrived: int, is_inside: bool) -> None:
        self.file = file
        self.arrived = arrived
        self.is_inside = is_inside
        self.is_first = threading.Lock()
        self.open_looks = 0


def _arrival(file: int, *, alone: bool) -> tuple[int, bool]:
    """The moment of an arrival, whose byte is locked, and whether the thread is inside at once."""
    for _ in range(_MOMENTS_MAX):
        arrived = time.monotonic_ns()
        if alone and _lock_bytes(file, 0, arrived):
            return arrived, True
        # A writer may have locked this byte just now. Then the thread tries the byte of the next
        # moment.
        if _lock_bytes(file, arrived, arrived):
            return arrived, False
    raise OSError(errno.ENOLCK, "every byte is locked")


def _unlockable(path: str, error: OSError) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"{path} cannot be locked: {error.strerror}. The locks of this file order the writers of "
        "the SQLite database beside it. Put the database on a local disk, whose file system has "
        "locks of open files, or use PostgreSQL or MariaDB."
    )


def _busy(began: float) -> Busy:
    waited = time.monotonic() - began
    return Busy(f"other writers have kept this one waiting for {waited:.1f} seconds")


def _lock_bytes(file: int, first: int, last: int) -> bool:
    """Lock these bytes unless another process has locked any of them."""
    wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, last - first + 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)
    except OSError as error:
        if error.errno in _LOCKED:
            return False
        raise
    return True


def _unlock_bytes(file: int, first: int, last: int) -> None:
    free = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, first, last - first + 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, free)


def _is_locked(file: int, byte: int) -> bool:
    """Whether another process has locked this byte."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    kind, *_ = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))
    return bool(kind != fcntl.F_UNLCK)


def _open_beside_database(path: str) -> int:
    try:
        try:
            file = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(path, _OPEN)
    except OSError as error:
        raise DatabaseUnusable(
            f"{path} cannot be opened: {error.strerror}. The file orders the writers of the SQLite "
            "database beside it, and must belong to the user of the service."
        ) from error
    # All users that may write the database may wait at its gate, whichever user makes the file.
    with suppress(OSError):
        database = os.stat(path.removesuffix("-writer"))
        os.fchmod(file, database.st_mode & 0o666)
        os.fchown(file, database.st_uid, database.st_gid)
    return file
