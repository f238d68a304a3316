"""The schema of a database: making, upgrading, repairing and refusing it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store import tables
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.databases import mysql, postgresql
from roost.store.dialect import Dialect
from roost.store.migrations import placement, roost
from roost.store.migrations.histories import HISTORIES, PLACEMENT, ROOST, History
from roost.store.migrations.repair import Repaired, repair_online_data
from roost.store.migrations.schema import (
    SchemaState,
    connect_or_explain,
    inspect_schema,
    prepare_schema,
    sync_schema,
)
from roost.store.migrations.steps import Revision
from support.store.schemas import (
    add_allocation,
    add_provider,
    describe,
    drop_everything,
    epochs,
    make_older,
    recorded,
)

pytestmark = pytest.mark.slow

NO_OWNER = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database, not the prepared one that other tests share."""
    database = Database(DatabaseOptions(url=database_url, sqlite_synchronous=False))
    yield database
    database.close()


@pytest.fixture(scope="module")
def new_schemas() -> dict[str, Any]:
    """The schema that each kind of database gets if all revisions run at once."""
    return {}


@pytest.mark.parametrize(("history", "module"), [(PLACEMENT, placement), (ROOST, roost)])
def test_a_history_has_every_revision_of_its_module(history: History, module: ModuleType) -> None:
    found = {value for value in vars(module).values() if isinstance(value, Revision)}
    assert set(history.revisions) == found


def test_looking_at_a_schema_imports_no_alembic() -> None:
    code = "import sys, roost.store.migrations.schema; sys.exit('alembic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_new_database_has_the_tables_that_queries_use(database: Database) -> None:
    assert inspect_schema(database).state is SchemaState.EMPTY
    status = sync_schema(database)
    assert status.state is SchemaState.CURRENT
    assert (status.placement_revision, status.roost_revision) == (PLACEMENT.head, ROOST.head)
    migrated = describe(database)
    for history in HISTORIES:
        assert recorded(database, history.version_table) == [history.head]
        del migrated[history.version_table]
    drop_everything(database)
    with database.engine.begin() as connection:
        tables.metadata.create_all(connection)
    declared = describe(database)
    name, type_, nullable, default = migrated["roost_changes"]["columns"][1]
    assert default == ("txid_current()" if database.engine.dialect.name == "postgresql" else None)
    migrated["roost_changes"]["columns"][1] = (name, type_, nullable, None)
    assert migrated.keys() == declared.keys()
    for table, description in declared.items():
        assert migrated[table] == description


def test_the_id_of_a_change_is_never_used_again(database: Database) -> None:
    sync_schema(database)
    change = {"created_at": sa.func.now(), "kind": "provider"}

    def newest(connection: Connection) -> int:
        connection.execute(sa.insert(tables.roost_changes).values(change))
        id_: int = connection.scalars(sa.select(sa.func.max(tables.roost_changes.c.id))).one()
        return id_

    first = database.write_at_once(newest)
    database.write_at_once(lambda connection: connection.execute(sa.delete(tables.roost_changes)))
    assert database.write_at_once(newest) > first


def test_a_second_sync_changes_nothing(database: Database) -> None:
    sync_schema(database)
    before, epoch = describe(database), epochs(database)
    assert sync_schema(database).state is SchemaState.CURRENT
    assert describe(database) == before
    assert epochs(database) == epoch
    assert len(epoch) == 1


@pytest.mark.parametrize("revision", PLACEMENT.ids)
def test_a_revision_of_the_reference_is_upgraded(
    database: Database, kind: str, new_schemas: dict[str, Any], revision: str
) -> None:
    make_older(database, revision)
    status = inspect_schema(database)
    assert (status.state, status.placement_revision) == (SchemaState.OLDER, revision)
    with pytest.raises(DatabaseUnusable, match=rf"{revision} \(wanted .*: roost db sync$"):
        prepare_schema(database, upgrade=False)
    assert inspect_schema(database) == status
    assert sync_schema(database).state is SchemaState.CURRENT
    with database.engine.connect() as connection:
        assert connection.scalar(sa.select(tables.resource_providers.c.generation)) == 7
    upgraded = describe(database)
    if kind not in new_schemas:
        drop_everything(database)
        assert sync_schema(database).state is SchemaState.CURRENT
        new_schemas[kind] = describe(database)
    assert upgraded == new_schemas[kind]


