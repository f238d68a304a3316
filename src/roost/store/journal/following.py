"""The one connection over which a reader follows the journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from roost.store.database import Database
from roost.store.sessions import Session
from roost.store.snapshots import in_one_moment

P = ParamSpec("P")
T = TypeVar("T")

# Connections that this process inherited by a fork. The parent may still use them, and closing one
# here would end its session.
_inherited: list[object] = []


class ConnectionReplaced(Exception):
    """The connection is not the one over which the reader began.

    The server may have crashed in between. It may then have lost rows that the reader saw, and may
    use ids of transactions again. So the reader has to read all tables again.
    """


class Following:
    """Reads over one connection, and notices its replacement. For one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._engine = database.follower
        self._options = database.options
        self._doorway = database.followers
        self._availability = database.availability
        # A file does not lose what was read from it.
        self._may_be_replaced = self._engine.dialect.name == "sqlite"
        # A key in `info` of the connection over which the reader began.
        self._mark = object()
        self._process_id = os.getpid()

    def begin(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns in one snapshot. The reader continues over the same connection."""
        with self._session(self._options.silence_seconds) as connection:
            connection.info.pop(self._mark, None)
            result = in_one_moment(connection, work, *args, **kwargs)
            connection.info[self._mark] = True
            return result

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns, without a transaction. It must take a short time."""
        with self._session(self._options.wait_seconds) as connection:
            self._check(connection)
            return work(connection, *args, **kwargs)

    def snapshot(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns; all its statements see the same moment."""
        with self._session(self._options.silence_seconds) as connection:
            self._check(connection)
            return in_one_moment(connection, work, *args, **kwargs)

    def _session(self, seconds: float) -> Session:
        self._leave_to_parent()
        return Session(self._doorway, seconds, self._availability)

    def _check(self, connection: Connection) -> None:
        if not self._may_be_replaced and self._mark not in connection.info:
            raise ConnectionReplaced("the journal's connection was lost")

    def _leave_to_parent(self) -> None:
        if self._process_id != os.getpid():
            _inherited.extend([self._engine.pool, *self._doorway.forget_kept()])
            self._engine.dispose(close=False)
            self._process_id = os.getpid()
