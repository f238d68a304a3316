"""The use of one connection: no wait without end, and one name for all errors of connection."""

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
    """Lets as many threads to an engine as it has connections; the others wait in turn.

    The engine's pool lets threads wait as well, but does not wake them when a connection fails.
    """

    def __init__(self, engine: Engine, places: int, seconds: float) -> None:
        self.engine = engine
        self._seconds = seconds
        # Not positive: the operator wants no bound.
        self._places = threading.Semaphore(places) if places > 0 else None

    def enter(self) -> None:
        """Wait for a place, which must be left again."""
        if self._places is not None and not self._places.acquire(timeout=self._seconds):
            raise DatabaseAway(
                f"other requests have used all connections to the database for {self._seconds} "
                "seconds"
            )

    def leave(self) -> None:
        """Let the next thread in."""
        if self._places is not None:
            self._places.release()


@contextmanager
def session(
    doorway: Doorway, seconds: float, availability: Availability | None = None
) -> Iterator[Connection]:
    """A connection whose server may be silent for so long at most.

    `DatabaseAway` and its kin are raised for all that drivers and SQLAlchemy say about lost
    connections; other errors pass as they are.
    """
    if availability is not None:
        availability.require()
    doorway.enter()
    try:
        # Once more, after a wait in which the database may have fallen silent.
        if availability is not None:
            availability.require()
        with (
            _connect(doorway.engine, seconds, availability) as connection,
            watched(connection, seconds) as watch,
        ):
            try:
                yield connection
            except (SQLAlchemyError, OSError) as error:
                # What SQLAlchemy says about a connection after it was lost has no name of its own.
                if not (connection.invalidated or is_lost(error)):
                    raise
                if not connection.invalidated:
                    connection.invalidate(error)
                if watch is None or not watch.expired:
                    raise ConnectionLost(f"the connection was lost: {reason_of(error)}") from error
                if availability is not None:
                    availability.doubt()
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
            availability.doubt()
        raise DatabaseAway(f"no connection could be opened: {reason_of(error)}") from error


def fetch_directly(
    connection: Connection, statement: str, parameters: Sequence[Any]
) -> Sequence[Any]:
    """All rows of a statement, from the driver itself; its errors as SQLAlchemy names them."""
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
