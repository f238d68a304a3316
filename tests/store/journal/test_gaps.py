"""Gaps, compared with sets of ids."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.store.databases.mysql import journal as gaps_module
from roost.store.databases.mysql.journal import (
    RUN_LENGTH,
    Gap,
    Gaps,
    IdRun,
    gaps_after,
    gaps_in_runs,
    is_missing,
    windows,
    without,
)

# Few ids, so that some are next to each other, in several blocks.
IDS = st.frozensets(st.integers(1, 3 * RUN_LENGTH)).map(sorted)


def members(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {id_ for first, last in ranges for id_ in range(first, last + 1)}


def missing(gaps: Iterable[Gap]) -> set[int]:
    return members((gap.first, gap.last) for gap in gaps)


def assert_in_order(gaps: Gaps) -> None:
    """Each gap has at least one id, and between two gaps at least one id is not missing."""
    assert all(gap.first <= gap.last for gap in gaps)
    assert all(one.last + 1 < next_.first for one, next_ in pairwise(gaps))


@given(IDS, st.integers(0, 10))
def test_ids_between_two_ids_are_missing(ids: list[int], last: int) -> None:
    ids = [id_ for id_ in ids if id_ > last]
    gaps = tuple(gaps_after(last, ids, 1.0))
    assert missing(gaps) == set(range(last + 1, max(ids, default=last) + 1)) - set(ids)
    assert_in_order(gaps)


@given(IDS, IDS)
def test_ids_that_appear_are_no_longer_missing(ids: list[int], found: list[int]) -> None:
    gaps = tuple(gaps_after(0, ids, 1.0))
    left = without(gaps, found)
    assert missing(left) == missing(gaps) - set(found)
    assert_in_order(left)


@given(IDS)
def test_an_id_is_missing_if_a_gap_contains_it(ids: list[int]) -> None:
    gaps = tuple(gaps_after(0, ids, 1.0))
    everything = range(4 * RUN_LENGTH)
    assert {id_ for id_ in everything if is_missing(gaps, id_)} == missing(gaps)


@pytest.mark.parametrize(("near", "most"), [(1, 200), (4, 200), (1, 3)])
@given(ids=IDS)
def test_windows_cover_all_gaps_and_count_the_ids_between(
    ids: list[int], near: int, most: int
) -> None:
    gaps = tuple(gaps_after(0, ids, 1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps_module, "NEAR", near)
        patch.setattr(gaps_module, "WINDOWS_MAX", most)
        found = windows(gaps)
    covered = members(found.ranges)
    assert missing(gaps) <= covered
    assert len(covered & set(ids)) == found.known
    assert len(found.ranges) <= most
    assert sum(last - first + 1 for first, last in found.ranges) == len(covered)


def test_gaps_that_are_far_apart_share_no_range() -> None:
    gaps = (Gap(1, 2, 0), Gap(4, 4, 0), Gap(1000, 1000, 0))
    found = windows(gaps)
    assert found.ranges == ((1, 4), (1000, 1000))
    assert found.known == 1


@given(IDS, st.integers(0, 10))
def test_runs_have_the_same_gaps_as_their_ids(ids: list[int], after: int) -> None:
    ids = [id_ for id_ in ids if id_ > after]
    bits: dict[int, int] = {}
    for id_ in ids:
        index, bit = divmod(id_, RUN_LENGTH)
        bits[index] = bits.get(index, 0) | 1 << bit
    runs = [IdRun(index, bits[index], age=float(index)) for index in sorted(bits)]
    gaps = list(gaps_in_runs(after, runs, now=100.0))
    expected = list(gaps_after(after, ids, 0.0))
    assert [(gap.first, gap.last) for gap in gaps] == [(gap.first, gap.last) for gap in expected]
    assert all(gap.noted == 100.0 - (gap.last + 1) // RUN_LENGTH for gap in gaps)


def test_full_runs_have_no_gaps() -> None:
    full = (1 << RUN_LENGTH) - 1
    runs = [IdRun(1, full, 0.0), IdRun(2, full, 0.0), IdRun(4, full, 0.0)]
    gaps = list(gaps_in_runs(RUN_LENGTH - 1, runs, now=0.0))
    assert gaps == [Gap(3 * RUN_LENGTH, 4 * RUN_LENGTH - 1, 0.0)]
