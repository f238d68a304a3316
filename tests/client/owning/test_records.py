"""What an owner remembers survives its end, and never half of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from roost.client.errors import NotConfigured
from roost.client.owning.ownership import Owned
from roost.client.owning.records import FileRecords, MemoryRecords, Records, default_directory
from support.owning import NOTHING, created, mine, owning

ROOT = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
OTHER = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
RACK = "11111111-1111-4111-8111-111111111111"

OWNED = owning(
    created("host", inventories={"VCPU": ("total", "reserved")}, aggregates=(RACK,)),
    mine("nüma 0", traits=("CUSTOM_A", "CUSTOM_B")),
)
LESS = owning(created("host"))


@pytest.fixture(params=["file", "memory"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Records:
    return FileRecords("agent", tmp_path) if request.param == "file" else MemoryRecords()


# -- what all records do


def test_nothing_is_remembered_at_first(records: Records) -> None:
    assert records.load(ROOT) is None
    assert records.trees() == []


def test_what_is_saved_is_loaded_tree_by_tree(records: Records) -> None:
    records.save(ROOT, OWNED)
    records.save(OTHER, LESS)
    assert (records.load(ROOT), records.load(OTHER)) == (OWNED, LESS)
    assert records.trees() == [ROOT, OTHER]


def test_what_is_saved_last_counts(records: Records) -> None:
    records.save(ROOT, OWNED)
    records.save(ROOT, LESS)
    assert records.load(ROOT) == LESS


def test_who_owns_nothing_remembers_nothing(records: Records) -> None:
    records.save(ROOT, OWNED)
    records.save(ROOT, NOTHING)
    assert records.load(ROOT) is None
    assert records.trees() == []
    records.save(OTHER, NOTHING)
    assert records.trees() == []


# -- files


def test_files_are_read_by_the_next_process(tmp_path: Path) -> None:
    FileRecords("agent", tmp_path).save(ROOT, OWNED)
    again = FileRecords("agent", tmp_path)
    assert again.load(ROOT) == OWNED
    assert again.trees() == [ROOT]


def test_each_owner_has_records_of_its_own(tmp_path: Path) -> None:
    FileRecords("agent", tmp_path).save(ROOT, OWNED)
    FileRecords("other", tmp_path).save(ROOT, LESS)
    assert FileRecords("agent", tmp_path).load(ROOT) == OWNED
    assert FileRecords("third", tmp_path).load(ROOT) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'"providers"',
        b"{}",
        b'{"providers": []}',
        b'{"providers": {"u": null}}',
        b'{"providers": {"u": {"name": "host"}}}',
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    records = FileRecords("agent", tmp_path)
    records.save(ROOT, OWNED)
    (file,) = (tmp_path / "agent").iterdir()
    file.write_bytes(content)
    with pytest.raises(NotConfigured, match=r"is damaged .* Delete it") as caught:
        records.load(ROOT)
    assert str(file) in caught.value.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("created", "no"),
        ("inventories", ["VCPU"]),
        ("inventories", {"VCPU": "total"}),
        ("traits", "CUSTOM_A"),
        ("aggregates", {"rack": 1}),
    ],
)
def test_a_file_with_other_things_in_it_is_damaged(tmp_path: Path, field: str, value: Any) -> None:
    records = FileRecords("agent", tmp_path)
    records.save(ROOT, LESS)
    (file,) = (tmp_path / "agent").iterdir()
    body = json.loads(file.read_bytes())
    for provider in body["providers"].values():
        provider[field] = value
    file.write_text(json.dumps(body))
    with pytest.raises(NotConfigured, match="is damaged"):
        records.load(ROOT)


@pytest.mark.parametrize("call", [os.fsync, os.replace])
def test_who_dies_while_saving_remembers_what_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    """Before the new file is whole, and before it takes the place of the old."""
    records = FileRecords("agent", tmp_path)
    records.save(ROOT, OWNED)

    def die(*arguments: Any, **options: Any) -> None:
        raise PowerLost

    monkeypatch.setattr(os, call.__name__, die)
    with pytest.raises(PowerLost):
        records.save(ROOT, LESS)
    monkeypatch.undo()
    again = FileRecords("agent", tmp_path)
    assert again.load(ROOT) == OWNED
    assert again.trees() == [ROOT]
    again.save(ROOT, LESS)
    assert again.load(ROOT) == LESS


class PowerLost(BaseException):
    """Nothing that anybody catches."""


# -- places


def test_a_directory_that_is_a_file_is_named_before_anything_is_reported(tmp_path: Path) -> None:
    place = tmp_path / "records"
    place.write_text("")
    records = FileRecords("agent", place)
    with pytest.raises(NotConfigured, match=f"Cannot remember what is owned in {place}/agent"):
        records.prepare()
    with pytest.raises(NotConfigured, match=f"Cannot remember what is owned in {place}/agent"):
        records.save(ROOT, OWNED)
    with pytest.raises(NotConfigured, match=f"Cannot read {place}/agent"):
        records.load(ROOT)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(NotConfigured, match="No space left on device"):
        FileRecords("agent", tmp_path).save(ROOT, OWNED)


def test_preparing_makes_the_directory_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    records = FileRecords("agent", tmp_path / "new" / "place")
    records.prepare()
    assert list((tmp_path / "new" / "place" / "agent").iterdir()) == []
    assert records.trees() == []


def test_looking_makes_no_directory(tmp_path: Path) -> None:
    records = FileRecords("agent", tmp_path / "new")
    assert (records.load(ROOT), records.trees()) == (None, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "owner",
    [
        "",
        ".",
        "..",
        "../agent",
        "a/b",
        "/etc",
        "a\\b",
        "-agent",
        ".hidden",
        "a b",
        "a\n",
        "ä",
        "a" * 101,
    ],
)
def test_an_owner_whose_name_is_no_name_of_a_directory_is_refused(
    tmp_path: Path, owner: str
) -> None:
    with pytest.raises(NotConfigured, match="cannot be an owner: use"):
        FileRecords(owner, tmp_path)


def test_a_service_remembers_in_its_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}/first:{tmp_path}/second")
    FileRecords("agent").save(ROOT, OWNED)
    assert FileRecords("agent", tmp_path / "first").load(ROOT) == OWNED


def test_a_user_remembers_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "roost" / "owners"
    monkeypatch.setenv("STATE_DIRECTORY", "")
    assert default_directory() == tmp_path / "roost" / "owners"


@pytest.mark.parametrize("uuid", ["../../evil", "", "host"])
def test_a_record_is_never_outside_its_directory(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(NotConfigured, match="which is none"):
        FileRecords("agent", tmp_path).save(uuid, Owned())


# -- what lies in the way


def test_a_link_that_lies_in_the_way_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    directory = tmp_path / "agent"
    directory.mkdir()
    for name in (f"{ROOT}.new", f"{ROOT}.json.new", f"{ROOT}.json"):
        (directory / name).symlink_to(precious)
    records = FileRecords("agent", tmp_path)
    records.prepare()
    records.save(ROOT, OWNED)
    assert records.load(ROOT) == OWNED
    assert precious.read_text() == "untouched"
    assert not (directory / f"{ROOT}.json").is_symlink()


def test_what_a_crash_left_behind_blocks_no_record(tmp_path: Path) -> None:
    directory = tmp_path / "agent"
    (directory / f"{ROOT}.new").mkdir(parents=True)
    (directory / f"{OTHER}.new").write_text("half of it")
    (directory / f"{OTHER}.new").chmod(0)
    records = FileRecords("agent", tmp_path)
    records.save(ROOT, OWNED)
    records.save(OTHER, LESS)
    assert records.trees() == [ROOT, OTHER]


def test_drafts_of_writers_that_ended_long_ago_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "agent"
    directory.mkdir()
    old, young = directory / f"{ROOT}-old.new", directory / f"{ROOT}-young.new"
    old.write_text("half")
    young.write_text("half")
    os.utime(old, (0, 0))
    FileRecords("agent", tmp_path).prepare()
    assert list(directory.iterdir()) == [young]


def test_records_are_for_their_owner_alone(tmp_path: Path) -> None:
    FileRecords("agent", tmp_path).save(ROOT, OWNED)
    (record,) = (tmp_path / "agent").iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
