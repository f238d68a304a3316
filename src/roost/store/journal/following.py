"""The one connection over which a reader follows the journal."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from roost.store.connections.sessions import Session, in_one_moment
from roost.store.connections.watchdog import Watch
from roost.store.database import Database
from roost.store.dialect import dialect_of

P = ParamSpec("P")
T = TypeVar("T")

# Connections that this process inherited by a fork. The parent may still use them, and closing one
# here would end its session.
_inherited: list[object] = []


class ServerReplaced(Exception):
    """Another server answers than the one over which the reader began, or one that was restarted.

    It may have lost rows that the reader saw, and may use ids of transactions again. So the reader
    has to read all tables again.
    """


class Following:
    """Reads over one connection at a time, and notices that the server was replaced.

    A lost connection is replaced by another one to the same life of the server. For one thread at
    a time, apart from `silent_since` and `answered_at`.
    """

    def __init__(self, database: Database) -> None:
        self._engine = database.follower
        self._options = database.options
        self._source = database.followers
        self._availability = database.availability
        # A file does not lose what was read from it.
        self._is_file = database.dialect.is_file
        # The life of the server in which the reader began; `None` if it is not known.
        self._life: str | None = None
        # A key in `info` of the connections that belong to that life.
        self._mark = object()
        self._process_id = os.getpid()
        # Since when a connection is being opened, and the watch over the one in use.
        self._opening_since = math.inf
        self._watch: Watch | None = None
        # When the server last proved over a new connection that it answers.
        self.answered_at = -math.inf

    @property
    def silent_since(self) -> float:
        """Since when the reader waits for the server; infinite while it does not, or for a file."""
        watch = self._watch
        return self._opening_since if watch is None else watch.since

    def begin(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns in one snapshot. The reader continues in this life of the server."""

        def begin(connection: Connection) -> T:
            # Before all reading: no connection outlives a crash of its server.
            self._life = None if self._is_file else server_life(connection)
            self._accept(connection)
            return in_one_moment(connection, work, *args, **kwargs)

        return self._use(self._options.silence_seconds, begin)

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns, without a transaction. It must take a short time."""

        def read(connection: Connection) -> T:
            self._check(connection)
            return work(connection, *args, **kwargs)

        return self._use(self._options.wait_seconds, read)

    def snapshot(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns; all its statements see the same moment."""

        def snapshot(connection: Connection) -> T:
            self._check(connection)
            return in_one_moment(connection, work, *args, **kwargs)

        return self._use(self._options.silence_seconds, snapshot)

    def _use(self, seconds: float, work: Callable[[Connection], T]) -> T:
        self._leave_to_parent()
        session = Session(self._source, seconds, self._availability)
        self._opening_since = time.monotonic()
        try:
            with session as connection:
                self._watch, self._opening_since = session.watch, math.inf
                return work(connection)
        finally:
            self._watch, self._opening_since = None, math.inf

    def _check(self, connection: Connection) -> None:
        """Raise `ServerReplaced` unless the connection belongs to the life of the beginning."""
        if self._mark in connection.info:
            return
        if not self._is_file:
            life = server_life(connection)
            if life is None or life != self._life:
                raise ServerReplaced("the database server was restarted or replaced")
        self._accept(connection)

    def _accept(self, connection: Connection) -> None:
        connection.info[self._mark] = True
        self.answered_at = time.monotonic()

    def _leave_to_parent(self) -> None:
        if self._process_id != os.getpid():
            _inherited.extend([self._engine.pool, *self._source.forget_kept()])
            self._engine.dispose(close=False)
            self._process_id = os.getpid()


def server_life(connection: Connection) -> str | None:
    """What tells this life of the server from all others; `None` if the server does not say.

    A life is the time from the start of a server, or from its recovery after a crash, to the next.
    Within one life, a server loses nothing that it has shown. So a reader that lost its connection
    may go on over another one to the same life.
    """
    try:
        life = connection.exec_driver_sql(dialect_of(connection).server_life).scalar()
    except ProgrammingError:
        # An operator has taken the right to see it away.
        return None
    return None if life is None else str(life)
