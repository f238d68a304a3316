"""A server that answers as an application does, but for one request with a fault in its answers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from support.api_client import Send
from support.stubs.placement_stub import HangUp, PlacementStub, RawBytes, Received, Reply, Step

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_NOT_FOUND = Reply(404, {"errors": [{"status": 404, "detail": "The resource was not found."}]})

RequestKey = tuple[str, str]


@dataclass(frozen=True)
class AnswerFault:
    """What is wrong with an answer."""

    text: str
    spoil: Callable[[Reply], Step]


class OddServer(PlacementStub):
    """Asks an application and keeps its answers. Later it gives the same answers again.

    A write reaches the application while the server records, and never afterwards. A read that
    the server has no answer to goes to the application.
    """

    def __init__(self, send: Send) -> None:
        super().__init__(otherwise=self._answer)
        self._send = send
        self._kept: dict[RequestKey, list[Reply]] = {}
        self._given: Counter[RequestKey] = Counter()
        self._records = True
        self._spoilt: RequestKey | None = None
        self._fault: AnswerFault | None = None

    @property
    def known(self) -> list[RequestKey]:
        """The requests that were recorded."""
        return sorted(self._kept)

    def forget(self) -> None:
        """Forget the recorded answers."""
        self._kept.clear()

    def play(self, spoilt: RequestKey, fault: AnswerFault) -> None:
        """From now on, give the recorded answers, with a fault in those to one request."""
        self._records = False
        self._given.clear()
        self._spoilt, self._fault = spoilt, fault

    def _answer(self, request: Received) -> Step:
        key = request.method, request.path
        reply = self._reply(key, request)
        if self._fault is None or key != self._spoilt:
            return reply
        return self._fault.spoil(reply)

    def _reply(self, key: RequestKey, request: Received) -> Reply:
        if self._records:
            reply = self._asked(request)
            self._kept.setdefault(key, []).append(reply)
            return reply
        if key in self._kept:
            replies = self._kept[key]
            number = self._given[key]
            self._given[key] += 1
            return replies[min(number, len(replies) - 1)]
        return self._asked(request) if request.method == "GET" else _NOT_FOUND

    def _asked(self, request: Received) -> Reply:
        answer = self._send(request.method, request.path, request.body, request.headers)
        headers = {name: value for name, value in answer.headers.items() if name not in _FRAMING}
        return Reply(answer.status, answer.body or None, headers)


# Faults.

_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    2**70,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\ud800",
    "\x1b[31m\n",
    [],
    {},
    [None],
    ["x"],
    {"x": None},
    [[{}]],
)
_BODIES = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"7",
    b"NaN",
    b"\xff\xfe\x00",
    b'{"a": "\xff"}',
    b"[" * 100_000,
    b"9" * 5000,
    b"<html><title>502 \xff</title></html>",
    b"\x1f\x8b\x08\x00garbage",
)
_ERROR_BODIES: tuple[Any, ...] = (
    {"errors": None},
    {"errors": []},
    {"errors": [None]},
    {"errors": ["x"]},
    {"errors": {"0": 1}},
    {"errors": [{"detail": {"a": 1}, "code": 5}]},
    {"errors": [{"detail": ["x"], "title": None}]},
    {"error": None},
    {"error": "x"},
    {"error": {"message": 7, "code": []}},
    [],
    "x",
    None,
    7,
)
_STATUSES = (
    *(201, 202, 204, 205, 206, 299, 300, 301, 302, 304, 307, 400, 401, 403, 404, 405, 406, 407),
    *(408, 409, 410, 412, 413, 415, 418, 422, 429, 431, 500, 501, 502, 503, 504, 507, 599, 600),
    999,
)
_HEADERS = (
    ("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ("Retry-After", "Sat, 01 Jan 0001 00:00:00 +2359"),
    ("Retry-After", "Mon, 01 Jan 99999 00:00:00 GMT"),
    ("Retry-After", "9" * 400),
    ("Retry-After", "-1"),
    ("Retry-After", "\xb2"),
    ("Retry-After", "soon"),
    ("Location", "\x1b[31m"),
    ("Location", "http://[::1"),
    ("OpenStack-API-Version", "placement 99.99"),
    ("OpenStack-API-Version", "placement x.y"),
    ("OpenStack-API-Version", "\xff"),
    ("X-OpenStack-Request-ID", "\x1b]0;owned\x07"),
    ("Content-Type", "\xff/;;"),
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "br, x"),
    ("Set-Cookie", "a=b\x01"),
    ("Date", "never"),
)
_RAW = (
    b"",
    b"\x00",
    b"hello\r\n\r\n",
    b"HTTP/1.1 abc Odd\r\n\r\n",
    b"HTTP/1.1 -5 Odd\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\n: empty\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n{}",
    b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n{}",
    b"HTTP/1.1 200 \xff\xfe\r\n\xff: \xff\r\n\r\n{}",
    b"HTTP/1.1 100 Continue\r\n\r\n",
)
_REMOVED = object()
_ADDED = object()


def draw_fault(source: random.Random) -> AnswerFault:
    """A random fault; most of them are inside the JSON of an answer."""
    kind = source.choices(
        (_json_fault, _body_fault, _status_fault, _header_fault, _raw_fault), (10, 2, 3, 2, 1)
    )
    return kind[0](source)


def _json_fault(source: random.Random) -> AnswerFault:
    number = source.randrange(2**32)
    value = source.choice((*_VALUES, _REMOVED, _REMOVED, _ADDED))
    shown = {id(_REMOVED): "nothing", id(_ADDED): "a further member"}.get(id(value), repr(value))
    return AnswerFault(
        f"{shown} at place {number} of its JSON", lambda reply: _with_value(reply, number, value)
    )


def _body_fault(source: random.Random) -> AnswerFault:
    cut = source.random()
    body = source.choice((None, None, *_BODIES))
    if body is None:
        return AnswerFault(
            f"only {cut} of its body",
            lambda reply: replace(
                reply, body=(reply.body or b"")[: int(cut * len(reply.body or b""))]
            ),
        )
    return AnswerFault(f"the body {body[:40]!r}", lambda reply: replace(reply, body=body))


def _status_fault(source: random.Random) -> AnswerFault:
    status = source.choice(_STATUSES)
    headers = dict(source.sample(_HEADERS, 2))
    body = source.choice((..., *_ERROR_BODIES, *_BODIES))
    return AnswerFault(
        f"the status {status}, the headers {headers} and the body {str(body)[:40]}",
        lambda reply: Reply(
            status,
            reply.body if body is ... else body,
            {**reply.headers, **headers},
        ),
    )


def _header_fault(source: random.Random) -> AnswerFault:
    headers = dict(source.sample(_HEADERS, 2))
    return AnswerFault(
        f"the headers {headers}",
        lambda reply: replace(reply, headers={**reply.headers, **headers}),
    )


def _raw_fault(source: random.Random) -> AnswerFault:
    raw = source.choice(_RAW)
    return AnswerFault(f"the bytes {raw[:60]!r}", lambda _: RawBytes([raw]) if raw else HangUp())


def _with_value(reply: Reply, number: int, value: Any) -> Reply:
    try:
        body = json.loads(reply.body or b"")
    except ValueError:
        return replace(
            reply, body=b"" if value in (_REMOVED, _ADDED) else json.dumps(value).encode()
        )
    places = [((), None), *_places(body)]
    holder, key = places[number % len(places)]
    if key is None:
        body = None if value in (_REMOVED, _ADDED) else value
    elif value is _REMOVED:
        del holder[key]
    elif value is _ADDED:
        _add_to(holder)
    else:
        holder[key] = value
    return replace(reply, body=json.dumps(body).encode())


def _add_to(holder: Any) -> None:
    if isinstance(holder, dict):
        holder["new_in_2999"] = {"x": 1}
    else:
        holder.append({"new_in_2999": 1})


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All containers inside a value, with each of their keys."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    for key in keys:
        yield value, key
        yield from _places(value[key])
