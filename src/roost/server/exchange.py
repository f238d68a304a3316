"""One exchange: the application answers a request, and the connection sends the bytes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeAlias

import orjson

from roost.server.connection import Connection
from roost.server.incoming import Environ, Incoming

_LOG = logging.getLogger(__name__)

Header = tuple[str, str]

_CLOSE = "connection: close"
# Only clients of HTTP/1.0 need it.
_KEEP_ALIVE = "connection: keep-alive"
_CHUNKED = "transfer-encoding: chunked"
_END_OF_CHUNKS = b"0\r\n\r\n"
_WITHOUT_LENGTH = "204"

WsgiApplication: TypeAlias = Callable[
    [Environ, Callable[[str, list[Header]], Any]], Iterable[bytes]
]


class CutOff(Exception):
    """The application failed in the middle of an answer, and logged the reason."""


def answer(
    connection: Connection,
    application: WsgiApplication,
    is_stopping: Callable[[], bool],
    wake: Callable[[Connection], None],
) -> None:
    """Ask the application about the next request, and send as much as the client takes.

    `roost.follow` in the environment tells the server that an empty piece of the answer means:
    nothing to send now. It returns the function by which the application says that there is more.
    """
    incoming = connection.requests.popleft()
    started: list[tuple[str, list[Header]]] = []
    connection.follows = False

    def follow() -> Callable[[], None]:
        connection.follows = True
        return lambda: wake(connection)

    try:
        body = application(
            {**incoming.environ(connection.environ), "roost.follow": follow},
            lambda status, headers: started.append((status, headers)),
        )
        connection.keep_alive = incoming.keep_alive and not is_stopping()
        buffers = _buffers(connection, incoming, started[0], body)
    except Exception:
        _LOG.exception("The application failed")
        connection.keep_alive = False
        buffers = [refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed.")]
    connection.release_body(incoming)
    connection.send(buffers)


def send_piece(connection: Connection) -> bool:
    """Send the next piece of an answer of unknown length, or its end.

    Returns whether the application has nothing to send now, and wakes the connection later.
    """
    stream = connection.stream
    assert stream is not None
    try:
        piece = next(stream, None)
    except Exception as error:
        raise CutOff from error
    if piece is None:
        connection.stream = None
        return False
    if not piece:
        return connection.follows
    connection.send([piece])
    return False


def _buffers(
    connection: Connection,
    incoming: Incoming,
    started: tuple[str, list[Header]],
    body: Iterable[bytes],
) -> list[bytes]:
    """The first bytes of the answer. Further pieces become the stream of the connection."""
    status, headers = started
    if incoming.is_head or isinstance(body, list):
        first = _head(status, headers, *_framing(connection, incoming))
        return [first] if incoming.is_head else [first, *body]
    # A client of HTTP/1.0 knows no chunks: the end of the connection is the end of the answer.
    chunked = not incoming.is_old
    connection.keep_alive = connection.keep_alive and chunked
    connection.stream = _pieces(body, chunked=chunked)
    framing = (*_framing(connection, incoming), *([_CHUNKED] if chunked else []))
    return [_head(status, headers, *framing)]


def _framing(connection: Connection, incoming: Incoming) -> tuple[str, ...]:
    if not connection.keep_alive:
        return (_CLOSE,)
    return (_KEEP_ALIVE,) if incoming.is_old else ()


def _pieces(body: Iterable[bytes], *, chunked: bool) -> Generator[bytes]:
    try:
        for data in body:
            yield b"%x\r\n%b\r\n" % (len(data), data) if chunked and data else data
        if chunked:
            yield _END_OF_CHUNKS
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()


def _head(status: str, headers: Sequence[Header], *framing: str) -> bytes:
    """Status line and headers; `framing` are those of the connection, such as `_CLOSE`."""
    # An answer without content has no length either.
    has_length = not status.startswith(_WITHOUT_LENGTH)
    lines = [f"HTTP/1.1 {status}"]
    for name, value in headers:
        if has_length or name != "content-length":
            lines.append(f"{name}: {value}")
    lines.append(f"date: {_date(int(time.time()))}")
    lines += framing
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1:
        raise ValueError("A header of the answer has a line feed in it.")
    return (text + "\r\n\r\n").encode("latin-1")


def refusal(status: HTTPStatus, text: str) -> bytes:
    """The whole answer to bytes that never become a request for the application."""
    error = {"status": status.value, "title": status.phrase, "detail": text}
    body = orjson.dumps({"errors": [error]})
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append(("retry-after", "1"))
    line = f"{status.value} {status.phrase}"
    return _head(line, headers, _CLOSE) + body


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
