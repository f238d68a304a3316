"""The versions of a part of the document: from which one to which one a part holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from roost.api.http.json_schemas import ByVersion, Document
from roost.api.http.microversions import MAX_VERSION, MIN_VERSION, Microversion

T = TypeVar("T")

MARK = "x-openstack-microversions"


class Span(NamedTuple):
    """Versions without a gap."""

    first: Microversion = MIN_VERSION
    last: Microversion = MAX_VERSION

    def __str__(self) -> str:
        if self.last == MAX_VERSION:
            return f"From {self.first} on"
        return f"From {self.first} to {self.last}"

    def common(self, other: Span) -> Span | None:
        """The versions of both; `None` if there are none."""
        both = Span(max(self.first, other.first), min(self.last, other.last))
        return both if both.first <= both.last else None

    def mark(self) -> Document:
        """The extension that tells programs the versions. The newest one is no end."""
        bounds = {"min": str(self.first)}
        if self.last != MAX_VERSION:
            bounds["max"] = str(self.last)
        return {MARK: bounds}


ALL_VERSIONS = Span()


def spans_of(values: ByVersion[T], within: Span) -> Iterator[tuple[Span, T]]:
    """Each value with the versions for which it holds, as far as they are `within` others."""
    starts = [since for since, _ in values.entries]
    ends = [Microversion(major, minor - 1) for major, minor in starts[1:]]
    for (since, value), last in zip(values.entries, [*ends, MAX_VERSION], strict=True):
        common = Span(since, last).common(within)
        if common is not None:
            yield common, value
