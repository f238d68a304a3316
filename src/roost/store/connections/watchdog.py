"""The watchdog: ends connections whose server is silent for too long.

A frozen server keeps its sockets open, and a driver may wait for ever. Neither keepalives nor the
timeouts of the server help. So one thread in each process shuts down the sockets of connections
that have waited too long. Their drivers then report a lost connection.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, event

# How often the thread looks. A wait exceeds its limit by this at most.
_PERIOD_SECONDS = 0.1
# After this number of periods without a connection to watch, the thread ends.
_IDLE_PERIODS_MAX = 100

_SOCKET = "socket"
_WATCH = "watch"


class Watch:
    """One use of a connection, and since when its server has been silent."""

    __slots__ = ("descriptor", "expired", "inode", "seconds", "since")

    def __init__(self, descriptor: int, inode: int, seconds: float) -> None:
        self.descriptor = descriptor
        self.inode = inode
        self.seconds = seconds
        self.since = time.monotonic()
        self.expired = False

    def end(self) -> None:
        """Shut the socket down, unless its descriptor belongs to another socket by now."""
        with suppress(OSError):
            # The copy keeps its socket, whatever happens to the original descriptor.
            copy = os.dup(self.descriptor)
            try:
                if os.fstat(copy).st_ino == self.inode:
                    self.expired = True
                    _shut_down(copy)
            finally:
                os.close(copy)


def _shut_down(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as opened:
        opened.shutdown(socket.SHUT_RDWR)


class _Watchdog:
    """The thread of one process, and the connections that it watches."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything: a child process has no threads of its parent."""
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        self._runs = False

    def add(self, watch: Watch) -> None:
        with self._lock:
            self._watches.add(watch)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="roost-watchdog", daemon=True).start()

    def remove(self, watch: Watch) -> None:
        # Under the lock: afterwards the thread no longer touches the socket.
        with self._lock:
            self._watches.discard(watch)

    def end_silent(self, seconds: float) -> None:
        """End the connections whose server has been silent for longer than this."""
        with self._lock:
            now = time.monotonic()
            for watch in self._watches:
                if now - watch.since > min(seconds, watch.seconds) and not watch.expired:
                    watch.end()

    def _run(self) -> None:
        idle = 0
        while True:
            time.sleep(_PERIOD_SECONDS)
            with self._lock:
                idle = 0 if self._watches else idle + 1
                if idle > _IDLE_PERIODS_MAX:
                    self._runs = False
                    return
            self.end_silent(math.inf)


_WATCHDOG = _Watchdog()
os.register_at_fork(after_in_child=_WATCHDOG.begin_anew)


end_silent = _WATCHDOG.end_silent


def begin_watch(connection: Connection, seconds: float) -> Watch | None:
    """Limit the silence of the server to `seconds` until `end_watch`; `None` for a file."""
    found: tuple[int, int] | None = connection.info.get(_SOCKET)
    if found is None:
        return None
    watch = Watch(*found, seconds)
    connection.info[_WATCH] = watch
    _WATCHDOG.add(watch)
    return watch


def end_watch(watch: Watch | None) -> None:
    """Watch the connection no longer."""
    if watch is not None:
        _WATCHDOG.remove(watch)


class _Opening(threading.local):
    """The connection that a thread is opening."""

    seconds: float | None = None
    watch: Watch | None = None


_OPENING = _Opening()


@contextmanager
def opening_watched(seconds: float) -> Iterator[None]:
    """Limit the silence of the server while this thread opens a connection to it."""
    _OPENING.seconds = seconds
    try:
        yield
    finally:
        watch, _OPENING.seconds, _OPENING.watch = _OPENING.watch, None, None
        end_watch(watch)


def wait_for_ever(connection: Connection) -> None:
    """Give the server unlimited time, for work like a migration."""
    watch = connection.info.get(_WATCH)
    if watch is not None:
        watch.seconds = math.inf


def make_watchable(engine: Engine, socket_of: Callable[[Any], Any]) -> None:
    """Record the sockets of an engine's connections, and when they begin to wait.

    `socket_of` gives the object that knows the descriptor of a driver's connection.
    """

    # Before other listeners, because these wait for the server as well.
    @event.listens_for(engine, "connect", insert=True)
    def note(dbapi_connection: Any, record: Any) -> None:
        descriptor = socket_of(dbapi_connection).fileno()
        found = descriptor, os.fstat(descriptor).st_ino
        record.info[_SOCKET] = found
        if _OPENING.seconds is not None:
            _OPENING.watch = Watch(*found, _OPENING.seconds)
            _WATCHDOG.add(_OPENING.watch)

    @event.listens_for(engine, "after_cursor_execute")
    def end(connection: Connection, *_rest: Any) -> None:
        end_wait(connection)

    @event.listens_for(engine, "commit")
    @event.listens_for(engine, "rollback")
    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, *_rest: Any) -> None:
        begin_wait(connection)


def begin_wait(connection: Connection) -> None:
    """Record that the process waits for the server from now on."""
    watch = None if connection.invalidated else connection.info.get(_WATCH)
    if watch is not None:
        watch.since = time.monotonic()


def end_wait(connection: Connection) -> None:
    """Record that until the next statement, the process works and the server does not."""
    watch = None if connection.invalidated else connection.info.get(_WATCH)
    if watch is not None:
        watch.since = math.inf
