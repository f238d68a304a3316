"""The findings of `check_database`, each in a database with one fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from databases import Databases
from roost.store import tables
from roost.store.checks.checks import Verdict, check_database, judge
from roost.store.checks.findings import Finding, Level
from roost.store.database import Database, DatabaseOptions
from roost.store.journal.triggers import install_triggers, remove_triggers
from roost.store.meta import ProgressMark, remove_mark, set_mark
from roost.store.migrations.histories import ROOST
from roost.store.migrations.repair import repair_online_data
from roost.store.migrations.schema import inspect_schema, sync_schema
from support.store.schemas import make_older
from support.store.table_cleaning import clean_tables

pytestmark = pytest.mark.slow

NO_OWNER = "00000000-0000-0000-0000-000000000000"

# A tree of three, an aggregate, two classes, and a consumer with an allocation of each class.
GOOD_ROWS = """
INSERT INTO resource_classes (id, name) VALUES (0, 'VCPU'), (1, 'MEMORY_MB'), (10000, 'CUSTOM_GOLD')
INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) VALUES
    (1, '11111111-1111-1111-1111-111111111111', 'root', 0, 1)
INSERT INTO resource_providers
    (id, uuid, name, generation, root_provider_id, parent_provider_id) VALUES
    (2, '22222222-2222-2222-2222-222222222222', 'child', 0, 1, 1),
    (3, '33333333-3333-3333-3333-333333333333', 'grandchild', 0, 1, 2)
INSERT INTO inventories (id, resource_provider_id, resource_class_id, total, reserved, min_unit,
    max_unit, step_size, allocation_ratio) VALUES
    (1, 1, 0, 8, 0, 1, 8, 1, 1.0), (2, 2, 10000, 8, 0, 1, 8, 1, 1.0)
INSERT INTO projects (id, external_id) VALUES (1, 'project')
INSERT INTO users (id, external_id) VALUES (1, 'user')
INSERT INTO consumers (id, uuid, project_id, user_id) VALUES
    (1, 'cccccccc-1111-1111-1111-111111111111', 1, 1)
INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id, used) VALUES
    (1, 1, 'cccccccc-1111-1111-1111-111111111111', 0, 2),
    (2, 2, 'cccccccc-1111-1111-1111-111111111111', 10000, 1)
