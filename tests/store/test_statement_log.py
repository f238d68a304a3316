"""With `connection_debug`, the log has every statement that the database gets, without values."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from roost.api.application import Application
from roost.replica.housekeeping import Housekeeping
from roost.replica.replica import Replica
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for

ENGINE = "sqlalchemy.engine.Engine"
PROVIDER = "3f333df6-90a4-4fda-8dd3-9485d27cee36"
CONSUMER = "886313e1-3b8a-5372-9b90-0c9aee199e5d"
SECRET = "the name of a project"

# What SQLAlchemy asks at the first connection of an engine, about the database itself.
OF_SQLALCHEMY = {"PRAGMA read_uncommitted"}

# A statement of each way to the database, by a part of its text.
EXPECTED = (
    "INSERT INTO resource_providers",
    "INSERT INTO allocations",
    "INSERT INTO roost_changes",
    "UPDATE resource_providers",
    "DELETE FROM allocations",
    "FROM roost_changes",
    "COMMIT",
)


@pytest.fixture
def debugged(database: Database) -> Iterator[Database]:
    """The database with `connection_debug = 50`."""
    handlers = list(logging.getLogger(ENGINE).handlers)
    debugged = Database(replace(database.options, echo=True))
    yield debugged
    debugged.close()
    logging.getLogger(ENGINE).handlers[:] = handlers


def work(database: Database, directory: Path) -> None:
    """Requests of every kind: reads, lists, candidates, claims, deletions, a reshape."""
    api = application_client(Application(settings_for(database, directory), database))
    make_and_claim(api)
    assert api.get("/allocation_candidates?resources=VCPU:1").status == 200
    assert api.get("/resource_providers?resources=VCPU:1").status == 200
    assert api.get(f"/resource_providers/{PROVIDER}/usages").status == 200
    assert api.get(f"/allocations/{CONSUMER}").status == 200
    assert api.delete(f"/allocations/{CONSUMER}").status == 204
    assert api.get("/allocation_candidates?resources=VCPU:1").status == 200
    for chore in Housekeeping(database, Replica(database)).chores:
        chore.run()
        assert not chore.failures


def make_and_claim(api: ApiClient) -> None:
    assert api.post("/resource_providers", {"name": "host", "uuid": PROVIDER}).status == 200
    inventories = {"VCPU": {"total": 8}}
    body: dict[str, Any] = {"resource_provider_generation": 0, "inventories": inventories}
    assert api.put(f"/resource_providers/{PROVIDER}/inventories", body).status == 200
    claim = {
        "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
        "project_id": SECRET,
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", claim).status == 204
    moved = {
        "inventories": {PROVIDER: {"resource_provider_generation": 2, "inventories": inventories}},
        "allocations": {CONSUMER: claim | {"consumer_generation": 1}},
    }
    assert api.post("/reshaper", moved).status == 204


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == ENGINE]


def test_the_log_has_the_statements_of_every_way_to_the_database(
    debugged: Database, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.INFO):
        work(debugged, tmp_path)
    lines = logged(caplog)
    missing = [text for text in EXPECTED if not any(text in line for line in lines)]
    assert not missing
    assert not any(SECRET in line or CONSUMER in line for line in lines)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_log_has_all_that_sqlite_executes(
    debugged: Database, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    executed: list[str] = []
    for engine in (debugged.engine, debugged.reader, debugged.follower):

        @event.listens_for(engine, "connect", insert=True)
        def trace(dbapi_connection: Any, _record: Any) -> None:
            dbapi_connection.set_trace_callback(executed.append)

    with caplog.at_level(logging.INFO):
        work(debugged, tmp_path)
    assert len(executed) > 50
    texts = {re.escape(line).replace(r"\?", ".+") for line in logged(caplog)}
    known = [re.compile(text, re.DOTALL) for text in texts]
    missing = {
        text for text in executed if not any(pattern.fullmatch(text.strip()) for pattern in known)
    }
    assert missing <= OF_SQLALCHEMY


def test_nothing_is_logged_without_the_option(
    database: Database, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.INFO):
        work(database, tmp_path)
    assert not logged(caplog)
