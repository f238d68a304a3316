"""`/metrics` of several workers: any worker shows the counts of all, also of dead ones."""

from __future__ import annotations

import http.client
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.servers.live_server import LiveServer
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.slow

WORKERS = 2
TRAITS = "/traits"
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("metrics")
    options = "[roost]\ndrain_seconds = 3600\n"
    url = f"sqlite:///{directory}/x.db"
    with LiveServer(url, directory, WORKERS, options) as running:
        yield running


def scrape(server: LiveServer) -> dict[str, float]:
    """The sums of all samples of each name; a new connection may reach any worker.

    A counter that never counted has no sample, so its sum is zero.
    """
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("route", TRAITS) == TRAITS:
                sums[sample.name] += sample.value
    return sums


def ask(server: LiveServer, count: int) -> None:
    """Requests over connections of their own, which the kernel spreads over the workers."""
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
        connection.request("GET", TRAITS, headers=HEADERS)
        connection.getresponse().read()
        connection.close()


def test_every_worker_shows_the_counts_of_all(server: LiveServer) -> None:
    before = scrape(server)["roost_requests_total"]
    ask(server, 40)
    # Each worker may show a scrape of a moment ago.
    wait_until(lambda: {scrape(server)["roost_requests_total"] for _ in range(20)} == {before + 40})
    for _ in range(6):
        found = scrape(server)
        assert found["roost_requests_total"] == before + 40
        assert found["roost_request_duration_seconds_count"] == before + 40
        assert found["roost_workers"] == WORKERS
    wait_until(lambda: scrape(server)["roost_server_threads"] == WORKERS * 128)
    found = scrape(server)
    assert found["roost_worker_resident_memory_bytes"] > WORKERS * 10e6
    assert found["roost_server_connections_accepted_total"] >= before + 40


def test_a_worker_that_is_killed_loses_no_count(server: LiveServer) -> None:
    before = scrape(server)["roost_requests_total"]
    ask(server, 10)
    wait_until(lambda: scrape(server)["roost_requests_total"] == before + 10)
    before += 10
    victim = server.worker_ids()[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in server.worker_ids() and len(server.worker_ids()) == WORKERS)
    wait_until(lambda: scrape(server)["roost_workers"] == WORKERS)
    ask(server, 10)
    wait_until(lambda: scrape(server)["roost_requests_total"] == before + 10)
    # The gauges of the dead worker are gone, and those of the living are a second old at most.
    wait_until(lambda: scrape(server)["roost_requests_in_flight"] == 1)


def test_a_server_that_drains_answers_and_is_not_ready(server: LiveServer) -> None:
    def status(path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
        connection.request("GET", path, headers={"x-auth-token": "admin"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    assert status("/readyz") == 200
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGTERM)
    wait_until(lambda: status("/readyz") == 503)
    assert status(TRAITS) in (200, 404)
    server.kill()
    server.start()
    # The counts of a new server begin at zero.
    assert scrape(server)["roost_requests_total"] == 0


def test_no_file_is_left_behind(server: LiveServer) -> None:
    ours = [path for path in Path("/dev/shm").glob("roost-metrics-*")]
    ids = {str(id_) for id_ in (*server.worker_ids(), getattr(server.process, "pid", 0))}
    assert not [path for path in ours if path.name.split("-")[3] in ids]
