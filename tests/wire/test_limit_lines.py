"""Every limit of a connection has an answer, and a line in the log that names it."""

from __future__ import annotations

import os
import resource
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.raw_client import JSON, RawClient, request
from support.servers.live_server import LiveServer, Serve
from support.waiting import wait_until

SIZES = "max_header_bytes = 2000\nmax_body_bytes = 200000\nheader_seconds = 3600"
TIMES = "header_seconds = 1\nbody_seconds = 1"
# Larger than what the kernel keeps for a narrow connection.
LARGE_ANSWER = request("GET", "/allocation_candidates?resources=VCPU:1")
CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
CHUNKED = request("POST", "/resource_providers", {**JSON, "Transfer-Encoding": "chunked"})


def with_length(length: int) -> bytes:
    return request("POST", "/resource_providers", {**JSON, "Content-Length": str(length)})


@contextmanager
def limited(directory: Path, limits: str) -> Iterator[LiveServer]:
    with LiveServer(
        f"sqlite:///{directory}/placement.db",
        directory,
        workers=1,
        configuration=f"[roost]\n{limits}\n",
    ) as server:
        yield server


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that takes small requests only, for all tests of this module."""
    with limited(tmp_path_factory.mktemp("small"), SIZES) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that waits for a second only, for all tests of this module."""
    with limited(tmp_path_factory.mktemp("hasty"), TIMES) as server:
        yield server


@pytest.mark.parametrize(
    ("sent", "status", "line"),
    [
        (request("GET", "/" + "x" * 3000), 431, "431 Address and headers"),
        (with_length(300_000), 413, "413 A body may have 200000 bytes ([roost]max_body_bytes)"),
        (CHUNKED + b"40000\r\n" + b"x" * 0x40000, 413, "([roost]max_body_bytes)"),
        (b"hello\r\n\r\n", 400, "400 These bytes are no request of HTTP/1.1"),
    ],
    ids=["headers", "body", "chunks", "no"],
)
def test_the_answer_and_the_log_name_the_limit(
    small: LiveServer, sent: bytes, status: int, line: str
) -> None:
    with RawClient(small.port) as client:
        client.send(sent)
        while (answer := client.answer()).status == 200:
            pass
        assert answer.status == status
    wait_until(lambda: line in small.log)
    assert f"127.0.0.1: {line}" in small.log or line.startswith("(")


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        (b"GET / HTTP/1.1\r\nHost: ro", "408 The headers of a request did not come in time"),
        (with_length(5) + b"{", "408 The body of a request did not come in time"),
        (CHUNKED + b"2\r\n{", "408 The body of a request did not come in time"),
    ],
    ids=["half", "slow", "chunked"],
)
def test_the_answer_and_the_log_name_the_limit_of_time(
    hasty: LiveServer, sent: bytes, line: str
) -> None:
    # The bytes come before the server sees the connection, so they are in time.
    with hasty.halted():
        client = RawClient(hasty.port)
        client.send(sent)
    with client:
        assert client.answer().status == 408
    wait_until(lambda: f"127.0.0.1: {line}" in hasty.log)


def test_a_line_of_a_chunk_without_end_counts_as_a_header(small: LiveServer) -> None:
    with RawClient(small.port) as client:
        client.send(CHUNKED, b"1;" + b"x" * 1500, b"x" * 1500)
        assert client.answer().status == 431


@pytest.mark.parametrize(
    "refused",
    [CHUNKED + CHUNK * 4, with_length(1 << 40), request("GET", "/" + "x" * 3000)],
    ids=["chunks", "length", "headers"],
)
def test_a_body_without_end_is_refused_and_not_read_on(small: LiveServer, refused: bytes) -> None:
    with RawClient(small.port) as client:
        client.send(refused)
        assert client.answer().status in (413, 431)
        # The buffers of a kernel hold some megabytes. A server that reads on takes all of it.
        with pytest.raises(ConnectionError):
            client.send(CHUNK * 4096)


def test_a_body_of_a_byte_at_a_time_ends_in_time(hasty: LiveServer) -> None:
    with hasty.halted():
        client = RawClient(hasty.port)
        client.send(with_length(1_000_000))
    with client:
        while not select.select([client.socket], [], [], 0.2)[0]:
            client.send(b" ")
        assert client.answer().status == 408


def test_a_client_that_does_not_read_is_named_and_disconnected(serve: Serve) -> None:
    server = serve("unread_seconds = 1", demo=True, narrow=True)
    with RawClient(server.port, narrow=True) as client:
        client.send(LARGE_ANSWER)
        wait_until(lambda: "127.0.0.1: Disconnected: the client reads nothing" in server.log)
        with pytest.raises(ConnectionError):
            client.answer()
    assert "[roost]unread_seconds" in server.log


def test_answers_that_wait_for_all_clients_are_named(serve: Serve) -> None:
    server = serve("max_unread_bytes = 100000", demo=True, narrow=True)
    with RawClient(server.port, narrow=True) as client:
        client.send(LARGE_ANSWER)
        wait_until(lambda: "[roost]max_unread_bytes" in server.log)
        with pytest.raises(ConnectionError):
            client.answer()


def test_many_refusals_write_few_lines(small: LiveServer) -> None:
    for _ in range(30):
        with RawClient(small.port) as client:
            client.send(b"nonsense\r\n\r\n")
            assert client.answer().status == 400
    assert small.log.count("These bytes are no request") <= 10


# The limit of the system on open files.


def cpu_seconds(worker: int) -> float:
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_worker_without_descriptors_waits_says_so_and_recovers(serve: Serve) -> None:
    server = serve("")
    (worker,) = server.worker_ids()
    usual = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (3, usual[1]))
        waiting = [stack.enter_context(RawClient(server.port)) for _ in range(5)]
        wait_until(lambda: "can open no further file" in server.log)
        # The worker sleeps between two looks, so a busy machine only lowers its share.
        before = cpu_seconds(worker)
        time.sleep(1.0)
        assert cpu_seconds(worker) - before < 0.3
        resource.prlimit(worker, resource.RLIMIT_NOFILE, usual)
        for client in waiting:
            client.send(request("GET", "/"))
            assert client.answer().status == 200
    assert server.log.count("can open no further file") <= 10


def test_a_limit_of_open_files_below_the_connections_is_told_at_start(serve: Serve) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    if usual[1] == resource.RLIM_INFINITY:
        pytest.skip("this system has no limit of open files")
    server = serve(f"max_connections = {usual[1] + 1}")
    assert "instead of [roost]max_connections" in server.log
    assert "LimitNOFILE" in server.log
