"""Warnings about slow requests, with the account of a slow search."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import pytest

from roost.api.application import Application
from roost.configuration.settings import WatchSettings
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
QUERY = "/allocation_candidates?resources=VCPU:1,DISK_GB:5"


def client_with(database: Database, directory: Path, seconds: float) -> ApiClient:
    watch = WatchSettings(slow_request_seconds=seconds)
    settings = replace(settings_for(database, directory), watch=watch)
    return application_client(Application(settings, database))


def make_host(api: ApiClient) -> None:
    api.post("/resource_providers", {"name": "host", "uuid": HOST})
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert api.put(f"/resource_providers/{HOST}/inventories", body).status == 200


def warnings(caplog: pytest.LogCaptureFixture, count: int) -> list[str]:
    """The first warnings; the account is written a little later than the answer."""
    deadline = time.monotonic() + 20
    while True:
        found = [
            record.getMessage()
            for record in caplog.records
            if record.name == "roost.api.slow_requests"
        ]
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


def test_a_slow_search_gets_a_warning_with_its_stages_and_its_account(
    database: Database, tmp_path: Path, api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    make_host(api)
    client = client_with(database, tmp_path, 1e-9)
    with caplog.at_level(logging.WARNING):
        answer = client.get(QUERY)
        request, account = warnings(caplog, 2)
    assert 'Slow request: "GET /allocation_candidates?resources=VCPU:1,DISK_GB:5" took' in request
    assert "search 0." in request
    assert "freshness 0." in request
    assert account.startswith("Slow search, of 1 providers. ")
    assert "1 provider has inventory of VCPU or DISK_GB, and 0 trees have one for each" in account
    assert "0 trees have a provider for all groups together." in account
    records = [record for record in caplog.records if record.name == "roost.api.slow_requests"]
    ids = {record.__dict__["context"].request_id for record in records}
    assert ids == {answer.headers["x-openstack-request-id"]}


def test_other_slow_requests_have_no_account(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_with(database, tmp_path, 1e-9)
    client.get("/traits")
    (line,) = warnings(caplog, 1)
    assert '"GET /traits"' in line
    assert "database 0." in line


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_a_request_below_the_bound_gets_no_warning(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    client_with(database, tmp_path, seconds).get(QUERY)
    assert warnings(caplog, 0) == []


def test_a_slow_refusal_has_its_path_without_the_query_and_the_time_of_authentication(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = replace(client_with(database, tmp_path, 1e-9), token=None)
    with caplog.at_level(logging.WARNING):
        assert client.get("/traits/%0aA%20B?token=geheim").status == 401
        (said,) = warnings(caplog, 1)
    assert 'Slow request: "GET /traits/%0AA%20B" took ' in said
    assert "got 401; seconds by stage: authentication 0." in said
    assert "geheim" not in said
