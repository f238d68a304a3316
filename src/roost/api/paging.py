"""Lists that are too long to be held: read page by page, by ranges of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

# A list with more members is sent in pieces.
AT_ONCE_MAX = 4000
# A range is as wide as a page is long, and wider where few of its ids are in the list.
PAGE_LENGTH = 1000
_WIDENING_MAX = 8


def pages(
    read: Callable[[int, int], Sequence[T]], first_id: int, last_id: int
) -> Iterator[Sequence[T]]:
    """All members of a list with ids from `first_id` to `last_id`, some at a time.

    `read` finds those behind one id and up to another. Each page is read when it is asked for,
    so a slow client holds no connection. Ids never change: a member that exists all the time is
    in the list exactly once. A range has two ends because PostgreSQL, told to limit what lies
    behind one id, joins whole tables for each page.
    """
    after_id, width = first_id - 1, PAGE_LENGTH
    while after_id < last_id:
        page = read(after_id, after_id + width)
        if page:
            yield page
        after_id += width
        sparse = len(page) < PAGE_LENGTH // 2
        width = min(2 * width, _WIDENING_MAX * PAGE_LENGTH) if sparse else PAGE_LENGTH
