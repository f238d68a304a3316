"""Two versions of Roost on one database: what a rolling upgrade relies on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.model.identifiers import new_uuid
from roost.store import tables
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations import histories, schema
from roost.store.migrations.histories import (
    HISTORIES,
    PLACEMENT,
    ROOST,
    ROOST_COMPATIBLE_SINCE,
    History,
)
from roost.store.migrations.runner import upgrade_history
from roost.store.migrations.schema import SchemaState, inspect_schema, prepare_schema, sync_schema
from support.api_client import ApiClient
from support.store.schemas import describe, not_additive, recorded

pytestmark = pytest.mark.slow

# The journal as the first revision has it. Versions before `roost_0002` know no other columns.
OLD_COLUMNS = ("created_at", "kind", "provider_id", "provider_uuid")


@pytest.fixture
def empty(database_url: str) -> Iterator[Database]:
    """An empty database, not the prepared one that other tests share."""
    database = Database(DatabaseOptions(url=database_url, sqlite_synchronous=False))
    yield database
    database.close()


def migrate(database: Database, revision: str) -> None:
    """Bring a database to a revision of Roost's history, as an older version would."""
    with database.engine.connect() as connection:
        upgrade_history(connection, PLACEMENT)
        upgrade_history(connection, ROOST, revision)
        connection.commit()


def migrate_to_a_newer_version(database: Database, compatible_since: str) -> None:
    """Record what `roost db sync` of a version with one more revision records."""
    sync_schema(database)
    values = {"value": f"roost_9999 {compatible_since}"}
    meta = tables.roost_meta

    def write(connection: Connection) -> None:
        connection.execute(sa.text("UPDATE roost_schema_version SET version_num = 'roost_9999'"))
        connection.execute(
            sa.update(meta).where(meta.c.name == histories.COMPATIBLE_SINCE).values(values)
        )

    database.write_at_once(write)


