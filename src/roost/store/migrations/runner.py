"""Runs the revisions that a database misses, and records each of them."""

from __future__ import annotations

import logging
import math
import random
import time

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.connections.sessions import Session
from roost.store.connections.watchdog import wait_for_ever
from roost.store.database import Database
from roost.store.dialect import dialect_of
from roost.store.meta import ensure_identity
from roost.store.migrations.histories import HISTORIES, History, record_compatibility
from roost.store.migrations.placement import drop_duplicate_indexes
from roost.store.migrations.steps import Steps

LOG = logging.getLogger(__name__)

_CLUSTER_ATTEMPTS = 20


def upgrade_database(database: Database) -> None:
    """Bring both histories to their heads, one process at a time.

    Where a database can undo changes of tables, all of it happens or nothing.
    """
    if database.dialect.undoes_table_changes:
        database.write_at_once(_upgrade_in_transaction)
    else:
        _upgrade_by_steps(database)


def upgrade_history(connection: Connection, history: History, target: str | None = None) -> None:
    """Run the revisions that are missing, up to `target` or to the head."""
    history.create_version_table(connection)
    recorded = history.recorded(connection)
    revision = history.newest(recorded)
    if revision is not None and len(recorded) > 1:
        history.record(connection, revision)
    for missing in history.missing(revision):
        missing.upgrade(_steps(connection))
        history.record(connection, missing.id)
        if not dialect_of(connection).undoes_table_changes:
            # The server has already committed the changes to tables.
            connection.commit()
        LOG.info("Schema %s is at revision %s", history.name, missing.id)
        if missing.id == target:
            return


def _upgrade_in_transaction(connection: Connection) -> None:
    wait_for_ever(connection)
    with dialect_of(connection).migration_lock(connection):
        for history in HISTORIES:
            upgrade_history(connection, history)
        record_compatibility(connection)
        ensure_identity(connection)


def _upgrade_by_steps(database: Database) -> None:
    """Upgrade a database that commits each change of a table at once.

    A cluster has no lock, so other processes may run the same steps at the same time and make some
    steps fail. Every step looks first: the next attempt finds what is done and does the rest.
    """
    for attempt in range(_CLUSTER_ATTEMPTS):
        with (
            Session(database.writers, math.inf) as connection,
            database.dialect.migration_lock(connection) as locked,
        ):
            try:
                for history in HISTORIES:
                    upgrade_history(connection, history)
                if not locked:
                    # This process may have created the indexes of the first revision after another
                    # process had dropped them in the last.
                    drop_duplicate_indexes(_steps(connection))
                record_compatibility(connection)
                ensure_identity(connection)
                connection.commit()
                return
            except DBAPIError as error:
                if locked or attempt + 1 == _CLUSTER_ATTEMPTS:
                    raise
                LOG.info("Another process migrates at the same time; trying again: %s", error)
        time.sleep(random.uniform(0, 0.5))


def _steps(connection: Connection) -> Steps:
    return Steps(Operations(MigrationContext.configure(connection)))
