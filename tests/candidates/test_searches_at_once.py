"""Small requests are answered quickly while several large searches run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from roost import turns
from roost.search.candidates import effort
from roost.store.database import Database
from support.api_client import ApiClient, in_process_client, limited_client
from support.worlds.world import build_world

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

# The amounts fill the devices of the host almost exactly, so that the search is hard.
ROOMS = (24, 29, 31, 17, 38, 26, 21, 33, 28, 19, 35, 22)
AMOUNTS = (12, 17, 9, 14, 11, 16, 13, 18, 7, 15, 10, 17, 12, 9, 14, 16, 11, 13, 18, 8, 15, 12, 10)
HARD_HOST = "H(VCPU 8), " + ", ".join(f"D{n}<H(GOLD {room})" for n, room in enumerate(ROOMS))
WIDE_HOST = "W(), " + ", ".join(f"N{n}<W(VCPU 4, MEM 4, DISK 4)" for n in range(47))
LARGE_AT_ONCE = 16
# How many small requests come between while sixteen large requests are answered. Without turns, a
# small request needs as long as several large ones.
SMALL_REQUESTS = 10


def hard_question(number: int) -> str:
    groups = [f"resources_{number}_{n}=CUSTOM_GOLD:{amount}" for n, amount in enumerate(AMOUNTS)]
    return "/allocation_candidates?group_policy=none&" + "&".join(groups)


def long_question(number: int) -> str:
    return f"/allocation_candidates?resources=VCPU:1,MEMORY_MB:1,DISK_GB:1&limit={20_000 - number}"


@on_sqlite
@pytest.mark.parametrize(
    "question", [hard_question, pytest.param(long_question, marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_small_requests_do_not_wait_for_large_requests(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    question: Callable[[int], str],
) -> None:
    # A tenth of the usual effort keeps the test short.
    monkeypatch.setattr(effort, "UNITS_MAX", effort.UNITS_MAX // 10)
    api = in_process_client(database, tmp_path)
    build_world(api, f"{HARD_HOST}, {WIDE_HOST}")
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: statuses.append(api.get(question(n)).status))
        for n in range(LARGE_AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    answered = small_requests(api, threads)
    for thread in threads:
        thread.join()
    assert statuses == [200] * LARGE_AT_ONCE
    assert answered >= SMALL_REQUESTS


def small_requests(api: ApiClient, meanwhile: list[threading.Thread]) -> int:
    """How many small requests are answered while most of the threads work."""
    answered = 0
    while sum(thread.is_alive() for thread in meanwhile) > LARGE_AT_ONCE // 2:
        assert api.get("/traits?name=in:HW_CPU_X86_VMX").status == 200
        assert api.get(f"/allocation_candidates?resources=VCPU:{1 + answered % 8}&limit=1")
        answered += 1
        time.sleep(0.01)
    return answered


@on_sqlite
def test_a_search_above_the_maximum_is_refused_with_retry_after(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = in_process_client(database, tmp_path)
    build_world(api, HARD_HOST)
    # A maximum of 0 stands for a service that has its maximum of searches already.
    monkeypatch.setattr(turns, "_SEARCHES_MAX", 0)
    monkeypatch.setattr(effort, "UNITS_MAX", effort.UNITS_MAX // 10)
    refused = api.get(hard_question(0))
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"
    assert "large searches" in refused.detail
    assert api.get("/allocation_candidates?resources=VCPU:1").status == 200


@on_sqlite
def test_a_search_that_takes_too_long_is_refused_and_logged_with_its_question(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = limited_client(database, tmp_path, max_search_seconds=0)
    build_world(api, HARD_HOST)
    monkeypatch.setattr(effort, "UNITS_MAX", effort.UNITS_MAX // 10)
    refused = api.get(hard_question(0))
    assert refused.status == 503
    assert "[roost]max_search_seconds" in refused.detail
    # The same question would take as long again.
    assert "retry-after" not in refused.headers
    assert hard_question(0).partition("?")[2][:100] in caplog.text
    assert api.get("/allocation_candidates?resources=VCPU:1").status == 200
