"""Answers that are too large, do not end, or are encoded: both transports refuse them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable

import pytest
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from roost.client.errors import AnswerLost, AnswerRefused
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementRequest, http
from roost.client.transport.http import HttpTransport, Timeouts
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.client.transport.session import SessionTransport
from support.stubs.placement_stub import PlacementStub, RawBytes, Reply

GET = PlacementRequest("GET", "/usages?project_id=x")
POST = PlacementRequest("POST", "/allocations", {}, version="1.36")
AT_ONCE = RetryPolicy(sleep=lambda _: None)
LIMIT = 2**20
# An answer that a client without bounds takes in full.
MUCH = [b" " * 2**18] * 128
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

Connected = Callable[[str], RetryingTransport]
QUICK = Timeouts(5.0, 1.0)


def over_http(url: str) -> RetryingTransport:
    return HttpTransport(url, "t", retries=AT_ONCE, timeout=QUICK)


def over_a_session(url: str) -> RetryingTransport:
    return SessionTransport(Session(auth=Token(url, "t")), retries=AT_ONCE, timeout=QUICK)


both = pytest.mark.parametrize("connected", [over_http, over_a_session])


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_BYTES", LIMIT)


def until_close(body: Iterable[bytes]) -> list[bytes]:
    return [HEAD + b"\r\n", *body]


def in_chunks(body: Iterable[bytes]) -> list[bytes]:
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in body]
    return [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n"]


def with_length(body: Iterable[bytes]) -> list[bytes]:
    parts = list(body)
    return [HEAD + b"Content-Length: %d\r\n\r\n" % sum(map(len, parts)), *parts]


@both
@pytest.mark.parametrize("framed", [until_close, in_chunks, with_length])
def test_an_answer_that_is_too_large_is_refused(
    connected: Connected, framed: Callable[[Iterable[bytes]], list[bytes]]
) -> None:
    with (
        PlacementStub(RawBytes(framed(MUCH))) as stub,
        connected(stub.url) as transport,
        pytest.raises(AnswerRefused, match=r"larger than 1 MiB; ask for less") as caught,
    ):
        transport.send(GET)
    # A second answer would be as large.
    assert stub.asked == ["GET /usages?project_id=x"]
    assert outcome_of(caught.value) is Outcome.UNKNOWN


@both
@pytest.mark.parametrize("framed", [until_close, in_chunks, with_length])
def test_an_answer_of_the_largest_size_is_taken(
    connected: Connected, framed: Callable[[Iterable[bytes]], list[bytes]]
) -> None:
    body = b'"' + b"x" * (LIMIT - 2) + b'"'
    with PlacementStub(RawBytes(framed([body]))) as stub, connected(stub.url) as transport:
        assert transport.send(GET).content == body


@both
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(bytes(64 * LIMIT))),
        ("gzip", gzip.compress(b"{}")),
        ("gzip", b"no gzip"),
        ("deflate", zlib.compress(b"{}")),
        ("br", b"x"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}"))),
    ],
    ids=["bomb", "gzip", "no-gzip", "deflate", "br", "twice"],
)
def test_an_encoding_that_the_client_did_not_ask_for_is_refused(
    connected: Connected, encoding: str, body: bytes
) -> None:
    reply = Reply(200, body, {"Content-Encoding": encoding})
    with (
        PlacementStub(reply) as stub,
        connected(stub.url) as transport,
        pytest.raises(AnswerRefused, match=f"the encoding '{encoding}'"),
    ):
        transport.send(POST)
    (received,) = stub.received
    assert received.headers["accept-encoding"] == "identity"


@both
def test_an_empty_answer_has_no_encoding(connected: Connected) -> None:
    reply = Reply(204, None, {"Content-Encoding": "gzip"})
    with PlacementStub(reply) as stub, connected(stub.url) as transport:
        assert transport.send(POST).status == 204


# In all, these answers take six seconds, and there is one byte at least in each second.
TRICKLE = [b" "] * 120


@pytest.mark.parametrize(
    ("connected", "parts"),
    [
        pytest.param(over_http, until_close(TRICKLE), id="http-body"),
        pytest.param(over_http, in_chunks(TRICKLE), id="http-chunks"),
        pytest.param(over_http, [HEAD, b"X-Long:", *TRICKLE, b"\r\n\r\n"], id="http-header"),
        pytest.param(over_a_session, until_close(TRICKLE), id="session-body"),
        pytest.param(over_a_session, in_chunks(TRICKLE), id="session-chunks"),
    ],
)
def test_an_answer_that_takes_too_long_is_given_up(
    connected: Connected, parts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.0)
    with (
        PlacementStub(RawBytes(parts, pause=0.05)) as stub,
        connected(stub.url) as transport,
        pytest.raises(AnswerLost),
    ):
        transport.send(POST)


@both
def test_the_connection_of_a_refused_answer_is_not_used_again(connected: Connected) -> None:
    with (
        PlacementStub(RawBytes(with_length(MUCH)), Reply(200, "second")) as stub,
        connected(stub.url) as transport,
    ):
        with pytest.raises(AnswerRefused):
            transport.send(GET)
        assert transport.send(GET).json == "second"
    assert stub.connections == 2
