"""A column of uuids finds each of its uuids, and no other text."""

from __future__ import annotations

import pytest

from roost.search.forest.uuid_column import UuidColumn

COUNTED_AT_THE_END = [b"c0ffee00-0000-4000-8000-%012d" % number for number in range(50)]
COUNTED_AT_THE_START = [b"%08d-0000-4000-8000-000000000000" % number for number in range(50)]
WITHOUT_DASHES = [b"c0ffee00000040008000%012d" % number for number in range(50)]


@pytest.mark.parametrize("uuids", [COUNTED_AT_THE_END, COUNTED_AT_THE_START, WITHOUT_DASHES])
def test_every_uuid_is_found_at_its_index(uuids: list[bytes]) -> None:
    column = UuidColumn(uuids)
    assert [column.find(uuid) for uuid in uuids] == list(range(len(uuids)))


def test_a_uuid_whose_ends_look_like_those_of_another_is_not_found() -> None:
    column = UuidColumn([b"c0ffee00-0000-4000-8000-0000c0ffee01"])
    assert column.find(b"c0ffee00-1111-4000-8000-0000c0ffee01") is None
    assert column.find(b"c0ffee01-0000-4000-8000-0000c0ffee00") is None


def test_a_text_that_covers_parts_of_two_uuids_is_not_found() -> None:
    column = UuidColumn(COUNTED_AT_THE_END)
    packed = b"".join(COUNTED_AT_THE_END)
    assert [column.find(packed[start : start + 36]) for start in range(1, 36)] == [None] * 35


def test_an_empty_column_has_no_uuid() -> None:
    assert UuidColumn([]).find(COUNTED_AT_THE_END[0]) is None
