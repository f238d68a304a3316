"""Pages of a list under `/roost/`: `page_limit` and an opaque `marker`."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from roost.api.extensions.parameters import NUMBER, Parameters
from roost.api.http.errors import HttpError, bad_value
from roost.api.http.json_schemas import STRING, or_null
from roost.api.routing import RequestParameter

T = TypeVar("T")

_LENGTH_DEFAULT = 1000
_LENGTH_MAX = 10_000
_SHOWN_AT_ONCE = 250
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)

PAGE_PARAMETERS = (
    RequestParameter(
        "page_limit", f"How many entries a page has, at most {_LENGTH_MAX}.", "1000", NUMBER
    ),
    RequestParameter("marker", "`next` of the page before.", "YQ"),
)
NEXT = or_null(STRING, "The `marker` of the next page; null after the last one.")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some members of a list, and the marker of the next page; `None` after the last one."""

    members: Sequence[T]
    next: str | None

    def json(self, show: Callable[[T], Any], pause: Callable[[], None]) -> orjson.Fragment:
        """The members in JSON, as `show` gives them, with pauses.

        Only some of these objects exist at once: Python looks for garbage among all objects, and
        all threads wait meanwhile.
        """
        texts: list[bytes] = []
        for start in range(0, len(self.members), _SHOWN_AT_ONCE):
            members = self.members[start : start + _SHOWN_AT_ONCE]
            texts.append(orjson.dumps([show(member) for member in members])[1:-1])
            pause()
        return orjson.Fragment(b"[%b]" % b",".join(texts))


@dataclass(frozen=True, slots=True)
class AskedPage:
    """The page that a client asks for: its length, and the key after which it begins."""

    length: int
    after: str | None

    def cut(self, members: Sequence[T], key: Callable[[T], str]) -> Page[T]:
        """The page of these members, which are in the order of their keys.

        A marker is the key of the last member sent, so members that come and go move no page.
        """
        begin = 0 if self.after is None else bisect_right(members, self.after, key=key)
        end = begin + self.length
        more = end < len(members)
        return Page(members[begin:end], _encoded(key(members[end - 1])) if more else None)

    def read(self, found: Sequence[T], key: Callable[[T], str]) -> Page[T]:
        """The page of members that were read after the marker, one more than its length."""
        members = found[: self.length]
        more = len(found) > self.length
        return Page(members, _encoded(key(members[-1])) if more else None)

    def number(self) -> tuple[int, str] | None:
        """The number that a marker begins with, and the rest of it; `None` without a marker."""
        if self.after is None:
            return None
        number, _, rest = self.after.partition(".")
        if _NUMBER.fullmatch(number) is None:
            raise _bad_marker()
        return int(number), rest


def parse_page(parameters: Parameters) -> AskedPage:
    """The page in the parameters; 400 if its length or its marker is bad."""
    length = parameters.integer("page_limit", _LENGTH_DEFAULT, least=1, most=_LENGTH_MAX)
    marker = parameters.own.get("marker")
    return AskedPage(length, None if marker is None else _decoded(marker))


def _encoded(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decoded(marker: str) -> str:
    try:
        padded = marker + "=" * (-len(marker) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _bad_marker() from None


def _bad_marker() -> HttpError:
    return bad_value("marker is not from an answer of this server. Send its `next`.")
