"""Slow, silent or thousands of clients keep no new client of the server waiting."""

from __future__ import annotations

from contextlib import ExitStack
from http import HTTPStatus

import pytest

from roost.model.identifiers import new_uuid
from roost.server.poller import THREADS
from support.raw_client import JSON, RawClient, request
from support.servers.live_server import LiveServer, Serve, resident_megabytes, socket_count
from support.waiting import wait_until

# More than the usual number of open files.
MANY = 5_000
MORE_THAN_THREADS = THREADS + 50
# Larger than what the kernel keeps for a narrow connection: some 400 kilobytes in the demo cloud.
LARGE_PATH = "/allocation_candidates?resources=VCPU:1"
LARGE_ANSWER = request("GET", LARGE_PATH)
HALF = b"GET / HTTP/1.1\r\nHost: ro"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def connected(stack: ExitStack, port: int, count: int, sent: bytes = b"") -> list[RawClient]:
    """Clients with open connections, each of which has sent these bytes."""
    made = []
    for _ in range(count):
        client = stack.enter_context(RawClient(port, narrow=True))
        client.send(sent)
        made.append(client)
    return made


def assert_answers(server: LiveServer, path: str = "/") -> None:
    """New clients get answers."""
    for _ in range(3):
        with RawClient(server.port) as client:
            client.send(request("GET", path))
            assert client.answer().status == 200


@pytest.mark.parametrize(
    "sent", [b"", HALF, PREFACE, request("GET", "/")], ids=["nothing", "half", "http2", "idle"]
)
@pytest.mark.slow
def test_thousands_of_connections_keep_no_new_client_waiting(
    server: LiveServer, sent: bytes
) -> None:
    before = resident_megabytes(server)
    with ExitStack() as stack:
        connected(stack, server.port, MANY, sent)
        assert_answers(server, "/resource_providers")
        assert resident_megabytes(server) - before < 150


@pytest.mark.parametrize("size", [1_000_000_000_000, 15_000_000, 100], ids=["endless", "large", ""])
def test_bodies_that_do_not_end_hold_no_threads(server: LiveServer, size: int) -> None:
    head = request("POST", "/resource_providers", {**JSON, "Content-Length": str(size)})
    with ExitStack() as stack:
        connected(stack, server.port, MORE_THAN_THREADS, head + b"{")
        assert_answers(server, "/resource_providers")


def test_large_bodies_at_once_are_bounded(serve: Serve) -> None:
    server = serve("max_bodies_bytes = 20000000", narrow=True)
    length = 15_000_000
    head = request("POST", "/resource_providers", {**JSON, "Content-Length": str(length)})
    before, sockets = resident_megabytes(server), socket_count(server)
    with ExitStack() as stack:
        first, *others = (
            stack.enter_context(RawClient(server.port, narrow=True)) for _ in range(6)
        )
        # The server waits for the rest of the first body, and refuses all further bodies.
        first.send(head + b" " * (length - 1))
        assert [status_of(client, head + b" " * (length - 1)) for client in others] == [503] * 5
        assert first.is_waiting()
        assert "503 Other clients send large bodies at this moment ([roost]max_bodies" in server.log
        assert resident_megabytes(server) - before < 100
        small = {"name": "small", "uuid": new_uuid()}
        assert server.client().post("/resource_providers", small).status == 200
    wait_until(lambda: socket_count(server) <= sockets + 1)
    # A new client may use the memory that the first clients gave up.
    whole = b'{"name": "large"' + b" " * (length - 17) + b"}"
    assert server.client().post("/resource_providers", whole).status == 200


def status_of(client: RawClient, sent: bytes) -> int:
    """The status of the answer; 503 if the server ends the connection while the client sends."""
    try:
        client.send(sent)
        return client.answer().status
    except ConnectionError:
        return HTTPStatus.SERVICE_UNAVAILABLE


def test_clients_that_do_not_read_hold_no_threads(serve: Serve) -> None:
    server = serve("", demo=True, narrow=True)
    with ExitStack() as stack:
        deaf = connected(stack, server.port, MORE_THAN_THREADS, LARGE_ANSWER)
        for client in deaf:
            client.await_bytes()
        assert_answers(server)
        # None of them was disconnected to make room.
        assert socket_count(server) >= MORE_THAN_THREADS


def test_answers_that_no_client_reads_are_bounded(serve: Serve) -> None:
    server = serve("max_unread_bytes = 1000000", demo=True, narrow=True)
    with ExitStack() as stack:
        connected(stack, server.port, 20, LARGE_ANSWER)
        wait_until(lambda: server.log.count(LARGE_PATH) >= 20 and socket_count(server) < 20)
        assert_answers(server)


def test_headers_bodies_and_idle_connections_have_a_time_limit(serve: Serve) -> None:
    server = serve("header_seconds = 1\nbody_seconds = 1\nidle_seconds = 1")
    # The first bytes come before the server sees the connections, so they are in time.
    with server.halted():
        silent, half, slow, idle = clients = [RawClient(server.port) for _ in range(4)]
        half.send(HALF)
        slow.send(request("POST", "/resource_providers", {**JSON, "Content-Length": "9"}) + b"{")
        idle.send(request("GET", "/"))
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        assert idle.answer().status == 200
        assert silent.is_closed()
        assert idle.is_closed()
        assert [half.answer().status, slow.answer().status] == [408, 408]


def test_a_connection_too_many_takes_the_place_of_the_longest_idle_connection(serve: Serve) -> None:
    server = serve("max_connections = 50")
    with ExitStack() as stack:
        # The server accepts connections in their order, and none of these sends anything.
        oldest = connected(stack, server.port, 20)
        kept = connected(stack, server.port, 25, request("GET", "/"))
        for client in kept:
            assert client.answer().status == 200
        late = connected(stack, server.port, 10)
        assert oldest[0].is_closed()
        for client in (*late, *kept):
            client.send(request("GET", "/"))
            assert client.answer().status == 200
        wait_until(lambda: "[roost]max_connections" in server.log)


def test_slow_readers_lock_no_client_out(serve: Serve) -> None:
    server = serve("max_connections = 2", demo=True, narrow=True)
    with ExitStack() as stack:
        for _ in range(3):
            (client,) = connected(stack, server.port, 1, LARGE_ANSWER)
            client.await_bytes()
        assert_answers(server)


def test_small_pieces_of_a_body_take_no_more_memory_than_large_pieces(server: LiveServer) -> None:
    before = resident_megabytes(server)
    head = request("POST", "/resource_providers", {**JSON, "Transfer-Encoding": "chunked"})
    with RawClient(server.port) as client:
        client.send(head)
        for _ in range(40):
            client.send(b"2\r\n  \r\n" * 50_000)
        assert resident_megabytes(server) - before < 60
