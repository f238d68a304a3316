"""One process migrates, the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.errors import DatabaseUnusable

WAIT_SECONDS = 300

_POSTGRESQL_KEY = int.from_bytes(b"roostsch", "big")
_POSTGRESQL_LOCK_NOT_AVAILABLE = "55P03"

# Named locks are the server's, not the database's. 64 characters are allowed.
_MYSQL_NAME = "concat('roost.schema.', md5(database()))"
# Clusters refuse named locks: Galera as not supported yet, Percona's strict mode as unknown error.
_MYSQL_REFUSALS = frozenset({1235, 1105})


def lock_transaction(connection: Connection) -> None:
    """PostgreSQL: wait until no other migration runs; held until the transaction ends.

    A lock of the transaction and not of the session, so that it also holds behind a connection
    pooler, and ends at the very moment at which the new tables become visible.
    """
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'"))
    try:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_KEY})
    except DBAPIError as error:
        # psycopg calls it sqlstate, psycopg2 pgcode.
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        if code == _POSTGRESQL_LOCK_NOT_AVAILABLE:
            raise _waited_in_vain(connection) from None
        raise
    connection.execute(sa.text("SET LOCAL lock_timeout TO DEFAULT"))


@contextmanager
def named_lock(connection: Connection) -> Iterator[bool]:
    """MySQL: wait until no other migration runs; held while the block runs.

    Gives false where there is no such lock, in a cluster: then others may run at the same time.
    """
    taken = _take_named_lock(connection)
    try:
        yield taken
    finally:
        if taken and not connection.invalidated:
            connection.rollback()
            connection.execute(sa.text(f"SELECT release_lock({_MYSQL_NAME})"))
            connection.commit()


def _take_named_lock(connection: Connection) -> bool:
    try:
        answer = connection.scalar(
            sa.text(f"SELECT get_lock({_MYSQL_NAME}, :seconds)"), {"seconds": WAIT_SECONDS}
        )
    except DBAPIError as error:
        connection.rollback()
        arguments = getattr(error.orig, "args", ())
        if arguments and arguments[0] in _MYSQL_REFUSALS:
            return False
        raise
    # Migrations begin their own transactions.
    connection.commit()
    if answer != 1:
        raise _waited_in_vain(connection)
    return True


def _waited_in_vain(connection: Connection) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"Another process has been migrating the database {connection.engine.url.database!r} for "
        f"more than {WAIT_SECONDS} seconds. Wait until it has finished, or end it, and then run: "
        "roost db sync"
    )
