"""Large answers take turns, and small requests do not wait for them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from support.raw_client import RawClient, request
from support.servers.live_server import Serve, resident_megabytes

# LARGE finds some thousand candidates in the demo cloud, LARGER a hundred thousand.
GROUPS = "resources_a=SRIOV_NET_VF:1&resources_b=SRIOV_NET_VF:1&group_policy=isolate"
LARGE = f"/allocation_candidates?{GROUPS}&resources_c=SRIOV_NET_VF:1"
LARGER = f"{LARGE}&resources_d=SRIOV_NET_VF:1&resources_e=VCPU:1"


@pytest.mark.parametrize(
    ("path", "at_once"),
    [(LARGE, 4), pytest.param(LARGER, 50, marks=pytest.mark.long)],
    ids=["large", "larger"],
)
def test_small_requests_do_not_wait_for_large_answers(
    serve: Serve, path: str, at_once: int
) -> None:
    server = serve("", demo=True, narrow=True)
    megabytes = [resident_megabytes(server)]
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.port, narrow=True)) for _ in range(at_once)]
        for client in clients:
            client.send(request("GET", path))
        # No large answer can end before its client reads it.
        for _ in range(10):
            with RawClient(server.port) as small:
                small.send(request("GET", "/traits?name=in:COMPUTE_NODE"))
                assert small.answer().status == 200
            megabytes.append(resident_megabytes(server))
        sizes = set()
        for client in clients:
            sizes.add(len(whole_answer(client)))
            megabytes.append(resident_megabytes(server))
    assert len(sizes) == 1
    assert max(megabytes) - megabytes[0] < 500


def whole_answer(client: RawClient) -> bytes:
    """The body of an answer in pieces. An incomplete answer is an error."""
    answer = client.answer()
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.body.endswith(b"}}")
    return answer.body


def test_a_client_that_leaves_during_its_answer_harms_no_later_answer(serve: Serve) -> None:
    server = serve("", demo=True)
    for _ in range(20):
        with RawClient(server.port) as client:
            client.send(request("GET", LARGE))
            assert client.socket.recv(1000).startswith(b"HTTP/1.1 200 OK")
    with RawClient(server.port) as client:
        client.send(request("GET", LARGE))
        assert len(whole_answer(client)) > 1_000_000
    assert "Traceback" not in server.log


def test_a_large_answer_to_http_1_0_ends_with_the_connection(serve: Serve) -> None:
    server = serve("", demo=True)
    with RawClient(server.port) as client:
        client.send(request("GET", LARGE, version="1.0"))
        answer = client.answer()
    assert "transfer-encoding" not in answer.headers
    assert len(answer.json["allocation_requests"]) > 4000
