"""Pages of a list under `/roost/`: `page_limit` and an opaque `marker`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from roost.api.extensions.parameters import Parameters, bad_parameter

T = TypeVar("T")

PAGE_PARAMETERS = ("page_limit", "marker")
_LENGTH_DEFAULT = 1000
_LENGTH_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some members of a list, and the marker of the next page; `None` after the last one."""

    members: Sequence[T]
    next: str | None


def cut_page(parameters: Parameters, members: Sequence[T], keys: Sequence[str]) -> Page[T]:
    """The page that the client asks for. `keys` has the key of each member, in ascending order.

    A marker is the key of the last member sent, so members that come and go move no page.
    """
    length = parameters.integer("page_limit", _LENGTH_DEFAULT, least=1, most=_LENGTH_MAX)
    begin = _begin(parameters.own.get("marker"), keys)
    end = begin + length
    more = end < len(members)
    return Page(members[begin:end], _encoded(keys[end - 1]) if more else None)


def _begin(marker: str | None, keys: Sequence[str]) -> int:
    if marker is None:
        return 0
    last = _decoded(marker)
    return next((position for position, key in enumerate(keys) if key > last), len(keys))


def _encoded(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decoded(marker: str) -> str:
    try:
        padded = marker + "=" * (-len(marker) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise bad_parameter("marker is none of ours. Send `next` of an earlier answer.") from None
