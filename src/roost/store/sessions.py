"""The use of one connection: every wait is bounded, and lost connections raise one error."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from roost.store.availability import REFUSAL_SECONDS, Availability
from roost.store.errors import (
    ConnectionLost,
    DatabaseAway,
    DatabaseSilent,
    is_lost,
    reason_of,
)
from roost.store.watchdog import opening_watched, watched


class Doorway:
    """Admits as many threads to an engine as it has connections. Further threads wait in turn.

    The engine's pool makes threads wait as well, but does not wake them when a connection fails.
    """

    def __init__(self, engine: Engine, threads_max: int, seconds: float) -> None:
        self.engine = engine
        self._seconds = seconds
        # Without a bound if the operator set none.
        self._free = threading.Semaphore(threads_max) if threads_max > 0 else None

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


@contextmanager
def session(
    doorway: Doorway, seconds: float, availability: Availability | None = None
) -> Iterator[Connection]:
    """A connection whose server may be silent for `seconds` at most.

    A lost connection raises `DatabaseAway` or a subclass, whatever the driver and SQLAlchemy
    raise. Other errors pass unchanged.
    """
    if availability is not None:
        availability.require()
    doorway.enter()
    try:
        # Again, because the database may have become silent during the wait.
        if availability is not None:
            availability.require()
        with (
            _connect(doorway.engine, seconds, availability) as connection,
            watched(connection, seconds) as watch,
        ):
            try:
                yield connection
            except (SQLAlchemyError, OSError) as error:
                # SQLAlchemy has no class of its own for the use of a lost connection.
                if not (connection.invalidated or is_lost(error)):
                    raise
                if not connection.invalidated:
                    connection.invalidate(error)
                if watch is None or not watch.expired:
                    raise ConnectionLost(f"the connection was lost: {reason_of(error)}") from error
                if availability is not None:
                    availability.note_silence()
                raise DatabaseSilent("the database did not answer in time") from error
    finally:
        doorway.leave()


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


def fetch_directly(
    connection: Connection, statement: str, parameters: Sequence[Any]
) -> Sequence[Any]:
    """All rows of a statement, from the driver itself; its errors are raised as SQLAlchemy's."""
    fairy = connection.connection
    cursor = fairy.cursor()
    try:
        cursor.execute(statement, parameters)
        return cursor.fetchall()
    except Exception as error:
        dialect = connection.dialect
        base = dialect.loaded_dbapi.Error
        if not isinstance(error, base):
            raise
        lost = dialect.is_disconnect(error, fairy, cursor)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement,
            None,
            error,
            base,
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=dialect,
        ) from error
    finally:
        cursor.close()
