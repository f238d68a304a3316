"""One process migrates. All other processes wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.errors import SYNC_COMMAND, DatabaseUnusable, mysql_code_of, sqlstate_of

WAIT_SECONDS = 300

POSTGRESQL_KEY = int.from_bytes(b"roostsch", "big")
_POSTGRESQL_LOCK_NOT_AVAILABLE = "55P03"

# A server has one space of lock names for all its databases. A name has 64 characters at most.
MYSQL_NAME = "concat('roost.schema.', md5(database()))"
# The error codes of clusters that refuse named locks: of Galera, and of Percona's strict mode.
MYSQL_REFUSALS = frozenset({1235, 1105})


def lock_transaction(connection: Connection) -> None:
    """PostgreSQL: wait until no other migration runs, and lock until the transaction ends.

    The lock belongs to the transaction and not to the session. So it works behind a connection
    pooler, and ends when the new tables become visible.
    """
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'"))
    try:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": POSTGRESQL_KEY})
    except DBAPIError as error:
        if sqlstate_of(error) == _POSTGRESQL_LOCK_NOT_AVAILABLE:
            raise _waited_in_vain(connection) from None
        raise
    connection.execute(sa.text("SET LOCAL lock_timeout TO DEFAULT"))


@contextmanager
def named_lock(connection: Connection) -> Iterator[bool]:
    """MySQL: wait until no other migration runs, and lock while the block runs.

    A cluster has no such lock and gives `False`: other migrations may run at the same time.
    """
    taken = _take_named_lock(connection)
    try:
        yield taken
    finally:
        if taken and not connection.invalidated:
            connection.rollback()
            connection.execute(sa.text(f"SELECT release_lock({MYSQL_NAME})"))
            connection.commit()


def _take_named_lock(connection: Connection) -> bool:
    try:
        answer = connection.scalar(
            sa.text(f"SELECT get_lock({MYSQL_NAME}, :seconds)"), {"seconds": WAIT_SECONDS}
        )
    except DBAPIError as error:
        connection.rollback()
        if mysql_code_of(error) in MYSQL_REFUSALS:
            return False
        raise
    # The migration begins its own transactions.
    connection.commit()
    if answer != 1:
        raise _waited_in_vain(connection)
    return True


def _waited_in_vain(connection: Connection) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"Another process has been migrating the database {connection.engine.url.database!r} for "
        f"more than {WAIT_SECONDS} seconds. Wait until it has finished, or end it, and then run: "
        f"{SYNC_COMMAND}"
    )
