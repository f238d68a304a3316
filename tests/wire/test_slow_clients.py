"""Slow, silent or thousands of clients keep no new client of the server waiting."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from roost.model.identifiers import new_uuid
from support.raw_client import JSON, RawClient, request
from support.servers.live_server import LiveServer, Serve, resident_megabytes, socket_count

# More than a server has threads, and more than the usual number of open files.
MANY = 5_000
# Even on a busy machine, a client waits longer than this only behind a slow client.
SECONDS_MAX = 5.0
# Their answers are larger than the buffers of the kernel: some 400 kilobytes in the demo cloud.
LARGE_ANSWERS = request("GET", "/allocation_candidates?resources=VCPU:1") * 40
HALF = b"GET / HTTP/1.1\r\nHost: ro"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(2 * MANY, before[1]) if before[1] != resource.RLIM_INFINITY else 2 * MANY
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, before[0]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connected(stack: ExitStack, port: int, count: int, sent: bytes = b"") -> list[socket.socket]:
    """Open connections, each of which has sent these bytes."""
    made = []
    for _ in range(count):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        if sent:
            client.sendall(sent)
        made.append(client)
    return made


def seconds_for(server: LiveServer, path: str = "/resource_providers") -> float:
    """How long a new client waits for an answer."""
    began = time.monotonic()
    with RawClient(server.port) as client:
        client.send(request("GET", path))
        assert client.answer().status == 200
    return time.monotonic() - began


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
        assert max(seconds_for(server) for _ in range(5)) < SECONDS_MAX
        assert resident_megabytes(server) - before < 150


@pytest.mark.parametrize("size", [1_000_000_000_000, 15_000_000, 100], ids=["endless", "large", ""])
def test_bodies_that_do_not_end_hold_no_threads(server: LiveServer, size: int) -> None:
    head = request("POST", "/resource_providers", {**JSON, "Content-Length": str(size)})
    with ExitStack() as stack:
        connected(stack, server.port, 300, head + b"{")
        assert max(seconds_for(server) for _ in range(5)) < SECONDS_MAX


def test_large_bodies_at_once_are_bounded(serve: Serve) -> None:
    server = serve("max_bodies_bytes = 20000000")
    length = 15_000_000
    head = request("POST", "/resource_providers", {**JSON, "Content-Length": str(length)})
    before = resident_megabytes(server)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.port)) for _ in range(6)]
        for client in clients:
            client.send(head)
        statuses = []
        for client in clients:
            # The server waits for the rest of the first body, and refuses all further bodies.
            client.socket.settimeout(3)
            try:
                client.send(b" " * (length - 1))
                statuses.append(client.answer().status)
            except TimeoutError:
                statuses.append(0)
            except ConnectionError:
                statuses.append(503)
        assert statuses == [0, 503, 503, 503, 503, 503]
        assert "503 Other clients send large bodies at this moment ([roost]max_bodies" in server.log
        assert resident_megabytes(server) - before < 100
        small = {"name": "small", "uuid": new_uuid()}
        assert server.client().post("/resource_providers", small).status == 200
    # A new client may use the memory that the first clients gave up.
    whole = b'{"name": "large"' + b" " * (length - 17) + b"}"
    assert server.client().post("/resource_providers", whole).status == 200


def test_clients_that_do_not_read_hold_no_threads_and_are_disconnected(serve: Serve) -> None:
    server = serve("unread_seconds = 2", demo=True)
    with ExitStack() as stack:
        deaf = [stack.enter_context(socket.socket()) for _ in range(70)]
        for client in deaf:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(LARGE_ANSWERS)
        assert max(seconds_for(server, "/") for _ in range(5)) < SECONDS_MAX
        wait_until(lambda: socket_count(server) < 10)


def test_answers_that_no_client_reads_are_bounded(serve: Serve) -> None:
    server = serve("unread_seconds = 600\nmax_unread_bytes = 1000000", demo=True)
    with ExitStack() as stack:
        for _ in range(60):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(LARGE_ANSWERS)
        wait_until(lambda: socket_count(server) < 30)
        assert seconds_for(server, "/") < SECONDS_MAX


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"the condition does not hold after {seconds} s"
        time.sleep(0.1)


def test_headers_bodies_and_idle_connections_have_a_time_limit(serve: Serve) -> None:
    server = serve("header_seconds = 1\nbody_seconds = 1\nidle_seconds = 1")
    with (
        RawClient(server.port) as silent,
        RawClient(server.port) as half,
        RawClient(server.port) as slow,
        RawClient(server.port) as idle,
    ):
        half.send(HALF)
        slow.send(request("POST", "/resource_providers", {**JSON, "Content-Length": "9"}), b"{")
        idle.send(request("GET", "/"))
        assert idle.answer().status == 200
        assert silent.is_closed()
        assert idle.is_closed()
        assert [half.answer().status, slow.answer().status] == [408, 408]


def test_a_connection_too_many_takes_the_place_of_the_longest_idle_connection(serve: Serve) -> None:
    server = serve("max_connections = 50")
    with ExitStack() as stack:
        idle = [stack.enter_context(RawClient(server.port)) for _ in range(45)]
        for client in idle:
            client.send(request("GET", "/"))
            assert client.answer().status == 200
        time.sleep(0.5)
        late = [stack.enter_context(RawClient(server.port)) for _ in range(10)]
        time.sleep(1.5)
        assert idle[0].is_closed()
        for client in (*late, idle[-1]):
            client.send(request("GET", "/"))
            assert client.answer().status == 200
        assert "[roost]max_connections" in server.log


def test_slow_readers_lock_no_client_out(serve: Serve) -> None:
    server = serve("max_connections = 2", demo=True)
    with ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(LARGE_ANSWERS)
            time.sleep(0.3)
        for _ in range(3):
            assert seconds_for(server, "/") < SECONDS_MAX


def test_small_pieces_of_a_body_take_no_more_memory_than_large_pieces(server: LiveServer) -> None:
    before = resident_megabytes(server)
    head = request("POST", "/resource_providers", {**JSON, "Transfer-Encoding": "chunked"})
    with RawClient(server.port) as client:
        client.send(head)
        for _ in range(40):
            client.send(b"2\r\n  \r\n" * 50_000)
        assert resident_megabytes(server) - before < 60
