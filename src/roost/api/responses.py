"""Responses: status, headers, body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import orjson

from roost.api.requests import Request


@dataclass(slots=True)
class Response:
    """An answer; the application adds the headers that every answer has."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    # A body that is too large to be held: it is sent piece by piece, and its length is not told.
    stream: Iterator[bytes] | None = None


def json_response(content: Any, status: int = 200) -> Response:
    """An answer with a JSON body."""
    return Response(status, orjson.dumps(content), [("content-type", "application/json")])


def streamed_response(stream: Iterator[bytes]) -> Response:
    """An answer with a JSON body that is sent piece by piece."""
    return Response(200, headers=[("content-type", "application/json")], stream=stream)


def streamed_members(opening: bytes, pieces: Iterable[bytes], closing: bytes) -> Iterator[bytes]:
    """A list or object in JSON, of pieces that hold some members each.

    >>> list(streamed_members(b"[", [b"1,2", b"3"], b"]"))
    [b'[1,2', b',3', b']']
    """
    start = opening
    for piece in pieces:
        yield start + piece
        start = b","
    yield closing if start == b"," else opening + closing


def no_content() -> Response:
    """Done, and nothing to say."""
    return Response(204)


def with_location(response: Response, request: Request, path: str) -> Response:
    """Add where the thing that was made can be found."""
    response.headers.append(("location", request.location(path)))
    return response


def with_cache_headers(
    response: Response, request: Request, modified_at: datetime | None
) -> Response:
    """Add what clients may cache, from 1.15 on; without a time only that they may not."""
    if request.at_least(1, 15):
        if modified_at is not None:
            response.headers.append(("last-modified", http_date(modified_at)))
        response.headers.append(("cache-control", "no-cache"))
    return response


def newest(times: Iterable[datetime | None]) -> datetime | None:
    """The latest of the times, if there is any."""
    return max((time for time in times if time is not None), default=None)


def now() -> datetime:
    """The present moment, for what has no time of its own."""
    return datetime.now(UTC)


def http_date(moment: datetime) -> str:
    """A time as headers spell it; times without zone are UTC.

    >>> http_date(datetime(2026, 11, 15, 12, 0))
    'Sun, 15 Nov 2026 12:00:00 GMT'
    """
    return format_datetime(moment.replace(tzinfo=UTC), usegmt=True)
