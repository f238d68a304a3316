"""The fake server: faults on demand, what a test prepares and sees, and a loopback port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from roost.client import Claims, Reporter
from roost.client.errors import (
    PlacementAPIConnectFailure,
    ResourceProviderRetrievalFailed,
    WriteLost,
)
from roost.client.transport import PlacementRequest
from roost.client.versions import newest_common
from roost.testing import FakePlacement, Faults, drawing, json_answer, on_loopback
from support.roost_command import roost
from support.stubs.scripted_drivers import EditingDriver
from support.waiting import SECONDS_MAX

CONSUMER = str(uuid4())


@pytest.fixture
def server() -> FakePlacement:
    server = FakePlacement()
    server.add_provider("host", inventories={"VCPU": {"total": 4}}, traits=("CUSTOM_GOLD",))
    server.add_provider("host_disk", "host", inventories={"DISK_GB": {"total": 100}})
    return server


def gild(server: FakePlacement) -> None:
    driver = EditingDriver(lambda tree: tree.add_traits("host", "CUSTOM_SILVER"))
    Reporter(server).report(driver, "host")


def gilded(server: FakePlacement) -> bool:
    return "CUSTOM_SILVER" in server.tree("host").data("host").traits


def test_a_prepared_tree_is_read_back(server: FakePlacement) -> None:
    assert drawing(server.tree("host")) == (
        "host  VCPU 4\n: CUSTOM_GOLD\n    host_disk  DISK_GB 100\n"
    )
    assert server.requests == [], "what the test itself asks is not recorded"
    with pytest.raises(LookupError, match="no provider 'hots'; it has host, host_disk"):
        server.uuid("hots")


FAULTS: dict[str, Callable[[Faults], None]] = {
    "conflict": lambda faults: faults.conflict("PUT */traits"),
    "lost answer": lambda faults: faults.lose_answer("PUT */traits"),
    "unavailable": lambda faults: faults.unavailable("GET *"),
    "busy": lambda faults: faults.busy("PUT */traits"),
    "down": lambda faults: faults.unreachable(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_reporter_survives_each_fault(server: FakePlacement, name: str) -> None:
    FAULTS[name](server.faults)
    gild(server)
    assert gilded(server)
    assert server.faults.left == []


def test_a_fault_that_stays_is_an_error(server: FakePlacement) -> None:
    server.faults.unavailable("GET *", times=10)
    with pytest.raises(ResourceProviderRetrievalFailed):
        gild(server)
    down = FakePlacement()
    down.faults.unreachable(times=10)
    with pytest.raises(PlacementAPIConnectFailure):
        gild(down)


def test_a_fault_can_wait_for_a_later_request(server: FakePlacement) -> None:
    server.faults.lose_answer("PUT /traits/*", after=1)
    gild(server)
    assert server.faults.left == ["PUT /traits/*"], "there was one such request only"


def test_another_writer_can_act_before_a_request(server: FakePlacement) -> None:
    def other_writer() -> None:
        path = f"/resource_providers/{server.uuid('host')}/traits"
        now = server.ask("GET", path).json
        server.ask("PUT", path, {**now, "traits": [*now["traits"], "HW_CPU_X86_AVX"]})

    server.faults.before("PUT */traits", other_writer)
    gild(server)
    assert server.tree("host").data("host").traits == {
        "CUSTOM_GOLD",
        "CUSTOM_SILVER",
        "HW_CPU_X86_AVX",
    }


def test_claims_hold_amounts_and_are_refused_beyond_the_capacity(server: FakePlacement) -> None:
    claims = Claims(server, sleep=lambda seconds: None)
    request = {"allocations": {server.uuid("host"): {"resources": {"VCPU": 3}}}}
    assert claims.claim_resources(CONSUMER, request, "project", "user", version="1.36")
    assert server.holds(CONSUMER) == {"host": {"VCPU": 3}}
    assert not claims.claim_resources(str(uuid4()), request, "project", "user", version="1.36")
    server.faults.lose_answer("PUT /allocations/*", times=4)
    server.faults.unavailable("GET /allocations/*", times=50, after=1)
    with pytest.raises(WriteLost):
        claims.claim_resources(str(uuid4()), request, "project", "user", version="1.36")


def test_candidates_are_those_of_the_prepared_providers(server: FakePlacement) -> None:
    claims = Claims(server)
    found, *_ = claims.allocation_candidates({"resources": "VCPU:2"})
    assert [set(each["allocations"]) for each in found or ()] == [{server.uuid("host")}]
    body: dict[str, object] = {"allocation_requests": [], "provider_summaries": {}}
    server.faults.answer("GET /allocation_candidates*", json_answer(body))
    assert claims.allocation_candidates({"resources": "VCPU:2"})[:2] == ([], {})


def test_an_older_server_can_be_faked() -> None:
    server = FakePlacement(newest="1.30")
    assert str(newest_common(server)) == "1.30"
    answers = {
        version: server.send(PlacementRequest("GET", "/traits", version=version))
        for version in ("1.30", "1.31", "1.99", "latest")
    }
    assert {version: answer.status for version, answer in answers.items()} == {
        "1.30": 200,
        "1.31": 406,
        "1.99": 406,
        "latest": 200,
    }
    assert answers["latest"].headers["openstack-api-version"] == "placement 1.30"


def test_two_servers_share_nothing(server: FakePlacement) -> None:
    other = FakePlacement()
    assert other.uuids() == {}
    question = "GET", "/roost/server"
    assert server.ask(*question).json["identity"] != other.ask(*question).json["identity"]


def test_a_closed_server_keeps_what_it_has(server: FakePlacement) -> None:
    server.close()
    assert set(server.uuids()) == {"host", "host_disk"}


def test_a_server_goes_with_its_files_and_threads(tmp_path: Path) -> None:
    program = """
import os, sys, threading
from roost.testing import FakePlacement
kept, gone = FakePlacement(), FakePlacement()
for server in (kept, gone):
    server.add_provider("host")
(directory,) = os.scandir(sys.argv[1])
servers = lambda: sum(entry.is_dir() for entry in os.scandir(directory))
print(servers())
del gone, server
print(servers(), threading.active_count())
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("2\n1 1\n", "")
    assert list(tmp_path.iterdir()) == []


def test_the_agent_reports_to_a_fake_on_a_loopback_port(
    server: FakePlacement, tmp_path: Path
) -> None:
    server.faults.lose_answer("PUT */inventories")
    with on_loopback(server) as url:
        outcome = roost(
            *("agent", "--driver", "linux", "--option", "root=tests/client/captures/laptop.txt"),
            *("--name", "laptop", "--once", "--url", url, "--records", str(tmp_path)),
        )
    assert outcome.status == 0, outcome.err
    assert server.faults.left == []
    assert "    laptop_numa0  " in drawing(server.tree("laptop"))
