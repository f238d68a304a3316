"""Gaps: ids that are missing below the highest id that a reader has seen.

A missing id may still appear, or never.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# One more range costs a database as much as counting about this many rows.
NEAR = 32
# With many more ranges, a statement takes longer to parse than to execute.
WINDOWS_MAX = 200

RUN_LENGTH = 64
_FULL = (1 << RUN_LENGTH) - 1


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of missing ids, both ends included, and when the reader noted it."""

    first: int
    last: int
    noted: float


# Ascending, without overlap.
Gaps: TypeAlias = tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """Ranges of ids that cover all gaps, and how many ids in them are not missing."""

    ranges: tuple[tuple[int, int], ...]
    known: int


@dataclass(frozen=True, slots=True)
class IdRun:
    """Which of the ids from `index * RUN_LENGTH` on there are, lowest bit first."""

    index: int
    bits: int
    # The age of the youngest of their rows, in seconds.
    age: float


def gaps_after(last: int, ids: Iterable[int], noted: float) -> Iterator[Gap]:
    """The gaps between `last` and the ids, which ascend from there.

    >>> [(gap.first, gap.last) for gap in gaps_after(3, [4, 7, 8, 10], noted=0)]
    [(5, 6), (9, 9)]
    """
    for id_ in ids:
        if id_ > last + 1:
            yield Gap(last + 1, id_ - 1, noted)
        last = id_


def gaps_in_runs(after: int, runs: Iterable[IdRun], now: float) -> Iterator[Gap]:
    """The gaps between `after` and the highest id of ascending runs.

    A gap is as old as the rows after it.
    """
    last = after
    for run in runs:
        start = run.index * RUN_LENGTH
        if run.bits == _FULL and start == last + 1:
            last += RUN_LENGTH
            continue
        ids = [start + bit for bit in range(RUN_LENGTH) if run.bits >> bit & 1]
        yield from gaps_after(last, ids, now - run.age)
        last = ids[-1]


def is_missing(gaps: Gaps, id_: int) -> bool:
    """Whether an id lies in a gap."""
    following = bisect_right(gaps, id_, key=lambda gap: gap.first)
    return following > 0 and id_ <= gaps[following - 1].last


def without(gaps: Gaps, ids: Sequence[int]) -> Gaps:
    """The gaps that are left when these ids, which ascend, have appeared."""
    if not ids:
        return gaps
    left: list[Gap] = []
    for gap in gaps:
        found = ids[bisect_left(ids, gap.first) : bisect_right(ids, gap.last)]
        if found:
            left += gaps_after(gap.first - 1, (*found, gap.last + 1), gap.noted)
        else:
            left.append(gap)
    return tuple(left)


def windows(gaps: Gaps) -> Windows:
    """Few ranges that cover all gaps: gaps near to each other share a range."""
    ranges = [(gap.first, gap.last) for gap in gaps]
    near = NEAR
    while True:
        ranges = list(_joined(ranges, near))
        if len(ranges) <= WINDOWS_MAX:
            break
        near *= 4
    covered = sum(last - first + 1 for first, last in ranges)
    missing = sum(gap.last - gap.first + 1 for gap in gaps)
    return Windows(tuple(ranges), covered - missing)


def _joined(ranges: Iterable[tuple[int, int]], near: int) -> Iterator[tuple[int, int]]:
    first, last = None, 0
    for next_first, next_last in ranges:
        if first is None:
            first = next_first
        elif next_first - last > near:
            yield first, last
            first = next_first
        last = next_last
    if first is not None:
        yield first, last
