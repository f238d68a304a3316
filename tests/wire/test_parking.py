"""Connections whose answers wait for the application: each goes to one thread at a time."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import closing

from roost.model.limits import Limits
from roost.server.connection import Budget, Connection
from roost.server.poller import Poller


class Handed:
    """Stands for the threads that make pieces, and keeps what they get."""

    def __init__(self) -> None:
        self.items: list[Connection] = []

    def put(self, item: Connection) -> None:
        self.items.append(item)


class LockBefore:
    """A lock after which another thread gets its turn at once."""

    def __init__(self, following: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._following = following

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        following, self._following = self._following, lambda: None
        following()


class NeverBegun:
    """An answer of which no piece was taken: since Python 3.12, its end frees nothing."""

    def close(self) -> None:
        pass


def following_connection() -> Connection:
    """A connection whose application has nothing to send now, and then the end."""

    def pieces() -> Generator[bytes]:
        yield b""

    ours, theirs = socket.socketpair()
    theirs.close()
    ours.setblocking(False)
    connection = Connection(ours, {}, Limits(), Budget(1 << 20))
    connection.stream = pieces()
    connection.follows = True
    return connection


def test_a_connection_woken_as_soon_as_it_is_parked_goes_to_one_thread() -> None:
    poller = Poller(lambda _environ, _start: [], Limits())
    handed = Handed()
    with closing(following_connection()) as connection:
        poller._streams = handed  # type: ignore[assignment]  # a stand-in with the same method
        poller._parking = LockBefore(  # type: ignore[assignment]  # a stand-in of a lock
            lambda: poller._wake(connection)
        )
        poller._send_piece(connection)
        assert handed.items == [connection]


def test_an_answer_that_never_began_is_freed_with_its_connection() -> None:
    connection = following_connection()
    stream = NeverBegun()
    is_there = weakref.ref(stream)
    connection.stream = stream  # type: ignore[assignment]  # a stand-in of a generator
    del stream
    connection.close()
    assert is_there() is None
