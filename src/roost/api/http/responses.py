"""Responses: status, headers, body."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from roost.api.http.requests import Request

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    "", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


@dataclass(slots=True)
class Response:
    """An answer. The application adds the headers that every answer has."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    # The body in pieces, if it is too large for memory. Then the answer has no content-length.
    stream: Iterator[bytes] | None = None
    # Whether the pieces wait for what happens. Then the request counts as answered before them.
    waits: bool = False


def json_response(content: Any, status: int = 200) -> Response:
    """An answer with a JSON body."""
    return Response(status, json_bytes(content), [("content-type", "application/json")])


def json_bytes(content: Any) -> bytes:
    """JSON, also with integers beyond 64 bits: a query may ask for such an amount."""
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def tagged_response(request: Request, body: bytes, tag: str, media_type: str) -> Response:
    """An answer whose bytes have an ETag, or 304 if the client has these bytes."""
    headers = [("etag", tag), ("cache-control", "no-cache")]
    if _knows(request.header("if-none-match"), tag):
        return Response(304, headers=headers)
    return Response(200, body, [("content-type", media_type), *headers])


def _knows(header: str | None, tag: str) -> bool:
    """Whether the client has these bytes."""
    if header is None:
        return False
    tags = {entry.strip().removeprefix("W/") for entry in header.split(",")}
    return tag in tags or "*" in tags


def no_content() -> Response:
    """An answer without a body."""
    return Response(204)


def with_location(response: Response, request: Request, path: str) -> Response:
    """Add the `location` header of what the request has made."""
    response.headers.append(("location", request.location(path)))
    return response


def with_cache_headers(
    response: Response, request: Request, modified_at: datetime | None
) -> Response:
    """Add the headers for caches, from 1.15 on. `last-modified` needs a time."""
    if request.at_least(1, 15):
        if modified_at is not None:
            response.headers.append(("last-modified", http_date(modified_at)))
        response.headers.append(("cache-control", "no-cache"))
    return response


def cached_json(
    request: Request, content: Any, modified_at: datetime | None, status: int = 200
) -> Response:
    """An answer with a JSON body and the headers for caches."""
    return with_cache_headers(json_response(content, status), request, modified_at)


def newest(moments: Iterable[datetime | None]) -> datetime | None:
    """The latest of the times; `None` if there is none."""
    return max((moment for moment in moments if moment is not None), default=None)


def now() -> datetime:
    """The current second, for answers without a time of modification."""
    return _moment(int(time.time()))


@lru_cache(maxsize=2)
def _moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


# All answers of a second have the same date, and so have all that were written in one second.
@lru_cache(maxsize=1024)
def http_date(moment: datetime) -> str:
    """A time in the form of HTTP headers. A time without zone is in UTC.

    >>> http_date(datetime(2026, 11, 15, 12, 0))
    'Sun, 15 Nov 2026 12:00:00 GMT'
    """
    # The formatter of `email` takes twice as long.
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02d} {_MONTHS[moment.month]} {moment.year:04d} "
        f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d} GMT"
    )