def test_missing_roots_are_refused_until_repaired(database: Database) -> None:
    make_older(database, "b4ed3a175331")
    root = database.write_at_once(add_provider, uuid="21111111-1111-1111-1111-111111111111")
    child = database.write_at_once(
        add_provider, uuid="31111111-1111-1111-1111-111111111111", parent=root
    )
    database.write_at_once(add_provider, uuid="41111111-1111-1111-1111-111111111111", parent=child)
    with pytest.raises(DatabaseUnusable, match=r"3 resource providers have no.*--repair"):
        sync_schema(database)
    assert database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER) == Repaired(
        roots=3, consumers=0
    )
    assert sync_schema(database).state is SchemaState.CURRENT
    with database.engine.connect() as connection:
        found = connection.scalars(sa.select(tables.resource_providers.c.root_provider_id)).all()
    assert sorted(found) == [1, root, root, root]


def test_missing_consumers_are_refused_until_repaired(database: Database) -> None:
    make_older(database, "611cd6dffd7b")
    lost = ["aaaaaaaa-1111-1111-1111-111111111111", "bbbbbbbb-1111-1111-1111-111111111111"]
    for consumer in (*lost, lost[0]):
        database.write_at_once(add_allocation, consumer)
    with pytest.raises(
        DatabaseUnusable, match=r"2 consumers have allocations but no row.*--repair"
    ):
        sync_schema(database)
    assert database.write_at_once(repair_online_data, NO_OWNER, "someone") == Repaired(
        roots=0, consumers=2
    )
    assert sync_schema(database).state is SchemaState.CURRENT
    consumers, projects, users = tables.consumers, tables.projects, tables.users
    statement = (
        sa.select(consumers.c.uuid, consumers.c.generation, projects.c.external_id)
        .add_columns(users.c.external_id.label("user"))
        .join_from(consumers, projects, projects.c.id == consumers.c.project_id)
        .join(users, users.c.id == consumers.c.user_id)
        .order_by(consumers.c.uuid)
    )
    with database.engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(statement)]
    assert rows == [(consumer, 0, NO_OWNER, "someone") for consumer in lost]
    assert database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER) == Repaired(
        roots=0, consumers=0
    )


def test_a_repair_of_a_database_in_use_is_journalled(database: Database) -> None:
    sync_schema(database)
    database.write_at_once(add_provider, uuid="11111111-1111-1111-1111-111111111111", root=True)
    lost = database.write_at_once(add_provider, uuid="21111111-1111-1111-1111-111111111111")
    database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER)
    with database.engine.connect() as connection:
        changes = connection.execute(
            sa.select(tables.roost_changes.c.kind, tables.roost_changes.c.provider_id)
        ).all()
    assert [tuple(change) for change in changes] == [("provider", lost)]


def test_a_repair_makes_roots_of_providers_in_a_cycle(database: Database) -> None:
    sync_schema(database)
    one = database.write_at_once(add_provider, uuid="11111111-1111-1111-1111-111111111111")
    two = database.write_at_once(
        add_provider, uuid="21111111-1111-1111-1111-111111111111", parent=one
    )
    providers = tables.resource_providers
    close = sa.update(providers).where(providers.c.id == one).values(parent_provider_id=two)
    database.write_at_once(lambda connection: connection.execute(close))
    assert database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER).roots == 2
    with database.engine.connect() as connection:
        assert None not in connection.scalars(sa.select(providers.c.root_provider_id)).all()


# Only a cluster of MySQL can record two.
@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_the_newer_of_two_recorded_revisions_is_true(database: Database) -> None:
    sync_schema(database)
    late = sa.text("INSERT INTO alembic_version VALUES ('422ece571366')")
    database.write_at_once(lambda connection: connection.execute(late))
    assert inspect_schema(database).state is SchemaState.CURRENT
    sync_schema(database)
    assert recorded(database, "alembic_version") == [PLACEMENT.head]


