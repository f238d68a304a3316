"""A connection finds the same requests however their bytes are cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.limits import Limits
from roost.server.connection import Budget, Connection
from roost.server.incoming import Incoming
from roost.server.poller import Threads
from roost.server.states import State
from support.waiting import SECONDS_MAX

NAMES = st.text("abcXYZ-", min_size=1, max_size=8).map(lambda name: f"X-{name}")
VALUES = st.text("ab!~,=", max_size=12)
METHODS = st.sampled_from(["GET", "POST", "PUT", "FOO", "get", "P", "POSTER"])
PATHS = st.text("az/?=&", max_size=12).map(lambda rest: f"/{rest}")

# Method, target and body.
RequestSeen = tuple[str, str, bytes]


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, RequestSeen]:
    """The bytes of a request; its method, its target and its body."""
    path = draw(PATHS)
    method = draw(METHODS)
    body = draw(st.binary(max_size=300))
    headers = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if draw(st.booleans()):
        lines.append(f"Content-Length: {len(body)}")
        sent = body
    else:
        lines.append("Transfer-Encoding: chunked")
        at = draw(st.integers(0, len(body)))
        chunks = [part for part in (body[:at], body[at:]) if part]
        sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunks) + b"0\r\n\r\n"
    blanks = draw(st.sampled_from([b"", b"\r\n"]))
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return blanks + head + sent, (method, path if "?" in path else f"{path}?", body)


def received(parts: Sequence[bytes], limits: Limits, budget: Budget) -> Connection:
    """A connection that has received these parts in their order."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    connection = Connection(ours, {}, limits, budget)
    with closing(theirs):
        for part in parts:
            theirs.sendall(part)
            assert connection.receive(now=0.0)
    return connection


def asked(request: Incoming) -> RequestSeen:
    """What the application sees of a request."""
    environ = request.environ({})
    target = f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
    return environ["REQUEST_METHOD"], target, environ["wsgi.input"].read()


@given(st.lists(messages(), min_size=1, max_size=4), st.data())
def test_requests_are_the_same_however_they_are_cut(
    sent: list[tuple[bytes, RequestSeen]], data: st.DataObject
) -> None:
    stream = b"".join(part for part, _ in sent)
    cuts = data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=8).map(sorted))
    edges = [0, *cuts, len(stream)]
    parts = [stream[a:b] for a, b in pairwise(edges) if b > a]
    connection = received(parts, Limits(), Budget(1 << 20))
    with closing(connection):
        assert [asked(request) for request in connection.requests] == [one for _, one in sent]
        assert connection.refused is None


@pytest.mark.parametrize("name", ["Upgrade", "upgrade", "UPGRADE"])
def test_a_body_of_a_request_with_an_upgrade_header_is_read_however_it_is_cut(name: str) -> None:
    head = f"POST /a HTTP/1.1\r\nConnection: {name}\r\n{name}: h2c\r\nContent-Length: 2\r\n\r\n"
    stream = head.encode() + b"{}GET /b HTTP/1.1\r\n\r\n"
    for cut in range(1, len(stream)):
        connection = received([stream[:cut], stream[cut:]], Limits(), Budget(1 << 20))
        with closing(connection):
            seen = [asked(request) for request in connection.requests]
        assert seen == [("POST", "/a?", b"{}"), ("GET", "/b?", b"")], stream[:cut]


@pytest.mark.parametrize("body", [b"", b"x" * 10])
def test_few_of_many_requests_are_parsed_before_their_answers(body: bytes) -> None:
    one = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    count = 1000
    # One read takes all of them.
    connection = received([one * count], Limits(), Budget(1 << 20))
    answered = 0
    with closing(connection):
        while connection.find_request():
            assert len(connection.requests) <= 64
            assert asked(connection.requests.popleft()) == ("POST", "/?", body)
            answered += 1
        assert answered == count
        assert not connection.has_more


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=5), st.integers(0, 500_000))
def test_the_memory_of_large_bodies_is_given_back(sizes: list[int], maximum: int) -> None:
    budget = Budget(maximum)
    for size in sizes:
        head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size
        body = b"x" * size
        parts = [head, *(body[at : at + 50_000] for at in range(0, size, 50_000))]
        connection = received(parts, Limits(max_body_bytes=200_000), budget)
        assert connection.requests or connection.refused
        for request in connection.requests:
            connection.release_body(request)
        connection.close()
        assert budget.taken == 0


@pytest.mark.parametrize(
    ("size", "moments", "taken"),
    [(10_000, [0.0] * 9, 3), (1, [0.0, 1.0, 1.9, 2.0, 2.1], 4)],
    ids=["bytes", "seconds"],
)
def test_a_server_discards_bytes_after_a_refusal_within_limits_only(
    size: int, moments: list[float], taken: int
) -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, {}, Limits(max_body_bytes=30_000), Budget(1 << 20))
    connection.state = State.LINGERING
    connection.deadline = 2.0
    went_on = []
    with closing(connection), closing(theirs):
        for now in moments:
            theirs.sendall(b"x" * size)
            went_on.append(connection.receive(now))
    assert went_on.index(False) + 1 == taken


def test_threads_do_all_work_once_and_in_its_order() -> None:
    done: list[int] = []
    gate, finished = threading.Event(), threading.Event()

    def work(number: int) -> None:
        gate.wait(SECONDS_MAX)
        done.append(number)
        if len(done) == 200:
            finished.set()

    threads = Threads("test", 1, work)
    for number in range(200):
        threads.put(number)
    gate.set()
    assert finished.wait(SECONDS_MAX)
    assert done == list(range(200))