@pytest.mark.parametrize("number", range(1, len(ROOST.ids)))
def test_a_revision_only_adds(empty: Database, number: int) -> None:
    migrate(empty, ROOST.ids[number - 1])
    before = describe(empty)
    migrate(empty, ROOST.ids[number])
    assert not_additive(before, describe(empty)) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda found: found.pop("roost_meta"), "table roost_meta is gone"),
        (lambda found: found["roost_meta"]["columns"].pop(), "roost_meta.value is gone"),
        (
            lambda found: found["roost_meta"]["columns"].append(("new", "INTEGER()", False, None)),
            "roost_meta.new is required",
        ),
        (
            lambda found: found["roost_meta"]["columns"].__setitem__(
                1, ("value", "INTEGER()", False, None)
            ),
            "roost_meta.value has changed",
        ),
        (
            lambda found: found["roost_meta"]["unique"].append("value"),
            "unique of roost_meta has changed",
        ),
        (
            lambda found: found["roost_meta"]["indexes"].append("[('unique', 1)]"),
            "roost_meta has a unique index more",
        ),
        (
            lambda found: found["roost_meta"]["foreign keys"].append("value"),
            "foreign keys of roost_meta has changed",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_change_that_breaks_older_versions_is_named(
    empty: Database, change: Any, complaint: str
) -> None:
    sync_schema(empty)
    before = describe(empty)
    after = deepcopy(before)
    change(after)
    assert not_additive(before, after) == [complaint]


@pytest.mark.parametrize("revision", ROOST.ids)
def test_statements_of_an_older_version_work_on_the_newest_tables(
    empty: Database, revision: str
) -> None:
    migrate(empty, revision)
    older = sa.MetaData()
    with empty.engine.connect() as connection:
        older.reflect(connection)
    sync_schema(empty)
    journal = older.tables["roost_changes"]
    row = {
        "created_at": tables.utc_now(),
        "kind": "usage",
        "provider_id": 7,
        "provider_uuid": new_uuid(),
    }
    empty.write_at_once(lambda connection: connection.execute(sa.insert(journal).values(row)))
    with empty.engine.connect() as connection:
        for name, table in older.tables.items():
            if name.startswith("roost_"):
                connection.execute(sa.select(table)).all()
        assert connection.scalar(sa.select(journal.c.provider_id)) == 7


# Every version that the newest one claims to get along with.
@pytest.mark.parametrize("revision", ROOST.ids[ROOST.ids.index(ROOST_COMPATIBLE_SINCE) :])
def test_a_version_starts_on_a_schema_that_the_newest_version_has_migrated(
    empty: Database, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_schema(empty)
    known = ROOST.revisions[: ROOST.ids.index(revision) + 1]
    older = History(ROOST.name, ROOST.version_table, known)
    monkeypatch.setattr(schema, "ROOST", older)
    monkeypatch.setattr(schema, "HISTORIES", (PLACEMENT, older))
    monkeypatch.setattr(histories, "ROOST", older)
    prepare_schema(empty, upgrade=False)
    expected = SchemaState.CURRENT if revision == ROOST.head else SchemaState.NEWER
    status = inspect_schema(empty)
    assert (status.state, status.can_serve) == (expected, True)


def test_a_version_starts_on_a_newer_schema_that_allows_it(
    empty: Database, caplog: pytest.LogCaptureFixture
) -> None:
    migrate_to_a_newer_version(empty, ROOST.head)
    for upgrade in (False, True):
        with caplog.at_level(logging.WARNING):
            prepare_schema(empty, upgrade=upgrade)
        assert "lets this version serve" in caplog.text
    # Nothing of the older version replaces what the newer version has written.
    assert sync_schema(empty).state is SchemaState.NEWER
    assert recorded(empty, "roost_schema_version") == ["roost_9999"]
    (finding, *_) = empty.read(check_database)
    assert (finding.name, finding.level) == ("schema revisions", Level.WARNING)


def test_a_version_refuses_a_newer_schema_that_does_not_allow_it(empty: Database) -> None:
    migrate_to_a_newer_version(empty, "roost_9998")
    status = inspect_schema(empty)
    assert (status.state, status.can_serve) == (SchemaState.UNKNOWN, False)
    for upgrade in (False, True):
        with pytest.raises(DatabaseUnusable, match="revision roost_9999"):
            prepare_schema(empty, upgrade=upgrade)


def test_a_sync_tells_older_versions_whether_they_may_serve(empty: Database) -> None:
    migrate(empty, ROOST.ids[0])
    for _ in range(2):
        sync_schema(empty)
        with empty.engine.connect() as connection:
            meta = tables.roost_meta
            statement = sa.select(meta.c.value).where(meta.c.name == histories.COMPATIBLE_SINCE)
            assert list(connection.scalars(statement)) == [f"{ROOST.head} {ROOST_COMPATIBLE_SINCE}"]
    assert ROOST_COMPATIBLE_SINCE in ROOST.ids
    assert ROOST in HISTORIES


class OlderWriter:
    """Claims as a version before `roost_0002` makes them: the journal names the provider only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, provider: str, used: int) -> None:
        self._database.write_at_once(self._claim, provider, used)

    def _claim(self, connection: Connection, provider: str, used: int) -> None:
        providers = tables.resource_providers
        id_ = connection.scalars(
            sa.select(providers.c.id).where(providers.c.uuid == provider)
        ).one()
        allocation = {
            "resource_provider_id": id_,
            "resource_class_id": 0,
            "used": used,
            "consumer_id": new_uuid(),
        }
        connection.execute(sa.insert(tables.allocations).values(allocation))
        change = (tables.utc_now(), "usage", id_, provider)
        names = ", ".join(OLD_COLUMNS)
        statement = f"INSERT INTO roost_changes ({names}) VALUES (:a, :b, :c, :d)"
        connection.execute(sa.text(statement), dict(zip("abcd", change, strict=True)))


def make_provider(api: ApiClient) -> str:
    uuid = new_uuid()
    api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 100}}}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def used_in_candidates(api: ApiClient, provider: str) -> int:
    answer = api.get(f"/allocation_candidates?resources=VCPU:1&in_tree={provider}")
    used: int = answer.json["provider_summaries"][provider]["resources"]["VCPU"]["used"]
    return used


def claim(api: ApiClient, provider: str, used: int) -> None:
    body = {
        "allocations": {provider: {"resources": {"VCPU": used}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{new_uuid()}", body).status == 204


def test_candidates_show_claims_of_an_older_version_among_claims_of_this_one(
    api: ApiClient, database: Database
) -> None:
    older = OlderWriter(database)
    provider = make_provider(api)
    assert used_in_candidates(api, provider) == 0
    expected = 0
    # Each order of the two, with a look into the journal after each write and after two writes.
    for looks in (1, 2):
        for number, write in enumerate(
            [older.claim, claim, claim, older.claim, older.claim, claim]
        ):
            if write is claim:
                claim(api, provider, 2)
            else:
                older.claim(provider, 2)
            expected += 2
            if number % looks == 0:
                assert used_in_candidates(api, provider) == expected


def test_an_older_reader_learns_of_every_claim_of_this_version(
    api: ApiClient, database: Database
) -> None:
    provider = make_provider(api)
    statement = sa.text(f"SELECT id, {', '.join(OLD_COLUMNS)} FROM roost_changes ORDER BY id")
    for _ in range(3):
        before = database.read(lambda connection: connection.execute(statement).all())
        claim(api, provider, 1)
        after = database.read(lambda connection: connection.execute(statement).all())
        (change,) = after[len(before) :]
        assert (change.kind, change.provider_uuid) == ("usage", provider)


def test_owners_of_a_provider_that_an_older_version_deleted_are_forgotten(
    api: ApiClient, database: Database
) -> None:
    """The older version does not know the table of owners, and SQLite gives the id out again."""
    old, new = new_uuid(), new_uuid()
    declared = {"providers": [{"name": "h", "uuid": old, "inventories": {"VCPU": 1}}]}
    assert api.put("/roost/trees/h?owner=me", declared).status == 200
    providers, owned = tables.resource_providers, tables.roost_ownership

    def delete_and_create(connection: Connection) -> None:
        id_ = connection.scalars(sa.select(owned.c.provider_id)).one()
        connection.execute(sa.update(providers).values(uuid=new, name="g"))
        connection.execute(sa.delete(tables.resource_provider_traits))
        change = (tables.utc_now(), "provider", id_, new)
        statement = f"INSERT INTO roost_changes ({', '.join(OLD_COLUMNS)}) VALUES (:a, :b, :c, :d)"
        connection.execute(sa.text(statement), dict(zip("abcd", change, strict=True)))

    database.write_at_once(delete_and_create)
    (provider,) = api.get("/roost/trees/g").json["providers"]
    assert (provider["uuid"], provider["owners"]) == (new, {})
    assert api.put("/roost/trees/g?owner=me", {"providers": []}).status == 200
    assert list(api.get("/roost/trees/g").json["providers"][0]["inventories"]) == ["VCPU"]
