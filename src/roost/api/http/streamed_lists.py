"""Lists that are too long for memory: read page by page, and sent piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from roost.api.http.responses import Response

T = TypeVar("T")

# A list with more members is sent in pieces.
AT_ONCE_MAX = 4000
# How many ids a page covers. It covers more where few of the ids are in the list.
PAGE_LENGTH = 1000
_WIDENING_MAX = 8


def pages(
    read: Callable[[int, int], Sequence[T]], first_id: int, last_id: int
) -> Iterator[Sequence[T]]:
    """All members of a list with ids from `first_id` to `last_id`, some at a time.

    `read` finds the members above one id and up to another. A page is read when the server asks
    for it, so a slow client holds no connection to the database. Ids never change, so a member that
    exists all the time is in the list exactly once. A page has an upper end because PostgreSQL,
    with LIMIT in its place, joins whole tables for each page.
    """
    after_id, width = first_id - 1, PAGE_LENGTH
    while after_id < last_id:
        page = read(after_id, after_id + width)
        if page:
            yield page
        after_id += width
        sparse = len(page) < PAGE_LENGTH // 2
        width = min(2 * width, _WIDENING_MAX * PAGE_LENGTH) if sparse else PAGE_LENGTH


def streamed_response(stream: Iterator[bytes]) -> Response:
    """An answer with a JSON body that is sent piece by piece."""
    return Response(200, headers=[("content-type", "application/json")], stream=stream)


def streamed_members(opening: bytes, pieces: Iterable[bytes], closing: bytes) -> Iterator[bytes]:
    """A list or object in JSON, from pieces that hold some members each.

    >>> list(streamed_members(b"[", [b"1,2", b"3"], b"]"))
    [b'[1,2', b',3', b']']
    """
    start = opening
    for piece in pieces:
        yield start + piece
        start = b","
    yield closing if start == b"," else opening + closing
