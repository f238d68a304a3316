"""The command `roost top`."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.cli.top.summary import quantile, summarise
from roost.client.scrape import Scrape
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.stubs.placement_stub import PlacementStub

HOST = "c0ffee00-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a provider that clients ask for all the time."""
    directory = tmp_path_factory.mktemp("top")
    with LiveServer(f"sqlite:///{directory}/x.db", directory) as running:
        client = running.client()
        client.post("/resource_providers", {"name": "host", "uuid": HOST})
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1234}}}
        assert client.put(f"/resource_providers/{HOST}/inventories", body).status == 200
        # A worker without requests looks into the journal every few seconds.
        seen = 0
        while seen < 10:
            has_looked = b"roost_resource_capacity{" in running.client().get("/metrics").body
            seen = seen + 1 if has_looked else 0
            time.sleep(0.05)
        ended = threading.Event()

        def ask() -> None:
            asking = running.client()
            while not ended.wait(0.01):
                asking.get(f"/resource_providers/{HOST}")

        thread = threading.Thread(target=ask)
        thread.start()
        yield running
        ended.set()
        thread.join()


def test_one_interval_as_json(busy: LiveServer) -> None:
    found = roost("top", "--once", "--json", "--interval", "0.5", "--url", busy.url).json
    assert found["workers"] == 2
    assert found["requests"] > 1
    (row,) = [row for row in found["routes"] if row["route"] == "/resource_providers/{uuid}"]
    assert row["requests"] > 1
    assert 0 < row["p50"] <= row["p95"] <= row["p99"]
    assert {"name": "VCPU", "capacity": 1234, "used": 0, "reserved": 0} in found["classes"]
    assert found["journal_lag"] < 60


def test_one_interval_as_a_picture(busy: LiveServer) -> None:
    text = roost("top", "--once", "--interval", "0.2", "--url", busy.url).out
    assert re.search(r"GET /resource_providers/\{uuid\} +\d", text)
    assert re.search(r"VCPU .* 0 +1,234 +0", text)
    assert "2 workers" in text


def test_the_picture_is_redrawn_until_q_is_pressed(busy: LiveServer) -> None:
    leader, follower = pty.openpty()
    program = subprocess.Popen(
        [
            *(sys.executable, "-c", "from roost.cli.main import main; main()"),
            *("top", "--interval", "0.2", "--url", busy.url),
        ],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + 60
    while shown.count(b"requests/s") < 3 and time.monotonic() < deadline:
        shown += os.read(leader, 65536)
    os.write(leader, b"q")
    while program.poll() is None and time.monotonic() < deadline:
        # A full terminal would keep the program waiting.
        try:
            os.read(leader, 65536)
        except OSError:
            break
    assert program.wait(30) == 0
    os.close(leader)
    assert shown.count(b"requests/s") >= 3


def test_a_server_that_is_away_is_an_error_with_the_next_command() -> None:
    outcome = roost("top", "--once", "--url", "http://127.0.0.1:9")
    assert outcome.status == 1
    assert len(outcome.err.strip().splitlines()) == 2
    assert "127.0.0.1:9" in outcome.err


def test_a_server_that_is_not_roost_is_an_error_of_two_lines() -> None:
    with PlacementStub() as stub:
        outcome = roost("top", "--once", "--url", stub.url)
    assert outcome.status == 1
    assert len(outcome.err.strip().splitlines()) == 2
    assert "without metrics of Roost" in outcome.err


def scrape(moment: float, count: int) -> Scrape:
    text = (
        f'roost_requests_total{{route="/a",method="GET",version="1.1",status="200"}} {count}\n'
        f'roost_requests_total{{route="/a",method="GET",version="1.1",status="503"}} {count // 2}\n'
        f'roost_conflicts_total{{cause="capacity"}} {count}\n'
    )
    return Scrape.of(text, moment)


def test_rates_are_differences_by_time() -> None:
    found = summarise(scrape(10.0, 100), scrape(12.0, 140), 0.0)
    (row,) = found.routes
    assert (row.requests, row.errors) == (30.0, 10.0)
    assert found.conflicts == {"capacity": 20.0}


def test_counters_of_a_restarted_server_begin_at_zero() -> None:
    found = summarise(scrape(10.0, 100), scrape(12.0, 40), 0.0)
    assert found.requests == 30.0


def test_labels_of_a_scrape_may_have_any_character(tmp_path: Path) -> None:
    found = Scrape.of('a{x="q\\"\\\\\\n,}",y="{"} 1.5 1700000000\n# b\nnonsense\nc NaNs\n', 0.0)
    assert found.series == {"a": {(("x", 'q"\\\n,}'), ("y", "{")): 1.5}}


def test_a_quantile_above_the_last_bound_is_that_bound() -> None:
    assert quantile(0.99, [(0.1, 1), (float("inf"), 10)]) == 0.1
    assert quantile(0.5, []) is None
