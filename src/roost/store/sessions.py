"""The use of one connection: no wait without end, and one name for all errors of connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from roost.store.errors import (
    ConnectionLost,
    DatabaseAway,
    DatabaseSilent,
    is_lost,
    reason_of,
)
from roost.store.watchdog import watched


@contextmanager
def session(engine: Engine, seconds: float) -> Iterator[Connection]:
    """A connection whose server may be silent for so long at most.

    `DatabaseAway` and its kin are raised for all that drivers and SQLAlchemy say about lost
    connections; other errors pass as they are.
    """
    with _connect(engine) as connection, watched(connection, seconds) as watch:
        try:
            yield connection
        except (SQLAlchemyError, OSError) as error:
            # What SQLAlchemy says about a connection after it was lost has no name of its own.
            if not (connection.invalidated or is_lost(error)):
                raise
            if not connection.invalidated:
                connection.invalidate(error)
            if watch is not None and watch.expired:
                raise DatabaseSilent(
                    f"the database did not answer for {seconds:g} seconds"
                ) from error
            raise ConnectionLost(f"the connection was lost: {reason_of(error)}") from error


def _connect(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except PoolTimeout as error:
        raise DatabaseAway("other requests use all connections to the database") from error
    except (DBAPIError, OSError) as error:
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
