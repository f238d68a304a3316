"""`/healthz` and `/readyz`: what load balancers and supervisors of processes ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, text, update

from roost.api.application import Application
from roost.api.observation import readiness
from roost.configuration.limit_log import LINES_MAX, LimitLog
from roost.store.connections.errors import DatabaseAway
from roost.store.database import Database
from roost.store.migrations import histories
from roost.store.migrations.histories import PLACEMENT, ROOST
from roost.store.tables import roost_meta
from support.api_client import ApiClient, application_client, settings_for


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks are made for each request."""
    monkeypatch.setattr(readiness, "_KEPT_SECONDS", -1.0)


def test_a_process_is_alive_without_a_token(api: ApiClient) -> None:
    answer = replace(api, token=None, version=None).get("/healthz")
    assert (answer.status, answer.json["status"]) == (200, "alive")


def test_a_process_is_ready_when_database_schema_and_forest_are(api: ApiClient) -> None:
    answer = replace(api, token=None, version=None).get("/readyz")
    assert (answer.status, answer.json["status"]) == (200, "ready")
    checks = answer.json["checks"]
    assert list(checks) == ["serving", "database", "schema", "forest"]
    assert all(check["ok"] for check in checks.values())
    assert f"{PLACEMENT.head} and {ROOST.head}" in checks["schema"]["text"]


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [
        ("_schema", "The database does not answer; the log says why."),
        ("_forest", "The forest cannot be brought up to date; the log says why."),
    ],
)
def test_the_answer_does_not_tell_where_the_database_is(
    *,
    api: ApiClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failing: str,
    sentence: str,
) -> None:
    said = 'connection to server at "192.0.2.7", port 5432 failed for user "placement"'

    def fail(_self: readiness.ReadinessCheck) -> list[readiness.Check]:
        raise DatabaseAway(said)

    monkeypatch.setattr(readiness, "LIMIT_LOG", LimitLog())
    monkeypatch.setattr(readiness.ReadinessCheck, failing, fail)
    answers = [api.get("/readyz") for _ in range(20)]
    assert {answer.status for answer in answers} == {503}
    assert list(answers[0].json["checks"].values())[-1]["text"] == sentence
    assert b"192.0.2.7" not in answers[0].body
    assert 0 < sum(said in record.getMessage() for record in caplog.records) <= LINES_MAX


def set_revision(connection: Connection, revision: str) -> str:
    statement = text("SELECT version_num FROM roost_schema_version")
    before: str = connection.execute(statement).scalar_one()
    statement = text("UPDATE roost_schema_version SET version_num = :new")
    connection.execute(statement, {"new": revision})
    return before


def test_an_older_schema_than_this_version_needs_is_named(
    api: ApiClient, database: Database
) -> None:
    before = database.write_at_once(set_revision, "roost_0001")
    try:
        answer = api.get("/readyz")
        alive = api.get("/healthz")
    finally:
        database.write_at_once(set_revision, before)
    assert (answer.status, answer.json["status"]) == (503, "not ready")
    assert "roost_0001" in answer.json["checks"]["schema"]["text"]
    assert "forest" not in answer.json["checks"]
    assert alive.status == 200
    assert api.get("/readyz").status == 200


def allow(connection: Connection, revision: str) -> None:
    """Record that all versions since the newest one may serve on the tables of a revision."""
    row = roost_meta.c.name == histories.COMPATIBLE_SINCE
    connection.execute(update(roost_meta).where(row).values(value=f"{revision} {ROOST.head}"))


def test_a_server_stays_ready_while_a_newer_version_migrates(
    api: ApiClient, database: Database
) -> None:
    before = database.write_at_once(set_revision, "roost_9999")
    database.write_at_once(allow, "roost_9999")
    try:
        answer = api.get("/readyz")
    finally:
        database.write_at_once(set_revision, before)
        database.write_at_once(histories.record_compatibility)
    assert (answer.status, answer.json["status"]) == (200, "ready")


def test_a_server_that_stops_is_not_ready(
    api: ApiClient, database: Database, tmp_path: Path
) -> None:
    stopping: list[bool] = []
    application = Application(settings_for(database, tmp_path), database)

    def serve(environ: dict[str, object], start_response: object) -> object:
        environ["roost.is_stopping"] = lambda: bool(stopping)
        return application(environ, start_response)  # type: ignore[arg-type]

    client = application_client(serve)  # type: ignore[arg-type]
    assert client.get("/readyz").status == 200
    stopping.append(True)
    answer = client.get("/readyz")
    assert answer.status == 503
    assert answer.json["checks"] == {
        "serving": {
            "ok": False,
            "text": "The server stops. Send requests to another one.",
            "seconds": 0.0,
        }
    }


def test_clients_of_one_second_share_the_checks(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_KEPT_SECONDS", 60.0)
    assert api.get("/readyz").status == 200
    before = database.write_at_once(set_revision, "roost_9999")
    try:
        assert api.get("/readyz").status == 200
    finally:
        database.write_at_once(set_revision, before)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_paths_are_below_the_mount_point(database: Database, tmp_path: Path, path: str) -> None:
    application = Application(settings_for(database, tmp_path), database)
    client = application_client(application, "/placement")
    assert replace(client, token=None).get(path).status == 200
