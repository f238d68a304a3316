"""One exchange: the application answers a request, and the connection sends the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from http import HTTPStatus
from typing import Any, TypeAlias

from roost.server.connection import Connection
from roost.server.incoming import Environ, Incoming
from roost.server.outgoing import (
    CHUNKED,
    CLOSE,
    END_OF_CHUNKS,
    KEEP_ALIVE,
    Header,
    chunk,
    head,
    refusal,
)

_LOG = logging.getLogger(__name__)

WsgiApplication: TypeAlias = Callable[
    [Environ, Callable[[str, list[Header]], Any]], Iterable[bytes]
]


class CutOff(Exception):
    """The application failed in the middle of an answer, and logged the reason."""


def answer(
    connection: Connection, application: WsgiApplication, is_stopping: Callable[[], bool]
) -> None:
    """Ask the application about the next request, and send as much as the client takes."""
    incoming = connection.requests.popleft()
    started: list[tuple[str, list[Header]]] = []
    try:
        body = application(
            incoming.environ(connection.environ),
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


def send_piece(connection: Connection) -> None:
    """Send the next piece of an answer of unknown length, or its end."""
    stream = connection.stream
    assert stream is not None
    try:
        piece = next(stream, None)
    except Exception as error:
        raise CutOff from error
    if piece is None:
        connection.stream = None
        return
    connection.send([piece])


def _buffers(
    connection: Connection,
    incoming: Incoming,
    started: tuple[str, list[Header]],
    body: Iterable[bytes],
) -> list[bytes]:
    """The first bytes of the answer. Further pieces become the stream of the connection."""
    status, headers = started
    if incoming.is_head or isinstance(body, list):
        first = head(status, headers, *_framing(connection, incoming))
        return [first] if incoming.is_head else [first, *body]
    # A client of HTTP/1.0 knows no chunks: the end of the connection is the end of the answer.
    chunked = not incoming.is_old
    connection.keep_alive = connection.keep_alive and chunked
    connection.stream = _pieces(body, chunked=chunked)
    framing = (*_framing(connection, incoming), *([CHUNKED] if chunked else []))
    return [head(status, headers, *framing)]


def _framing(connection: Connection, incoming: Incoming) -> tuple[str, ...]:
    if not connection.keep_alive:
        return (CLOSE,)
    return (KEEP_ALIVE,) if incoming.is_old else ()


def _pieces(body: Iterable[bytes], *, chunked: bool) -> Generator[bytes]:
    try:
        for data in body:
            if data:
                yield b"".join(chunk(data)) if chunked else data
        if chunked:
            yield END_OF_CHUNKS
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()
