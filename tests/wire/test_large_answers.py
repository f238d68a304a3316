"""Large answers take turns, and small requests do not wait for them."""

from __future__ import annotations

import http.client
import statistics
import threading
import time
from contextlib import closing

import pytest

from support.raw_client import RawClient, request
from support.servers.live_server import LiveServer, Serve, resident_megabytes

# LARGE finds some thousand candidates in the demo cloud, LARGER a hundred thousand.
GROUPS = "resources_a=SRIOV_NET_VF:1&resources_b=SRIOV_NET_VF:1&group_policy=isolate"
LARGE = f"/allocation_candidates?{GROUPS}&resources_c=SRIOV_NET_VF:1"
LARGER = f"{LARGE}&resources_d=SRIOV_NET_VF:1&resources_e=VCPU:1"


def ask(server: LiveServer, path: str, sizes: list[int]) -> None:
    """Ask once and note the size of the answer. An incomplete answer is an error."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    with closing(connection):
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.headers["transfer-encoding"] == "chunked"
        size, end = 0, b""
        while piece := answer.read(1 << 20):
            size += len(piece)
            end = piece[-2:]
    assert end == b"}}"
    sizes.append(size)


@pytest.mark.parametrize(
    ("path", "at_once"),
    [(LARGE, 8), pytest.param(LARGER, 50, marks=pytest.mark.long)],
    ids=["large", "larger"],
)
def test_small_requests_do_not_wait_for_large_answers(
    serve: Serve, path: str, at_once: int
) -> None:
    server = serve("", demo=True)
    sizes: list[int] = []
    threads = [
        threading.Thread(target=ask, args=(server, path, sizes), daemon=True)
        for _ in range(at_once)
    ]
    before = resident_megabytes(server)
    for thread in threads:
        thread.start()
    seconds, megabytes = [], [before]
    while any(thread.is_alive() for thread in threads):
        began = time.monotonic()
        with RawClient(server.port) as client:
            client.send(request("GET", "/traits?name=in:COMPUTE_NODE"))
            assert client.answer().status == 200
        seconds.append(time.monotonic() - began)
        megabytes.append(resident_megabytes(server))
        time.sleep(0.02)
    assert len(sizes) == at_once
    assert len(set(sizes)) == 1
    assert statistics.median(seconds) < 1.0
    assert max(megabytes) - before < 500


def test_a_client_that_leaves_during_its_answer_harms_no_later_answer(serve: Serve) -> None:
    server = serve("", demo=True)
    for _ in range(20):
        with RawClient(server.port) as client:
            client.send(request("GET", LARGE))
            assert client.socket.recv(1000).startswith(b"HTTP/1.1 200 OK")
    sizes: list[int] = []
    ask(server, LARGE, sizes)
    assert sizes[0] > 1_000_000
    assert "Traceback" not in server.log


def test_a_large_answer_to_http_1_0_ends_with_the_connection(serve: Serve) -> None:
    server = serve("", demo=True)
    with RawClient(server.port) as client:
        client.send(request("GET", LARGE, version="1.0"))
        answer = client.answer()
    assert "transfer-encoding" not in answer.headers
    assert len(answer.json["allocation_requests"]) > 4000
