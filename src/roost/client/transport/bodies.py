"""The body of an answer, read up to a bound of bytes and seconds.

A server that never ends its answer would take all memory of the client, or hold it for ever.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any

from urllib3.response import BaseHTTPResponse

from roost.client.errors import AnswerRefused

ANSWER_BYTES = 512 * 2**20
"""How large an answer may be. 100,000 candidates with their summaries have 20 to 300 MiB."""
ANSWER_SECONDS = 600.0
"""How long an answer may take, from the end of the request to its own end."""
_PART_BYTES = 2**18


def answer_seconds(read_seconds: float) -> float:
    """How long an answer may take, if the client waits so long for its next bytes."""
    return max(ANSWER_SECONDS, read_seconds)


def read_body(answer: BaseHTTPResponse, server: object, until: float) -> bytes:
    """The body of an answer of this server.

    `AnswerRefused` if the body is too large, does not end until this time of the clock, or has an
    encoding: the client asks for none. Errors of urllib3 pass.
    """
    try:
        return _read(answer, server, until)
    except BaseException:
        # The rest of the body is still under way, so nothing else can use the connection.
        answer.close()
        raise


def _read(answer: BaseHTTPResponse, server: object, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    if (getattr(answer, "length_remaining", None) or 0) > ANSWER_BYTES:
        raise _too_large(server)
    # `read1` returns what has come, and does not wait until there is as much.
    while part := answer.read1(_PART_BYTES, decode_content=False):
        if not parts:
            _check_encoding(answer, server)
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES:
            raise _too_large(server)
        if time.monotonic() >= until:
            raise AnswerRefused(f"the answer of {server} does not end; is the address right?")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_encoding(answer: BaseHTTPResponse, server: object) -> None:
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise AnswerRefused(
            f"the answer of {server} has the encoding {encoding[:40]!r}, which the client did not "
            "ask for; is there a proxy that compresses answers?"
        )


def _too_large(server: object) -> AnswerRefused:
    return AnswerRefused(
        f"the answer of {server} is larger than {ANSWER_BYTES // 2**20} MiB; ask for less at a time"
    )


class BoundedResponse(HTTPResponse):
    """A response whose bytes, those of its headers included, all come before a deadline."""

    def __init__(self, sock: socket.socket, *arguments: Any, seconds: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        raw = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_UntilDeadline(raw, time.monotonic() + seconds))


class _UntilDeadline(io.RawIOBase):
    """A file that ends with `TimeoutError` at a deadline."""

    def __init__(self, raw: io.RawIOBase, until: float) -> None:
        self._raw = raw
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() >= self._until:
            raise TimeoutError("the answer does not end")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
