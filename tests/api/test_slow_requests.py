"""Warnings about slow requests, with the account of a slow search."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from roost import turns
from roost.api.application import Application
from roost.api.candidates import handler
from roost.api.observation import slow_requests
from roost.configuration.settings import WatchSettings
from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import FoundCandidates
from roost.search.forest.forest import Forest
from roost.service.questions.candidates import list_candidates
from roost.store.database import Database
from roost.turns import TURNS, SearchTooLong, Turn, Turns
from support.api_client import Answer, ApiClient, application_client, settings_for
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
QUERY = "/allocation_candidates?resources=VCPU:1,DISK_GB:5"
# The bound of slow requests, in seconds.
BOUND = 0.2


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

    def found() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.name == "roost.api.observation.slow_requests"
        ]

    wait_until(lambda: len(found()) >= count)
    return found()


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
    records = [r for r in caplog.records if r.name == "roost.api.observation.slow_requests"]
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


def work_for(seconds: float) -> None:
    """Use so much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Searches:
    """Searches for candidates of this process: those that are slow use much CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.are_slow = False
        self.begun = threading.Event()
        monkeypatch.setattr(handler, "list_candidates", self._list)
        # Every search waits in line at its first pause.
        monkeypatch.setattr(turns, "_FREE_SECONDS", 0)

    def _list(
        self,
        forest: Forest,
        query: CandidateQuery,
        order: CandidateOrder,
        pause: Callable[[], None],
        kept_work: KeptWork | None,
    ) -> list[FoundCandidates]:
        self.begun.set()
        pause()
        if self.are_slow:
            work_for(2 * BOUND)
        return list_candidates(forest, query, order, pause, kept_work)


def get_after_waiting(client: ApiClient, path: str, searches: Searches) -> Answer:
    """The answer to a request that waits in line for longer than the bound."""
    for _ in range(turns._WORKING_MAX):
        TURNS.working.enter()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.get, path)
        assert searches.begun.wait(SECONDS_MAX)
        time.sleep(2 * BOUND)
        assert not asked.done()
        for _ in range(turns._WORKING_MAX):
            TURNS.working.leave()
        return asked.result(SECONDS_MAX)


def test_only_searching_gets_an_account_and_not_waiting(
    database: Database,
    tmp_path: Path,
    api: ApiClient,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_host(api)
    client = client_with(database, tmp_path, BOUND)
    searches = Searches(monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert get_after_waiting(client, QUERY, searches).status == 200
        searches.are_slow = True
        # A single thread makes the accounts, so that of the first request would come first.
        assert client.get(f"{QUERY}&limit=7").status == 200
        waited, searched, account = warnings(caplog, 3)
    assert f'"GET {QUERY}"' in waited
    assert f'"GET {QUERY}&limit=7"' in searched
    assert account.startswith("Slow search, of 1 providers. ")
    assert "provider has inventory of VCPU" in account


def test_an_account_keeps_the_limits_of_a_search(
    database: Database,
    tmp_path: Path,
    api: ApiClient,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_host(api)
    watch = WatchSettings(slow_request_seconds=1e-9)
    settings = replace(settings_for(database, tmp_path), watch=watch)
    limits = replace(settings.limits, max_search_seconds=7, search_wait_seconds=8)
    client = application_client(Application(replace(settings, limits=limits), database))
    asked: list[tuple[float, ...]] = []

    def describe(_forest: Forest, _query: CandidateQuery, _pause: Callable[[], None]) -> list[str]:
        raise SearchTooLong("more than 7 seconds of work")

    def turn(work_seconds: float = inf, wait_seconds: float = inf) -> AbstractContextManager[Turn]:
        asked.append((work_seconds, wait_seconds))
        return Turns().turn(work_seconds, wait_seconds)

    monkeypatch.setattr(slow_requests, "describe_account", describe)
    monkeypatch.setattr(TURNS, "turn", turn)
    with caplog.at_level(logging.WARNING):
        client.get(QUERY)
        _, account = warnings(caplog, 2)
    assert set(asked) == {(7, 8)}
    assert account == (
        "Slow search, of 1 providers. Its account was given up: more than 7 seconds of work."
    )
