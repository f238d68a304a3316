"""Runs the histories: from where the database is to where it should be."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.database import Database
from roost.store.migrations.histories import HISTORIES, History
from roost.store.migrations.lock import lock_transaction, named_lock
from roost.store.migrations.placement import drop_indexes_a082b8bb98d0
from roost.store.sessions import session
from roost.store.watchdog import wait_for_ever

LOG = logging.getLogger(__name__)

_CLUSTER_ATTEMPTS = 20


def upgrade_database(database: Database) -> None:
    """Bring both histories to their heads, one process at a time.

    SQLite and PostgreSQL: in one transaction, so that all of it happens or nothing.
    """
    if database.engine.dialect.name in ("mysql", "mariadb"):
        _upgrade_mysql(database)
    else:
        database.write(_upgrade_in_transaction)


def _upgrade_in_transaction(connection: Connection) -> None:
    wait_for_ever(connection)
    if connection.dialect.name == "postgresql":
        lock_transaction(connection)
    for history in HISTORIES:
        upgrade_history(connection, history)


def _upgrade_mysql(database: Database) -> None:
    """MySQL commits each step at once; a revision is recorded after its last step.

    Without the lock, in a cluster, others may do the same steps at the same time and make some of
    ours fail. Every step looks first, so trying again finds what they did and does the rest.
    """
    for attempt in range(_CLUSTER_ATTEMPTS):
        with (
            session(database.writers, math.inf) as connection,
            named_lock(connection) as alone,
        ):
            try:
                for history in HISTORIES:
                    _forget_older_revisions(connection, history)
                    upgrade_history(connection, history)
                    # Looking has begun a transaction if there was nothing to do.
                    connection.commit()
                if not alone:
                    _drop_late_indexes(connection)
                return
            except (DBAPIError, CommandError) as error:
                if alone or attempt + 1 == _CLUSTER_ATTEMPTS:
                    raise
                LOG.info("Another process migrates at the same time; trying again: %s", error)
        time.sleep(random.uniform(0, 0.5))


def _drop_late_indexes(connection: Connection) -> None:
    """Drop what this process created after another process had dropped it.

    Without the lock, a slow process is still in the first revision when others are past the last.
    """
    with connection.begin(), Operations.context(MigrationContext.configure(connection)):
        drop_indexes_a082b8bb98d0.upgrade()


def scripts(history: History) -> ScriptDirectory:
    """The revisions of a history as alembic reads them from their files."""
    folder = Path(__file__).parent / history.name
    return ScriptDirectory(folder, version_locations=[folder])


def upgrade_history(connection: Connection, history: History, target: str = "head") -> None:
    """Run the revisions that are missing, up to `target`.

    In the transaction of the connection if it is in one, otherwise in one for each revision.
    """
    directory = scripts(history)

    def missing(recorded: Any, _context: MigrationContext) -> Iterable[Any]:
        steps: Iterable[Any] = directory._upgrade_revs(target, recorded)
        return steps

    def tell(**applied: Any) -> None:
        LOG.info("Schema %s is at revision %s", history.name, applied["step"].up_revision_id)

    context = MigrationContext.configure(
        connection,
        opts={
            "script": directory,
            "fn": missing,
            "version_table": history.version_table,
            "on_version_apply": (tell,),
        },
    )
    with Operations.context(context):
        context.run_migrations()


def _forget_older_revisions(connection: Connection, history: History) -> None:
    """Leave one recorded revision, the newest, where two processes have each recorded one."""
    # In a transaction that is over before the revisions begin theirs.
    with connection.begin():
        if not sa.inspect(connection).has_table(history.version_table):
            return
        table = sa.table(history.version_table, sa.column("version_num", sa.String))
        recorded = connection.scalars(sa.select(table.c.version_num)).all()
        if len(recorded) > 1 and all(history.knows(revision) for revision in recorded):
            newest = history.newest(recorded)
            connection.execute(table.delete().where(table.c.version_num != newest))
