"""Migrations by several processes at once, and by a process that is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.histories import HISTORIES, PLACEMENT
from roost.store.migrations.schema import SchemaState, inspect_schema, prepare_schema, sync_schema
from support.simultaneous_processes import Ended, run_together
from support.store.schemas import describe, drop_everything, epochs, make_older, recorded

pytestmark = pytest.mark.slow

MIGRATIONS = sum(len(history.revisions) for history in HISTORIES)

# Prepares the schema, and prints how many revisions it ran and how many attempts failed.
SCRIPT = """
import logging, os, signal, sys
import sqlalchemy as sa
from roost.store.database import Database, DatabaseOptions
from roost.store.databases import mysql
from roost.store.migrations import runner
from roost.store.migrations.schema import prepare_schema

url, upgrade, cluster, die_after = sys.argv[1], sys.argv[2] == "True", sys.argv[3], int(sys.argv[4])
if cluster == "True":
    # The server refuses the lock like a cluster, but with another error code.
    mysql.MIGRATION_LOCK, mysql.LOCK_REFUSALS = "no_such_function()", {1305}
said = []
runner.LOG.addFilter(lambda record: said.append(record.msg))
runner.LOG.setLevel(logging.INFO)
statements = []

def die(connection, cursor, statement, *rest):
    if statement.lstrip().startswith("CREATE"):
        statements.append(statement)
        if len(statements) == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

def work():
    database = Database(DatabaseOptions(url=url))
    sa.event.listen(database.engine, "after_cursor_execute", die)
    prepare_schema(database, upgrade)
    database.close()
    print(sum("is at" in line for line in said), sum("trying again" in line for line in said))
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database, not the prepared one that other tests share."""
    database = Database(DatabaseOptions(url=database_url, sqlite_synchronous=False))
    yield database
    database.close()


def start_together(
    url: str, count: int, *, upgrade: bool = False, cluster: bool = False, die_after: int = 0
) -> list[Ended]:
    """Let processes prepare the same database at the same moment.

    `die_after`: the process is killed after it has created so many tables and indexes.
    """
    return run_together(SCRIPT, count, url, str(upgrade), str(cluster), str(die_after))


def test_one_of_eight_processes_migrates_an_empty_database(
    database: Database, database_url: str
) -> None:
    ended = start_together(database_url, 8)
    assert [(status, errors) for status, _, errors in ended] == [(0, "")] * 8
    assert sorted(output for _, output, _ in ended) == ["0 0\n"] * 7 + [f"{MIGRATIONS} 0\n"]
    assert inspect_schema(database).state is SchemaState.CURRENT
    assert len(epochs(database)) == 1


def test_one_of_eight_processes_migrates_an_older_database(
    database: Database, database_url: str
) -> None:
    make_older(database, "611cd6dffd7b")
    ended = start_together(database_url, 8, upgrade=True)
    assert [(status, errors) for status, _, errors in ended] == [(0, "")] * 8
    assert sorted(output for _, output, _ in ended) == ["0 0\n"] * 7 + [f"{MIGRATIONS - 2} 0\n"]
    assert recorded(database, "alembic_version") == [PLACEMENT.head]


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_eight_processes_migrate_a_cluster_without_a_lock(
    database: Database, database_url: str
) -> None:
    ended = start_together(database_url, 8, cluster=True)
    assert [(status, errors) for status, _, errors in ended] == [(0, "")] * 8
    # Without a disturbed attempt, the test would prove nothing.
    assert sum(int(output.split()[1]) for _, output, _ in ended) > 0
    assert recorded(database, "alembic_version") == [PLACEMENT.head]
    assert len(epochs(database)) == 1
    together = describe(database)
    drop_everything(database)
    sync_schema(database)
    assert describe(database) == together


def test_a_start_finishes_the_migration_of_a_killed_process(
    database: Database, database_url: str
) -> None:
    [(status, _, _)] = start_together(database_url, 1, die_after=12)
    assert status == -signal.SIGKILL
    halfway = SchemaState.OLDER if database.engine.dialect.name == "mysql" else SchemaState.EMPTY
    assert inspect_schema(database).state is halfway
    prepare_schema(database, upgrade=False)
    assert inspect_schema(database).state is SchemaState.CURRENT


class Killed(BaseException):
    """The end of the process."""


# Only MySQL keeps a part of a migration.
@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_a_migration_that_ends_after_any_statement_is_finished(database: Database) -> None:
    @sa.event.listens_for(database.engine, "after_cursor_execute")
    def die(_connection: Connection, cursor: Any, statement: str, *_rest: object) -> None:
        # With a warning, the table exists from an earlier run.
        changes = statement.lstrip().startswith(("CREATE", "ALTER", "DROP"))
        if changes and not cursor.warning_count:
            raise Killed

    ends = 0
    while inspect_schema(database).state is not SchemaState.CURRENT:
        try:
            sync_schema(database)
        except Killed:
            ends += 1
    assert ends > 35
    sa.event.remove(database.engine, "after_cursor_execute", die)
    assert recorded(database, "alembic_version") == [PLACEMENT.head]
    assert len(epochs(database)) == 1
    pieced_together = describe(database)
    drop_everything(database)
    sync_schema(database)
    assert describe(database) == pieced_together
