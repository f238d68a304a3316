"""The schema of a database: its revisions, and the upgrade to those of this version."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from enum import Enum

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.connections.driver_errors import advice, known_advice, reason, shown_url
from roost.store.connections.errors import SYNC_COMMAND, DatabaseUnusable, WriteRefused
from roost.store.connections.watchdog import opening_watched
from roost.store.database import Database
from roost.store.meta import stored_mark
from roost.store.migrations.histories import (
    HISTORIES,
    PLACEMENT,
    ROOST,
    History,
    lets_this_version_serve,
)
from roost.store.tables import metadata

LOG = logging.getLogger(__name__)


class SchemaState(Enum):
    """What has to be done before a database can be used."""

    EMPTY = "empty"
    """It has neither tables of Roost nor of the reference."""
    OLDER = "older"
    """Revisions are missing, as in a database that only the reference has used so far."""
    CURRENT = "current"
    NEWER = "newer"
    """A newer version has migrated it, and lets this version serve on it."""
    UNKNOWN = "unknown"
    """It records a revision that this version does not know, and must not serve on."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The revisions of a database: those of the reference's tables and of Roost's."""

    state: SchemaState
    placement_revision: str | None
    roost_revision: str | None
    placement_head: str = PLACEMENT.head
    roost_head: str = ROOST.head

    @property
    def can_serve(self) -> bool:
        """Whether this version may serve on the database as it is."""
        return self.state in (SchemaState.CURRENT, SchemaState.NEWER)


def read_status(connection: Connection) -> SchemaStatus:
    """The status of a database, by three queries."""
    tables = set(sa.inspect(connection).get_table_names())
    placement, roost = (_recorded_revision(connection, history, tables) for history in HISTORIES)
    if placement == PLACEMENT.head and not ROOST.knows(roost):
        serves = lets_this_version_serve(connection, roost, tables)
        state = SchemaState.NEWER if serves else SchemaState.UNKNOWN
    elif not (PLACEMENT.knows(placement) and ROOST.knows(roost)):
        state = SchemaState.UNKNOWN
    elif placement == PLACEMENT.head and roost == ROOST.head:
        state = SchemaState.CURRENT
    elif placement is None and roost is None and tables.isdisjoint(metadata.tables):
        state = SchemaState.EMPTY
    else:
        state = SchemaState.OLDER
    return SchemaStatus(state, placement_revision=placement, roost_revision=roost)


def inspect_schema(database: Database) -> SchemaStatus:
    """The status of a database."""
    return database.read(read_status)


def planned_steps(status: SchemaStatus) -> list[str]:
    """The revisions that a database misses, each with a sentence about what it does."""
    recorded = (status.placement_revision, status.roost_revision)
    return [
        f"{missing.id}: {(missing.upgrade.__doc__ or '').splitlines()[0]}"
        for history, revision in zip(HISTORIES, recorded, strict=True)
        for missing in history.missing(revision)
    ]


def sync_schema(database: Database) -> SchemaStatus:
    """Migrate to the newest revisions. Any number of processes may do so at the same time.

    One process migrates. All other processes wait for it and then find nothing to do.
    """
    before = inspect_schema(database)
    if before.state is SchemaState.UNKNOWN:
        raise _unknown(database, before)
    if before.state is SchemaState.NEWER:
        return before
    # Most starts find the schema up to date, and then alembic is not imported.
    from roost.store.migrations.runner import upgrade_database  # noqa: PLC0415

    try:
        upgrade_database(database)
    except (DBAPIError, WriteRefused) as error:
        said = reason(error, database.url)
        raise DatabaseUnusable(
            f"The schema of {shown_url(database.url)} could not be upgraded: {said}. "
            f"{known_advice(said) or 'Remove the cause.'} Then continue with: {SYNC_COMMAND}"
        ) from error
    return inspect_schema(database)