@pytest.mark.parametrize("table", ["alembic_version", "roost_schema_version"])
def test_an_unknown_revision_is_refused(database: Database, table: str) -> None:
    sync_schema(database)
    newer = sa.text(f"UPDATE {table} SET version_num = 'ffffffffffff'")
    database.write_at_once(lambda connection: connection.execute(newer))
    assert inspect_schema(database).state is SchemaState.UNKNOWN
    for refused in (lambda: prepare_schema(database, upgrade=True), lambda: sync_schema(database)):
        with pytest.raises(DatabaseUnusable, match=r"revision ffffffffffff.*newer version"):
            refused()
    assert recorded(database, table) == ["ffffffffffff"]


# One where both histories continue, and one where only that of Roost does.
@pytest.mark.parametrize("revision", [PLACEMENT.ids[0], PLACEMENT.head])
def test_a_start_upgrades_if_the_operator_allows_it(database: Database, revision: str) -> None:
    make_older(database, revision)
    prepare_schema(database, upgrade=True)
    assert inspect_schema(database).state is SchemaState.CURRENT


def test_a_start_on_a_current_database_sends_four_statements(database: Database) -> None:
    sync_schema(database)
    statements: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    for engine in (database.engine, database.reader):
        sa.event.listen(engine, "after_cursor_execute", note)
    prepare_schema(database, upgrade=False)
    assert len(statements) == 4


def test_tables_of_another_application_are_refused(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE users (id INTEGER, login VARCHAR(10))"))
        connection.execute(sa.text("INSERT INTO users VALUES (1, 'me')"))
    with pytest.raises(DatabaseUnusable, match="roost db sync"):
        prepare_schema(database, upgrade=False)
    with pytest.raises(DatabaseUnusable, match="'users' that belongs to something else"):
        sync_schema(database)


# On SQLite, the operating system frees the lock of a process that ends.
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_a_migration_waits_for_another_for_a_bounded_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = {
        "postgresql": f"SELECT pg_advisory_xact_lock({postgresql.MIGRATION_KEY})",
        "mysql": f"SELECT get_lock({mysql.MIGRATION_LOCK}, 0)",
    }[database.engine.dialect.name]
    monkeypatch.setattr(Dialect, "migration_seconds_max", 0.2)
    with database.engine.connect() as other:
        other.execute(sa.text(take))
        with pytest.raises(DatabaseUnusable, match="Another process has been migrating"):
            sync_schema(database)
        # A connection in the pool would keep the lock.
        other.invalidate()
    assert sync_schema(database).state is SchemaState.CURRENT


def test_a_failed_upgrade_frees_the_lock(database: Database) -> None:
    make_older(database, "b4ed3a175331")
    database.write_at_once(add_provider, uuid="21111111-1111-1111-1111-111111111111")
    with pytest.raises(DatabaseUnusable, match="no root_provider_id"):
        sync_schema(database)
    other = Database(DatabaseOptions(url=database.options.url))
    with pytest.raises(DatabaseUnusable, match="no root_provider_id"):
        sync_schema(other)
    other.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me:secret@127.0.0.1:1/placement?password=secret", "onnection refused"),
        ("mysql+pymysql://me:secret@127.0.0.1:1/placement", "Can't connect to MySQL server"),
    ],
)
def test_an_unreachable_server_is_explained(
    url: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(DatabaseOptions(url=url))
    with caplog.at_level(logging.WARNING), pytest.raises(DatabaseUnusable) as caught:
        prepare_schema(database, upgrade=False, max_retries=3, retry_interval=0)
    assert reason in str(caught.value)
    assert "127.0.0.1:1/placement" in str(caught.value)
    assert "secret" not in str(caught.value) + caplog.text
    assert len(caplog.records) == 2
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database." * 100)
    for name, reason in (
        ("missing/roost.db", "unable to open database file"),
        ("text.db", "file is not a database"),
    ):
        database = Database(DatabaseOptions(url=f"sqlite:///{tmp_path}/{name}"))
        with pytest.raises(DatabaseUnusable, match=f"{name} cannot be reached: {reason}"):
            connect_or_explain(database, max_retries=-1, retry_interval=600)
        database.close()
