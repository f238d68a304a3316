"""Writes that the database refuses, most often because its disk is full."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event

from roost.store.connections.errors import DatabaseAway
from roost.store.database import Database
from support.api_client import ApiClient

# The errors of a full disk, raised where a provider is inserted.
TRIGGERS = {
    "postgresql": (
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END$$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON resource_providers EXECUTE FUNCTION full_disk()",
    ),
    "mariadb": (
        "CREATE TRIGGER full_disk BEFORE INSERT ON resource_providers FOR EACH ROW "
        "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full'",
    ),
}
REMOVALS = {
    "postgresql": ("DROP FUNCTION full_disk CASCADE",),
    "mariadb": ("DROP TRIGGER full_disk",),
}


@pytest.fixture
def full_disk(database: Database, kind: str, api: ApiClient) -> Iterator[None]:
    if kind == "sqlite":
        yield from _sqlite_cannot_grow(database)
        return
    _execute(database, TRIGGERS[kind])
    yield
    _execute(database, REMOVALS[kind])


def _execute(database: Database, statements: tuple[str, ...]) -> None:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write_at_once(work)


def _sqlite_cannot_grow(database: Database) -> Iterator[None]:
    def limit(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")

    # SQLite would use free pages first.
    database.read(lambda connection: connection.exec_driver_sql("VACUUM").close())
    event.listen(database.engine, "begin", limit)
    yield
    event.remove(database.engine, "begin", limit)
    database.engine.dispose()


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_answers_503_and_logs_one_line(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    for _ in range(50):
        name = f"{uuid4()}"
        answer = api.post("/resource_providers", {"name": name, "uuid": name})
        if answer.status != 200:
            break
    assert answer.status == 503
    assert "cannot write" in answer.detail
    assert "Nothing was written" in answer.detail
    assert answer.headers["retry-after"] == "1"
    lines = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert len(lines) == 1
    assert lines[0].exc_info is None
    assert "full" in lines[0].message or "space" in lines[0].message
    assert api.get(f"/resource_providers/{name}").status == 404


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_failure_after_the_write_does_not_say_that_nothing_was_written(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise DatabaseAway("the server has stopped")

    uuid = f"{uuid4()}"
    with monkeypatch.context() as patched:
        patched.setattr("roost.api.handlers.providers.now", fail)
        answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    assert answer.status == 503
    assert "The write was carried out." in answer.detail
    assert api.get(f"/resource_providers/{uuid}").status == 200
