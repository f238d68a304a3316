"""The bytes of answers: heads, chunks, and refusals of what is no request."""

from __future__ import annotations

import time
from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

import orjson

Header = tuple[str, str]

CLOSE = "connection: close"
# Only clients of HTTP/1.0 need it.
KEEP_ALIVE = "connection: keep-alive"
CHUNKED = "transfer-encoding: chunked"
END_OF_CHUNKS = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_WITHOUT_LENGTH = "204"


def head(status: str, headers: Sequence[Header], *framing: str) -> bytes:
    """Status line and headers; `framing` are those of the connection, such as `CLOSE`."""
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


def chunk(data: bytes) -> list[bytes]:
    """One piece of an answer without `Content-Length`."""
    return [b"%x\r\n" % len(data), data, b"\r\n"]


def refusal(status: HTTPStatus, text: str) -> bytes:
    """The whole answer to bytes that never become a request for the application."""
    error = {"status": status.value, "title": status.phrase, "detail": text}
    body = orjson.dumps({"errors": [error]})
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append(("retry-after", "1"))
    line = f"{status.value} {status.phrase}"
    return head(line, headers, CLOSE) + body


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
