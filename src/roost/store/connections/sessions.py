"""The use of one connection: every wait is bounded, and lost connections raise one error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from roost.store.connections.availability import REFUSAL_SECONDS, Availability
from roost.store.connections.errors import (
    ConnectionLost,
    DatabaseAway,
    DatabaseSilent,
    reason_of,
)
from roost.store.connections.statement_log import log_statements
from roost.store.connections.watchdog import (
    begin_wait,
    begin_watch,
    end_wait,
    end_watch,
    opening_watched,
)
from roost.store.dialect import dialect_of

P = ParamSpec("P")
T = TypeVar("T")

# After so long a connection goes through its pool again, which closes connections that are too old.
_KEPT_SECONDS = 10.0


class ConnectionSource:
    """Admits as many threads to an engine as it has connections. Further threads wait in turn.

    The engine's pool makes threads wait as well, but does not wake them when a connection fails.
    A source may keep open connections between two uses, up to `kept_max`: SQLAlchemy takes longer
    to give and to take back a connection than most reads take.
    """

    def __init__(
        self, engine: Engine, threads_max: int, seconds: float, *, kept_max: int = 0
    ) -> None:
        self.engine = engine
        self._seconds = seconds
        # Without a bound if the operator set none.
        self._free = threading.Semaphore(threads_max) if threads_max > 0 else None
        self._kept_max = kept_max
        # Each with the time at which it came from the pool.
        self._kept: list[tuple[Connection, float]] = []
        self._is_current = dialect_of(engine).currency_check(engine)
        # How often the source was renewed.
        self.renewals = 0
        # Guards both: a renewal must close every connection that is kept.
        self._keeping = threading.Lock()

    @property
    def kept(self) -> int:
        """How many open connections the source keeps at this moment."""
        return len(self._kept)

    @property
    def opened(self) -> int:
        """How many connections are open, kept or in use."""
        pool = self.engine.pool
        return pool.checkedout() + pool.checkedin() if isinstance(pool, QueuePool) else self.kept

    def enter(self) -> None:
        """Wait until a connection is free; the thread must leave again."""
        if self._free is not None and not self._free.acquire(timeout=self._seconds):
            raise DatabaseAway(
                f"other requests have used all connections to the database for {self._seconds} "
                "seconds"
            )

    def leave(self) -> None:
        """Admit the next thread."""
        if self._free is not None:
            self._free.release()

    def kept_connection(self) -> tuple[Connection, float] | None:
        """A connection that was kept, and when it came from the pool; `None` if there is none."""
        try:
            connection, since = self._kept.pop()
        except IndexError:
            return None
        if time.monotonic() - since < _KEPT_SECONDS and self._is_current(connection):
            return connection, since
        connection.close()
        return None

    def keep(self, connection: Connection, since: float, renewals: int) -> bool:
        """Keep a connection for the next thread, if possible; return whether it is kept.

        `renewals` is the value of the source when the connection came from it.
        """
        with self._keeping:
            if (
                len(self._kept) >= self._kept_max
                or renewals != self.renewals
                or connection.in_transaction()
            ):
                return False
            self._kept.append((connection, since))
            return True

    def forget_kept(self) -> list[object]:
        """The connections that are kept, which the source leaves open and uses no longer."""
        forgotten: list[object] = [*self._kept]
        self._kept.clear()
        return forgotten

    def close_kept(self) -> None:
        """Close the connections that are kept."""
        while self._kept:
            with suppress(IndexError):
                self._kept.pop()[0].close()

    def renew(self) -> None:
        """After a connection was lost: close all others that are open and not in use."""
        if self._kept_max:
            with self._keeping:
                self.renewals += 1
            self.close_kept()
            self.engine.dispose()


class Session:
    """A connection whose server may be silent for `seconds` at most, for a `with` statement.

    A lost connection raises `DatabaseAway` or a subclass, whatever the driver and SQLAlchemy
    raise. Other errors pass unchanged. Most requests read once, and a context manager made of a
    generator would cost as much as that read.
    """

    __slots__ = (
        "_availability",
        "_connection",
        "_renewals",
        "_seconds",
        "_since",
        "_source",
        "watch",
    )

    def __init__(
        self, source: ConnectionSource, seconds: float, availability: Availability | None = None
    ) -> None:
        self._source = source
        self._seconds = seconds
        self._availability = availability

    def __enter__(self) -> Connection:
        availability, source = self._availability, self._source
        if availability is not None:
            availability.require()
        source.enter()
        try:
            # Again, because the database may have become silent during the wait.
            if availability is not None:
                availability.require()
            self._renewals = source.renewals
            self._connection, self._since = source.kept_connection() or (
                _connect(source.engine, self._seconds, availability),
                time.monotonic(),
            )
        except BaseException:
            source.leave()
            raise
        self.watch = begin_watch(self._connection, self._seconds)
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        connection, source = self._connection, self._source
        try:
            end_watch(self.watch)
            if error is None and source.keep(connection, self._since, self._renewals):
                return
            try:
                self._raise_loss(error)
            finally:
                if source.renewals != self._renewals and not connection.invalidated:
                    # Its pool was replaced meanwhile, and would not close it.
                    connection.invalidate()
                connection.close()
        finally:
            source.leave()

    def _raise_loss(self, error: BaseException | None) -> None:
        """Raise what the error means if it means that the connection was lost."""
        if not isinstance(error, (SQLAlchemyError, OSError)):
            return
        connection = self._connection
        # SQLAlchemy has no class of its own for the use of a lost connection.
        if not (connection.invalidated or dialect_of(connection).is_lost(error)):
            return
        if not connection.invalidated:
            connection.invalidate(error)
        # The server may have been restarted: then all of its connections are lost.
        self._source.renew()
        if self.watch is None or not self.watch.expired:
            raise ConnectionLost(f"the connection was lost: {reason_of(error)}") from error
        if self._availability is not None:
            self._availability.note_silence()
        raise DatabaseSilent("the database did not answer in time") from error


def _connect(engine: Engine, seconds: float, availability: Availability | None) -> Connection:
    began = time.monotonic()
    try:
        with opening_watched(seconds):
            return engine.connect()
    except PoolTimeout as error:
        raise DatabaseAway("other requests use all connections to the database") from error
    except (DBAPIError, OSError) as error:
        if availability is not None and time.monotonic() - began > REFUSAL_SECONDS:
            availability.note_silence()
        raise DatabaseAway(f"no connection could be opened: {reason_of(error)}") from error


def in_one_moment(
    connection: Connection,
    work: Callable[Concatenate[Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """What `work` returns; all its statements see the same moment."""
    for statement in dialect_of(connection).begin_snapshot:
        connection.exec_driver_sql(statement)
    try:
        return work(connection, *args, **kwargs)
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")


def fetch_directly(
    connection: Connection, statement: str, parameters: Sequence[Any]
) -> Sequence[Any]:
    """All rows of a statement, from the driver itself; its errors are raised as SQLAlchemy's."""
    log_statements(connection, statement)
    cursor = connection.connection.cursor()
    try:
        begin_wait(connection)
        cursor.execute(statement, parameters)
        end_wait(connection)
        return cursor.fetchall()
    except Exception as error:
        raise_translated(connection, error)
    finally:
        cursor.close()


def raise_translated(connection: Connection, error: Exception) -> NoReturn:
    """Raise a driver's error as SQLAlchemy does, and any other error unchanged."""
    dialect = connection.dialect
    base = dialect.loaded_dbapi.Error
    if not isinstance(error, base):
        raise error
    lost = dialect.is_disconnect(error, connection.connection, None)
    if lost:
        connection.invalidate(error)
    # Without the statement and its values: errors are logged, and clients may have sent secrets.
    raise DBAPIError.instance(
        None,
        None,
        error,
        base,
        hide_parameters=True,
        connection_invalidated=lost,
        dialect=dialect,
    ) from error