def prepare_schema(
    database: Database, upgrade: bool, *, max_retries: int = 1, retry_interval: float = 10
) -> None:
    """Make the database usable at the start of a service, or raise `DatabaseUnusable`.

    A database without data is always initialised. A database with data is upgraded only if
    `upgrade`. `max_retries` and `retry_interval` are those of `connect_or_explain`.
    """
    connect_or_explain(database, max_retries, retry_interval)
    status = inspect_schema(database)
    if status.state is SchemaState.OLDER and not upgrade and database.read(_holds_data):
        # Another process may just have initialised the schema and inserted the first rows.
        status = inspect_schema(database)
        if status.state is SchemaState.OLDER:
            raise DatabaseUnusable(
                f"The schema of {shown_url(database.url)} is older than this version of Roost "
                f"needs: {_difference(status)}. Upgrade it with: {SYNC_COMMAND}"
            )
    if status.state is SchemaState.UNKNOWN:
        raise _unknown(database, status)
    if status.state is SchemaState.NEWER:
        LOG.warning(
            "A newer version of Roost has migrated %s (%s), and lets this version serve on it. "
            "Upgrade this server, too.",
            shown_url(database.url),
            _difference(status),
        )
    elif status.state is not SchemaState.CURRENT:
        LOG.info("Preparing the schema of %s: %s", shown_url(database.url), _difference(status))
        sync_schema(database)
    if database.read(stored_mark) is not None:
        raise DatabaseUnusable(
            f"An import into {shown_url(database.url)} has not finished. Finish it with the same "
            "`roost db import` command, or name another database."
        )


def connect_or_explain(
    database: Database, max_retries: int = 1, retry_interval: float = 10
) -> None:
    """Open a connection to the database, or raise `DatabaseUnusable`.

    There are `max_retries` attempts (-1: without end), `retry_interval` seconds apart. A file gets
    one attempt, because it does not appear by waiting.
    """
    attempts = 1 if database.dialect.is_file else max_retries
    attempt = 1
    while True:
        try:
            with opening_watched(database.options.wait_seconds), database.reader.connect():
                return
        except (DBAPIError, ConnectionError, TimeoutError) as error:
            said = reason(error, database.url)
        except (TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
            raise _refused_options(database, error) from error
        lasts = any(text in said for text in database.dialect.lasting_refusals)
        if lasts or attempt >= attempts >= 0:
            raise DatabaseUnusable(
                f"The database {shown_url(database.url)} cannot be reached: {said}. "
                f"{advice(said, database.url)}"
            )
        LOG.warning(
            "The database %s cannot be reached (attempt %d of %s), trying again in %s seconds: %s",
            shown_url(database.url),
            attempt,
            attempts if attempts >= 0 else "any number",
            retry_interval,
            said,
        )
        time.sleep(retry_interval)
        attempt += 1


def _refused_options(database: Database, error: Exception) -> DatabaseUnusable:
    """The error for a driver that fails before it connects: it cannot use an option."""
    given = ", ".join(sorted(database.url.query)) or "none"
    return DatabaseUnusable(
        f"The driver of {shown_url(database.url)} refuses to connect: "
        f"{reason(error, database.url)}. Check the options of the database URL ({given})."
    )


def _recorded_revision(connection: Connection, history: History, tables: set[str]) -> str | None:
    if history.version_table not in tables:
        return None
    return history.newest(history.recorded(connection))


def _holds_data(connection: Connection) -> bool:
    """Whether any table has a row. After an interrupted initialisation, none has."""
    there = set(sa.inspect(connection).get_table_names())
    return any(
        connection.scalar(sa.select(sa.literal(1)).select_from(table).limit(1))
        for name, table in metadata.tables.items()
        if name in there and not name.startswith("roost_")
    )


def _unknown(database: Database, status: SchemaStatus) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"The schema of {shown_url(database.url)} is at a revision that this version of Roost does "
        f"not know: {_difference(status)}. A newer version has written it, or it belongs to "
        "another application. Use that newer version, or another database."
    )


def _difference(status: SchemaStatus) -> str:
    parts = (
        ("placement", status.placement_revision, status.placement_head),
        ("roost", status.roost_revision, status.roost_head),
    )
    return ", ".join(
        f"{name} revision {found or 'none'} (wanted {wanted})" for name, found, wanted in parts
    )
