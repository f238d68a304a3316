"""The watchdog: ends connections whose server is silent for too long.

A server that is frozen keeps its sockets open, and a driver may wait for it for ever. Neither
keepalives nor the server's own time-outs help there. So one thread in each process shuts down
the sockets of connections that have waited too long; their drivers take it for a lost connection.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, event

# How often the thread looks: a wait lasts that much longer than allowed at most.
_PERIOD_SECONDS = 0.1
# Without anything to watch for so long, the thread ends.
_IDLE_PERIODS_MAX = 100

_SOCKET = "socket"
_WATCH = "watch"


class Watch:
    """One use of a connection, and since when its server has been silent."""

    __slots__ = ("expired", "inode", "number", "seconds", "since")

    def __init__(self, number: int, inode: int, seconds: float) -> None:
        self.number = number
        self.inode = inode
        self.seconds = seconds
        self.since = time.monotonic()
        self.expired = False

    def end(self) -> None:
        """Shut the socket down, unless its number belongs to another socket by now."""
        with suppress(OSError):
            # From here on the number cannot pass to another socket.
            handle = os.dup(self.number)
            try:
                if os.fstat(handle).st_ino == self.inode:
                    self.expired = True
                    _shut_down(handle)
            finally:
                os.close(handle)


def _shut_down(number: int) -> None:
    with socket.socket(fileno=os.dup(number)) as opened:
        opened.shutdown(socket.SHUT_RDWR)


class _Watchdog:
    """The thread of one process and what it watches."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything: neither threads nor what they did come along with a fork."""
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
        # After this, the thread does not touch the socket any more.
        with self._lock:
            self._watches.discard(watch)

    def end_silent(self, seconds: float) -> None:
        """End the connections whose servers have been silent for so long."""
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


@contextmanager
def watched(connection: Connection, seconds: float) -> Iterator[Watch | None]:
    """Let the server be silent for so long at most; `None` where there is no server."""
    found = connection.info.get(_SOCKET)
    if found is None:
        yield None
        return
    number, inode = found
    watch = Watch(number, inode, seconds)
    connection.info[_WATCH] = watch
    _WATCHDOG.add(watch)
    try:
        yield watch
    finally:
        _WATCHDOG.remove(watch)


class _Opening(threading.local):
    """The connection that a thread is opening."""

    seconds: float | None = None
    watch: Watch | None = None


_OPENING = _Opening()


@contextmanager
def opening_watched(seconds: float) -> Iterator[None]:
    """Let the server be silent for so long while a connection to it is made ready."""
    _OPENING.seconds = seconds
    try:
        yield
    finally:
        watch, _OPENING.seconds, _OPENING.watch = _OPENING.watch, None, None
        if watch is not None:
            _WATCHDOG.remove(watch)


def wait_for_ever(connection: Connection) -> None:
    """Let the server take as long as it needs, for work like a migration."""
    watch = connection.info.get(_WATCH)
    if watch is not None:
        watch.seconds = math.inf


def make_watchable(engine: Engine) -> None:
    """Note the sockets of an engine's connections, and when they begin to wait."""

    # First of all: what else is done with a new connection waits for the server, too.
    @event.listens_for(engine, "connect", insert=True)
    def note(dbapi_connection: Any, record: Any) -> None:
        # PyMySQL has no method for it.
        source = getattr(dbapi_connection, "_sock", dbapi_connection)
        number = source.fileno()
        record.info[_SOCKET] = number, os.fstat(number).st_ino
        if _OPENING.seconds is not None:
            _OPENING.watch = Watch(number, os.fstat(number).st_ino, _OPENING.seconds)
            _WATCHDOG.add(_OPENING.watch)

    @event.listens_for(engine, "after_cursor_execute")
    def end(connection: Connection, *_rest: Any) -> None:
        watch = None if connection.invalidated else connection.info.get(_WATCH)
        if watch is not None:
            # The time until the next statement is the process's own.
            watch.since = math.inf

    @event.listens_for(engine, "commit")
    @event.listens_for(engine, "rollback")
    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, *_rest: Any) -> None:
        if connection.invalidated:
            return
        watch = connection.info.get(_WATCH)
        if watch is not None:
            watch.since = time.monotonic()