INSERT INTO placement_aggregates (id, uuid) VALUES (1, 'aaaaaaaa-1111-1111-1111-111111111111')
"""
# A table, a column, and a value that no route accepts there, as SQL.
WRONG_VALUES = (
    ("resource_providers", "uuid", "'one'"),
    ("resource_providers", "generation", "-1"),
    ("inventories", "total", "-8"),
    ("inventories", "min_unit", "0"),
    ("inventories", "max_unit", "0"),
    ("inventories", "step_size", "0"),
    ("inventories", "reserved", "9"),
    ("allocations", "used", "0"),
    ("resource_classes", "name", "'Gold'"),
    ("consumers", "generation", "-1"),
    ("projects", "external_id", "''"),
    ("users", "external_id", "''"),
    ("placement_aggregates", "uuid", "'aaaaaaaa-1111-1111-1111-11111111111g'"),
)
# The tables with a sequence of ids.
TABLES_WITH_SEQUENCE = (
    "resource_providers",
    "inventories",
    "traits",
    "projects",
    "users",
    "consumers",
    "consumer_types",
    "allocations",
    "placement_aggregates",
)


@pytest.fixture(scope="module")
def _checked() -> Iterator[dict[str, Database]]:
    """One database of each kind that only this module uses."""
    checked: dict[str, Database] = {}
    yield checked
    for database in checked.values():
        database.close()


@pytest.fixture
def database(kind: str, _makers: dict[str, Databases], _checked: dict[str, Database]) -> Database:
    """A database that has only rows without faults."""
    if kind not in _checked:
        url = _makers[kind].create().url
        _checked[kind] = Database(DatabaseOptions(url=url, sqlite_synchronous=False))
        sync_schema(_checked[kind])
    _checked[kind].write_at_once(refill)
    return _checked[kind]


def refill(connection: Connection) -> None:
    """Replace all rows by rows without faults."""
    clean_tables(connection)
    for table in (tables.resource_classes, tables.traits):
        connection.execute(sa.delete(table))
    connection.execute(sa.text(f"UPDATE {ROOST.version_table} SET version_num = '{ROOST.head}'"))
    for statement in GOOD_ROWS.strip().split("\nINSERT"):
        connection.execute(sa.text("INSERT " + statement.removeprefix("INSERT")))
    if connection.dialect.name == "postgresql":
        for name in TABLES_WITH_SEQUENCE:
            newest = f"(SELECT max(id) FROM {name})"
            connection.execute(
                sa.text(
                    f"SELECT setval('{name}_id_seq', coalesce({newest}, 1), {newest} IS NOT NULL)"
                )
            )


def run(database: Database, statement: str) -> None:
    def execute(connection: Connection) -> None:
        connection.execute(sa.text(statement))

    database.write_at_once(execute)


def findings(database: Database) -> dict[str, Finding]:
    return {finding.name: finding for finding in database.read(check_database)}


def wrong(database: Database) -> dict[str, Finding]:
    return {
        name: finding
        for name, finding in findings(database).items()
        if finding.level is not Level.OK
    }


def test_a_database_without_faults_has_no_remedies(database: Database) -> None:
    assert wrong(database) == {}
    assert len(findings(database)) >= 10
    assert all(not finding.remedy for finding in findings(database).values())


@pytest.mark.parametrize(
    ("statement", "name", "level", "message"),
    [
        pytest.param(
            "UPDATE resource_providers SET root_provider_id = NULL WHERE id = 3",
            "provider roots",
            Level.FAILURE,
            ": 1 (33333333-3333-3333-3333-333333333333)",
            id="no root",
        ),
        pytest.param(
            "UPDATE resource_providers SET root_provider_id = 2 WHERE id = 3",
            "provider trees",
            Level.FAILURE,
            ": 1 (33333333-3333-3333-3333-333333333333)",
            id="another root than its parent",
        ),
        pytest.param(
            "UPDATE resource_providers SET parent_provider_id = NULL WHERE id = 3",
            "provider trees",
            Level.FAILURE,
            ": 1 (33333333-3333-3333-3333-333333333333)",
            id="no parent and the root of another tree",
        ),
        pytest.param(
            "UPDATE resource_providers SET parent_provider_id = 3 WHERE id = 2",
            "provider cycles",
            Level.FAILURE,
            ": 2 (",
            id="cycle whose roots agree",
        ),
        pytest.param(
            "DELETE FROM consumers",
            "allocation consumers",
            Level.FAILURE,
            ": 1 (cccccccc-1111-1111-1111-111111111111)",
            id="no consumer",
        ),
        pytest.param(
            "UPDATE consumers SET project_id = 7",
            "projects of consumers",
            Level.FAILURE,
            ": 1 (cccccccc-1111-1111-1111-111111111111)",
            id="no project",
        ),
        pytest.param(
            "UPDATE consumers SET user_id = 7",
            "users of consumers",
            Level.FAILURE,
            ": 1 (cccccccc-1111-1111-1111-111111111111)",
            id="no user",
        ),
        pytest.param(
            "DELETE FROM inventories WHERE id = 2",
            "allocation inventories",
            Level.FAILURE,
            ": 1 (cccccccc-1111-1111-1111-111111111111)",
            id="no inventory of the class",
        ),
        pytest.param(
            "INSERT INTO inventories (id, resource_provider_id, resource_class_id, total, "
            "reserved, min_unit, max_unit, step_size, allocation_ratio) "
            "VALUES (9, 3, 10001, 8, 0, 1, 8, 1, 1.0)",
            "resource classes of inventories",
            Level.FAILURE,
            ": 1 (10001)",
            id="no resource class",
        ),
        pytest.param(
            "UPDATE resource_classes SET id = 21 WHERE name = 'MEMORY_MB'",
            "standard resource classes",
            Level.FAILURE,
            "MEMORY_MB has the id 21 instead of 1",
            id="class with another id",
        ),
        pytest.param(
            "UPDATE resource_classes SET name = 'CUSTOM_SILVER' WHERE id = 1",
            "standard resource classes",
            Level.FAILURE,
            "CUSTOM_SILVER has the id 1, which is that of MEMORY_MB",
            id="id of a standard class",
        ),
        pytest.param(
            "UPDATE resource_classes SET name = 'CUSTOM_SILVER', id = 9000 WHERE id = 1",
            "standard resource classes",
            Level.FAILURE,
            "CUSTOM_SILVER has the id 9000, which is below 10000",
            id="custom class among the standard ones",
        ),
        pytest.param(
            "INSERT INTO consumers (id, uuid, project_id, user_id) VALUES "
            "(9, 'DDDDDDDD-1111-1111-1111-111111111111', 1, 1)",
            "consumer uuids",
            Level.WARNING,
            ": 1 (DDDDDDDD-1111-1111-1111-111111111111)",
            id="consumer in upper case",
        ),
        pytest.param(
            "UPDATE placement_aggregates SET uuid = 'aaaaaaaa111111111111111111111111'",
            "aggregate uuids",
            Level.WARNING,
            ": 1 (aaaaaaaa111111111111111111111111)",
            id="aggregate without dashes",
        ),
        pytest.param(
            "INSERT INTO inventories (id, resource_provider_id, resource_class_id, total, "
            "reserved, min_unit, max_unit, step_size, allocation_ratio) "
            "VALUES (9, 77, 0, 8, 0, 1, 8, 1, 1.0)",
            "inventories of providers",
            Level.FAILURE,
            ": 1 (77)",
            id="inventory of no provider",
        ),
        pytest.param(
            "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) "
            "VALUES (1, 55)",
            "aggregates of providers",
            Level.FAILURE,
            ": 1 (55)",
            id="no aggregate",
        ),
        pytest.param(
            "UPDATE resource_providers SET generation = NULL WHERE id = 2",
            "values of resource_providers",
            Level.FAILURE,
            ": 1 (generation where id is 2)",
            id="no generation",
        ),
        pytest.param(
            "INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id, "
            "used) VALUES (9, 1, 'cccccccc-1111-1111-1111-111111111111', 0, 1)",
            "repeated allocations",
            Level.FAILURE,
            ": 1 (cccccccc-1111-1111-1111-111111111111)",
            id="two allocations of one class",
        ),
        pytest.param(
            "UPDATE inventories SET total = 1 WHERE id = 1",
            "capacity",
            Level.WARNING,
            ": 1 (11111111-1111-1111-1111-111111111111)",
            id="used beyond capacity",
        ),
        pytest.param(
            "INSERT INTO roost_ownership"
            " (id, created_at, owner, provider_id, provider_uuid, content)"
            " VALUES (1, '2026-11-18 12:00:00', 'me', 99, '99999999-1111-1111-1111-111111111111',"
            " '{}')",
            "ownership",
            Level.WARNING,
            ": 1 (99999999-1111-1111-1111-111111111111)",
            id="owners of a provider that is gone",
        ),
        pytest.param(
            "UPDATE roost_schema_version SET version_num = 'roost_9999'",
            "schema revisions",
            Level.FAILURE,
            "roost_9999",
            id="newer schema",
        ),
    ],
)
def test_a_fault_is_found_by_its_check_alone(
    database: Database, statement: str, name: str, level: Level, message: str
) -> None:
    run(database, statement)
    found = wrong(database)
    # On PostgreSQL, an insert with an id does not move the sequence; see below.
    found.pop("sequences", None)
    assert list(found) == [name]
    assert found[name].level is level
    assert message in found[name].message
    assert found[name].remedy


def test_a_value_that_no_route_accepts_is_found(database: Database) -> None:
    for table, column, value in WRONG_VALUES:
        with database.engine.connect() as connection:
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = {value} WHERE id = 1")
            found = {finding.name: finding for finding in check_database(connection)}
            connection.rollback()
        values = found[f"values of {table}"]
        assert values.level is Level.FAILURE, (column, value)
        assert f": 1 ({column} where id is 1)" in values.message


# Other databases compare each character.
@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_a_name_with_a_control_character_is_no_fault_in_any_collation(database: Database) -> None:
    """Some collations ignore such characters, so that one is like another."""
    for collation in ("utf8mb4_unicode_ci", "utf8mb4_general_ci"):
        run(
            database,
            f"ALTER TABLE resource_providers CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}",
        )
        run(
            database,
            "UPDATE resource_providers SET name = CONCAT('ro', CHAR(1), 'ot') WHERE id = 1",
        )
        assert findings(database)["values of resource_providers"].level is Level.OK
        run(
            database,
            "UPDATE resource_providers SET name = CONCAT('ro', CHAR(0), 'ot') WHERE id = 1",
        )
        assert findings(database)["values of resource_providers"].level is Level.FAILURE


# On servers, a foreign key prevents it.
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_parent_that_does_not_exist_is_found(database: Database) -> None:
    run(database, "UPDATE resource_providers SET parent_provider_id = 9 WHERE id = 3")
    assert set(wrong(database)) == {"provider trees", "provider cycles"}


def test_a_finding_has_few_examples(database: Database) -> None:
    for id_ in range(10, 30):
        run(
            database,
            "INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id, "
            f"used) VALUES ({id_}, 1, 'cccccccc-{id_}', 0, 1)",
        )
    message = findings(database)["allocation consumers"].message
    assert ": 20 (" in message
    assert message.count("cccccccc") == 3
    assert message.endswith(", ...)")


def test_a_sequence_below_its_ids_is_found_and_its_remedy_works(database: Database) -> None:
    if database.engine.dialect.name != "postgresql":
        assert "sequences" not in findings(database)
        return
    run(database, "INSERT INTO traits (id, name) VALUES (1, 'CUSTOM_A')")
    run(database, "INSERT INTO consumer_types (id, name) VALUES (40, 'INSTANCE')")
    found = wrong(database)
    assert list(found) == ["sequences"]
    assert "traits_id_seq" in found["sequences"].message
    assert "consumer_types_id_seq" in found["sequences"].message
    for statement in found["sequences"].remedy.removeprefix("Run: ").split(";"):
        if statement.strip():
            run(database, statement)
    run(database, "INSERT INTO consumer_types (name) VALUES ('MIGRATION')")
    assert wrong(database) == {}


def test_the_repair_command_is_a_remedy_that_works(database: Database) -> None:
    run(database, "UPDATE resource_providers SET root_provider_id = NULL WHERE id = 3")
    run(database, "DELETE FROM consumers")
    found = wrong(database)
    assert {finding.remedy for finding in found.values()} == {"Run: roost db sync --repair"}
    database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER)
    assert wrong(database) == {}


@pytest.mark.parametrize("revision", ["b4ed3a175331", "a082b8bb98d0"])
def test_a_database_of_the_reference_can_be_checked_before_its_adoption(
    database_url: str, revision: str
) -> None:
    database = Database(DatabaseOptions(url=database_url))
    assert [finding.level for finding in database.read(check_database)] == [Level.WARNING]
    make_older(database, revision)
    run(database, "UPDATE resource_providers SET root_provider_id = NULL")
    assert set(wrong(database)) - {"indexes"} == {"schema revisions", "provider roots"}
    assert wrong(database)["schema revisions"].remedy == "Run: roost db sync"
    database.close()


def test_an_operator_hears_the_size_and_the_time_of_a_first_load(database: Database) -> None:
    message = findings(database)["size"].message
    assert message.startswith("1 consumers, 3 resource_providers, 2 inventories, 2 allocations; ")
    assert "about 0.0 s" in message or "about 0.1 s" in message
    assert findings(database)["untyped consumers"].message.startswith("1 consumers without a type")


def test_triggers_and_unfinished_imports_are_told(database: Database) -> None:
    assert findings(database)["triggers"].message.startswith("not installed")
    install_triggers(database)
    try:
        assert findings(database)["triggers"].message.startswith("installed")
    finally:
        remove_triggers(database)
    database.write_at_once(set_mark, ProgressMark(17, "abc"))
    assert list(wrong(database)) == ["imports"]
    database.write_at_once(remove_mark)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE placement_aggregates", "there is no table placement_aggregates"),
        ("ALTER TABLE inventories DROP COLUMN step_size", "inventories has no column step_size"),
        (
            "ALTER TABLE traits ADD COLUMN vendor INTEGER NOT NULL",
            "traits has a column vendor that an insert must fill",
        ),
    ],
)
def test_tables_that_are_not_those_of_placement_are_found(
    database_url: str, statement: str, words: str
) -> None:
    database = Database(DatabaseOptions(url=database_url))
    sync_schema(database)
    if database.engine.dialect.name == "sqlite":
        # SQLite adds such a column only with a default, which a table of another tool may lack.
        statement = statement.replace("ADD COLUMN vendor INTEGER NOT NULL", "ADD COLUMN vendor")
    run(database, statement)
    found = wrong(database)
    if statement.endswith("vendor"):
        assert found == {}
    else:
        assert list(found) == ["tables"]
        assert words in found["tables"].message
    database.close()


def test_a_missing_index_and_a_foreign_table_are_told(database_url: str) -> None:
    database = Database(DatabaseOptions(url=database_url))
    sync_schema(database)
    run(database, "CREATE TABLE build_requests (id INTEGER)")
    is_mysql = database.engine.dialect.name == "mysql"
    index = "allocations_consumer_id_idx"
    run(database, f"DROP INDEX {index}{' ON allocations' if is_mysql else ''}")
    assert "build_requests" in findings(database)["tables"].message
    assert list(wrong(database)) == ["indexes"]
    assert index in wrong(database)["indexes"].message
    database.close()


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "level", "words"),
    [
        ("ALTER TABLE traits CONVERT TO CHARACTER SET latin1", Level.WARNING, "latin1"),
        ("ALTER TABLE allocations ENGINE = MyISAM", Level.FAILURE, "allocations"),
        (
            "ALTER TABLE allocations CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Level.FAILURE,
            "different collations",
        ),
    ],
)
def test_tables_that_mysql_cannot_use_well_are_found(
    database_url: str, statement: str, level: Level, words: str
) -> None:
    database = Database(DatabaseOptions(url=database_url))
    sync_schema(database)
    run(database, statement)
    found = database.read(check_database)
    (storage,) = (finding for finding in found if finding.name == "character set")
    assert (storage.level, words in storage.message) == (level, True)
    database.close()


def test_the_verdict_says_in_words_whether_a_database_can_be_adopted(database_url: str) -> None:
    database = Database(DatabaseOptions(url=database_url))

    def verdict() -> Verdict:
        return judge(inspect_schema(database), database.read(check_database))

    assert verdict().sentence.startswith("The database is empty.")
    make_older(database, "a082b8bb98d0")
    assert verdict() == Verdict(
        True,
        "Roost can adopt this database in place. Stop the services that write to it, and run: "
        "roost db sync",
    )
    run(database, "UPDATE resource_providers SET root_provider_id = NULL")
    assert verdict().adoptable is False
    assert "provider roots" in verdict().sentence
    database.write_at_once(repair_online_data, NO_OWNER, NO_OWNER)
    sync_schema(database)
    assert verdict().sentence == "Roost has adopted this database. Nothing is to be done."
    database.close()
