"""Two servers on one database behind haproxy, with the configuration file that operators get."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from databases import Databases
from ports import reserved_port
from roost.model.identifiers import new_uuid
from support.api_client import ApiClient, http_client
from support.requirements import note_missing, run
from support.servers.haproxy import (
    HEALTH_PATH,
    HOW_TO_INSTALL,
    SERVER_HEADER,
    SHIPPED,
    Haproxy,
    find_haproxy,
)
from support.servers.live_server import LiveServer
from support.servers.process_ends import wait_until_gone
from support.short_paths import short_directory
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
# SQLite has one machine, and no use for a second server.
KIND = "postgresql"


@pytest.fixture(scope="module")
def program() -> str:
    found = find_haproxy()
    if found is None:
        note_missing("haproxy", HOW_TO_INSTALL)
        pytest.skip(HOW_TO_INSTALL)
    return found


@dataclass
class Pair:
    """Two servers and the proxy before them."""

    servers: dict[str, LiveServer]
    proxy: Haproxy
    connections: ExitStack

    def client(self) -> ApiClient:
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=SECONDS_MAX)
        self.connections.callback(connection.close)
        return http_client(connection)


@pytest.fixture(scope="module")
def pair(
    program: str, _makers: dict[str, Databases], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    if KIND not in _makers:
        pytest.skip(f"no {KIND} here: {run.missing[KIND]}")
    run.databases.add(KIND)
    with ExitStack() as stack:
        made = _makers[KIND].create()
        stack.callback(_makers[KIND].drop, made)
        servers: dict[str, LiveServer] = {}
        for name in ("one", "two"):
            server = LiveServer(
                made.url,
                tmp_path_factory.mktemp(name),
                workers=1,
                configuration="[oslo_middleware]\nenable_proxy_headers_parsing = true\n",
            )
            servers[name] = stack.enter_context(server)
        proxy = Haproxy(
            stack.enter_context(reserved_port()), stack.enter_context(short_directory())
        )
        stack.callback(proxy.stop)
        health = servers["one"].client().get(HEALTH_PATH)
        ports = {name: server.port for name, server in servers.items()}
        proxy.start(ports, HEALTH_PATH if health.status == 200 else "/")
        yield Pair(servers, proxy, stack.enter_context(ExitStack()))


def test_the_shipped_configuration_is_valid(program: str) -> None:
    done = subprocess.run(
        [program, "-c", "-f", str(SHIPPED)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr


def test_the_shipped_configuration_repeats_only_requests_that_no_server_saw() -> None:
    lines = [line.strip() for line in SHIPPED.read_text().splitlines()]
    assert [line for line in lines if line.startswith("retry-on")] == ["retry-on conn-failure"]
    assert f"http-check send meth GET uri {HEALTH_PATH}" in lines


def write(api: ApiClient) -> str:
    uuid = new_uuid()
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    return uuid


def test_a_client_reads_its_write_from_another_server(pair: Pair) -> None:
    api = pair.client()
    crossed = 0
    for _ in range(20):
        uuid = new_uuid()
        written = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
        read = api.get(f"/resource_providers/{uuid}")
        assert (written.status, read.status) == (200, 200)
        crossed += written.headers[SERVER_HEADER] != read.headers[SERVER_HEADER]
    assert crossed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_requests_after_the_end_of_a_server_succeed(pair: Pair, number: signal.Signals) -> None:
    api = pair.client()
    written = [write(api) for _ in range(4)]
    process = pair.servers["one"].process
    assert process is not None
    workers = pair.servers["one"].worker_ids()
    os.killpg(process.pid, number)
    process.wait()
    wait_until_gone(workers)
    # haproxy may not have noticed yet.
    written += [write(pair.client()) for _ in range(10)]
    pair.proxy.wait_for("one", up=False)
    pair.servers["one"].start()
    pair.proxy.wait_for("one", up=True)
    written += [write(pair.client()) for _ in range(4)]
    for server in pair.servers.values():
        listed = server.client().get("/resource_providers").json["resource_providers"]
        assert set(written) <= {provider["uuid"] for provider in listed}


def test_a_client_cannot_choose_headers_that_the_proxy_sets(pair: Pair) -> None:
    api = pair.client()
    headers = {
        "X-Forwarded-For": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
        "X-Forwarded-Prefix": "/elsewhere",
        "X_Forwarded_For": "203.0.113.9",
    }
    for _ in range(2):
        assert api.request("GET", "/", headers=headers).status == 200
    logs = "".join(server.log for server in pair.servers.values())
    assert "127.0.0.1" in logs
    assert "203.0.113.9" not in logs


@pytest.mark.parametrize("name", ["metrics", "healthz", "readyz"])
@pytest.mark.parametrize("spelling", ["/{}", "/%{:x}{}", "/{}?x=/", "/%2f{}", "//{}"])
def test_figures_and_health_are_not_for_clients(pair: Pair, name: str, spelling: str) -> None:
    first = (ord(name[0]), name[1:]) if ":x" in spelling else (name,)
    answer = pair.client().get(spelling.format(*first))
    assert (answer.status, SERVER_HEADER in answer.headers) == (404, False)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_every_promise_holds_under_load(program: str, kind: str) -> None:
    command = [
        *(
            sys.executable,
            "cluster/run.py",
            "--roost",
            str(Path(sys.executable).with_name("roost")),
        ),
        *("--part", "faults", "--seconds", "3", "--database", kind),
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
