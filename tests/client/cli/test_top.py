"""The command `roost top`."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.cli.cloud.top import Scrape, quantile, summarise
from support.pty_command import PtyCommand
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.stubs.placement_stub import PlacementStub, Received, Reply
from support.waiting import wait_until

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


def once(busy: LiveServer, shown: str, *options: str) -> str:
    """The output of one interval, from a worker that knows the provider.

    A worker without requests looks into the journal every few seconds, and any worker may answer.
    """

    def look() -> str:
        out = roost("top", "--once", *options, "--url", busy.url).out
        return out if re.search(shown, out) else ""

    return wait_until(look)


def test_one_interval_as_json(busy: LiveServer) -> None:
    found = json.loads(once(busy, r'"capacity": ?1234', "--json", "--interval", "0.5"))
    assert found["workers"] == 2
    assert found["requests"] > 1
    (row,) = [row for row in found["routes"] if row["route"] == "/resource_providers/{uuid}"]
    assert row["requests"] > 1
    assert 0 < row["p50"] <= row["p95"] <= row["p99"]
    assert {"name": "VCPU", "capacity": 1234, "used": 0, "reserved": 0} in found["classes"]
    assert found["journal_lag"] < 60


def test_one_interval_as_a_picture(busy: LiveServer) -> None:
    text = once(busy, r"VCPU .* 1,234", "--interval", "0.2")
    assert re.search(r"GET /resource_providers/\{uuid\} +\d", text)
    assert re.search(r"VCPU .* 0 +1,234 +0", text)
    assert "2 workers" in text


def test_the_picture_is_redrawn_until_q_is_pressed(busy: LiveServer) -> None:
    with PtyCommand("top", "--interval", "0.2", "--url", busy.url) as terminal:
        terminal.read_until(lambda shown: shown.count(b"requests/s") >= 3)
        terminal.press("q")
        assert terminal.ended() == 0


METRICS = Reply(body=b'roost_build_info{version="9"} 1\nroost_requests_total 7\n')
BUSY = Reply(503, body={"errors": [{"detail": "busy"}]}, headers={"Retry-After": "3600"})


def test_a_server_that_restarts_is_told_and_asked_again() -> None:
    asked = 0

    def answer(_: Received) -> Reply:
        nonlocal asked
        asked += 1
        if asked == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return BUSY if asked == 3 else METRICS

    with PlacementStub(otherwise=answer) as stub:
        outcome = roost("top", "--json", "--interval", "0.1", "--url", stub.url)
    assert outcome.status == 130
    assert [json.loads(line)["version"] for line in outcome.lines] == ["9"] * 2
    first, second, last = outcome.err.splitlines()
    assert first.startswith("roost: warning: The server has no metrics now (HTTP 503): busy")
    assert first.endswith("The command goes on.")
    assert (second, last) == ("roost: The server answers again.", "roost: Interrupted.")


def test_the_picture_stays_while_no_server_listens() -> None:
    stub = PlacementStub(otherwise=lambda _: METRICS)
    with PtyCommand("top", "--interval", "0.1", "--url", stub.url) as terminal:
        with stub:
            terminal.read_until(lambda shown: shown.count(b"requests/s") >= 2)
        # Now connections are refused.
        terminal.read_until(lambda shown: b"The command goes on." in shown)
        terminal.press("q")
        assert terminal.ended() == 0


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
