"""Ownership records survive the end of a process, and are never half written."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from roost.client.errors import NotConfigured, RecordsInUse, RecordsUnavailable
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.store import (
    FileOwnershipStore,
    InMemoryOwnershipStore,
    OwnershipStore,
    default_directory,
)
from support.client.declarations import EMPTY, created, owned, record_of

ROOT = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
OTHER = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
RACK = "11111111-1111-4111-8111-111111111111"

OWNED = record_of(
    created("host", inventories={"VCPU": ("total", "reserved")}, aggregates=(RACK,)),
    owned("nüma 0", traits=("CUSTOM_A", "CUSTOM_B")),
)
LESS = record_of(created("host"))


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> OwnershipStore:
    return (
        FileOwnershipStore("agent", tmp_path)
        if request.param == "file"
        else InMemoryOwnershipStore()
    )


# -- all stores


def test_a_new_store_is_empty(store: OwnershipStore) -> None:
    assert store.load(ROOT) is None
    assert store.trees() == []


def test_each_tree_has_its_record(store: OwnershipStore) -> None:
    store.save(ROOT, OWNED)
    store.save(OTHER, LESS)
    assert (store.load(ROOT), store.load(OTHER)) == (OWNED, LESS)
    assert store.trees() == [ROOT, OTHER]


def test_a_record_replaces_the_one_before(store: OwnershipStore) -> None:
    store.save(ROOT, OWNED)
    store.save(ROOT, LESS)
    assert store.load(ROOT) == LESS


def test_an_empty_record_is_removed(store: OwnershipStore) -> None:
    store.save(ROOT, OWNED)
    store.save(ROOT, EMPTY)
    assert store.load(ROOT) is None
    assert store.trees() == []
    store.save(OTHER, EMPTY)
    assert store.trees() == []


def test_a_store_knows_the_trees_of_a_provider(store: OwnershipStore) -> None:
    """Before and after the first question, and while a provider is in two records."""
    (host,), (child,) = LESS.providers.keys(), OWNED.providers.keys() - LESS.providers.keys()
    store.save(ROOT, OWNED)
    assert (store.trees_with({host}), store.trees_with({child, RACK})) == ([ROOT], [ROOT])
    store.save(OTHER, LESS)
    assert (store.trees_with({host, child}), store.trees_with({child})) == ([ROOT, OTHER], [ROOT])
    store.save(ROOT, LESS)
    assert store.trees_with({child}) == []
    store.save(ROOT, EMPTY)
    assert store.trees_with({host}) == [OTHER]


# -- files


def test_a_new_store_reads_the_files_of_an_earlier_one(tmp_path: Path) -> None:
    FileOwnershipStore("agent", tmp_path).save(ROOT, OWNED)
    again = FileOwnershipStore("agent", tmp_path)
    assert again.load(ROOT) == OWNED
    assert again.trees() == [ROOT]


def test_each_owner_has_records_of_its_own(tmp_path: Path) -> None:
    FileOwnershipStore("agent", tmp_path).save(ROOT, OWNED)
    FileOwnershipStore("other", tmp_path).save(ROOT, LESS)
    assert FileOwnershipStore("agent", tmp_path).load(ROOT) == OWNED
    assert FileOwnershipStore("third", tmp_path).load(ROOT) is None


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
        *(
            b'{"providers": {"u": {"name": "host", "created": true, "inventories": {},'
            b' "traits": [], "aggregates": [], "absence": ' + absence + b"}}}"
            for absence in (
                b'{"reports": Infinity, "since": 1.0, "last": 1.0, "seconds": 0.0}',
                b'{"reports": 1, "since": NaN, "last": 1.0, "seconds": 0.0}',
            )
        ),
    ],
)
def test_the_error_for_a_damaged_file_names_it_and_says_what_to_do(
    tmp_path: Path, content: bytes
) -> None:
    store = FileOwnershipStore("agent", tmp_path)
    store.save(ROOT, OWNED)
    (file,) = (tmp_path / "agent").iterdir()
    file.write_bytes(content)
    with pytest.raises(NotConfigured, match=r"is damaged .* Delete the file") as caught:
        store.load(ROOT)
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
def test_a_file_with_values_of_other_types_is_damaged(
    tmp_path: Path, field: str, value: Any
) -> None:
    store = FileOwnershipStore("agent", tmp_path)
    store.save(ROOT, LESS)
    (file,) = (tmp_path / "agent").iterdir()
    body = json.loads(file.read_bytes())
    for provider in body["providers"].values():
        provider[field] = value
    file.write_text(json.dumps(body))
    with pytest.raises(NotConfigured, match="is damaged"):
        store.load(ROOT)


@pytest.mark.parametrize("call", [os.fsync, os.replace])
def test_a_process_that_dies_while_saving_leaves_the_earlier_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    """Before the draft is complete, and before the draft replaces the file."""
    store = FileOwnershipStore("agent", tmp_path)
    store.save(ROOT, OWNED)

    def die(*arguments: Any, **options: Any) -> None:
        raise PowerLost

    monkeypatch.setattr(os, call.__name__, die)
    with pytest.raises(PowerLost):
        store.save(ROOT, LESS)
    monkeypatch.undo()
    again = FileOwnershipStore("agent", tmp_path)
    assert again.load(ROOT) == OWNED
    assert again.trees() == [ROOT]
    again.save(ROOT, LESS)
    assert again.load(ROOT) == LESS


class PowerLost(BaseException):
    """An end of the process that no code catches."""


# -- directories


def test_the_errors_for_an_unusable_directory_name_it(tmp_path: Path) -> None:
    place = tmp_path / "records"
    place.write_text("")
    store = FileOwnershipStore("agent", place)
    with pytest.raises(NotConfigured, match=f"Cannot save ownership records in {place}/agent"):
        store.held().__enter__()
    with pytest.raises(NotConfigured, match=f"Cannot save the ownership record {place}/agent"):
        store.save(ROOT, OWNED)
    with pytest.raises(NotConfigured, match=f"Cannot read the ownership record {place}/agent"):
        store.load(ROOT)


def test_the_records_of_an_owner_are_held_by_one_process_which_the_second_one_names(
    tmp_path: Path,
) -> None:
    first, second = (FileOwnershipStore("agent", tmp_path) for _ in range(2))
    with first.held():
        with pytest.raises(RecordsInUse, match=rf"by process {os.getpid()} \(.*--owner"):
            second.held().__enter__()
        with FileOwnershipStore("other", tmp_path).held():
            pass
    with second.held():
        pass
    assert first.trees() == []


def test_the_error_for_a_full_disk_names_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RecordsUnavailable, match="No space left on device"):
        FileOwnershipStore("agent", tmp_path).save(ROOT, OWNED)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_records_are_held_though_the_disk_takes_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    opened = os.open

    def refuse(path: object, flags: int, *arguments: object, **options: object) -> int:
        if flags & os.O_CREAT:
            raise OSError(error, os.strerror(error))
        return opened(path, flags, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with FileOwnershipStore("agent", tmp_path).held():
        pass


def test_held_records_have_an_empty_directory_at_first(tmp_path: Path) -> None:
    store = FileOwnershipStore("agent", tmp_path / "new" / "place")
    with store.held():
        pass
    assert list((tmp_path / "new" / "place" / "agent").iterdir()) == []
    assert store.trees() == []


def test_load_creates_no_directory(tmp_path: Path) -> None:
    store = FileOwnershipStore("agent", tmp_path / "new")
    assert (store.load(ROOT), store.trees()) == (None, [])
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
def test_a_name_of_an_owner_that_is_no_directory_name_is_refused(
    tmp_path: Path, owner: str
) -> None:
    with pytest.raises(NotConfigured, match="cannot be an owner: use"):
        FileOwnershipStore(owner, tmp_path)


def test_a_service_stores_records_in_its_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}/first:{tmp_path}/second")
    FileOwnershipStore("agent").save(ROOT, OWNED)
    assert FileOwnershipStore("agent", tmp_path / "first").load(ROOT) == OWNED


def test_a_user_stores_records_in_the_state_directory_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "roost" / "owners"
    monkeypatch.setenv("STATE_DIRECTORY", "")
    assert default_directory() == tmp_path / "roost" / "owners"


@pytest.mark.parametrize("uuid", ["../../evil", "", "host"])
def test_a_root_uuid_that_is_a_path_is_refused(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(NotConfigured, match="which is no UUID"):
        FileOwnershipStore("agent", tmp_path).save(uuid, OwnershipRecord())


# -- files that are in the way


def test_a_link_in_the_place_of_a_record_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    directory = tmp_path / "agent"
    directory.mkdir()
    for name in (f"{ROOT}.new", f"{ROOT}.json.new", f"{ROOT}.json"):
        (directory / name).symlink_to(precious)
    store = FileOwnershipStore("agent", tmp_path)
    with store.held():
        store.save(ROOT, OWNED)
    assert store.load(ROOT) == OWNED
    assert precious.read_text() == "untouched"
    assert not (directory / f"{ROOT}.json").is_symlink()


def test_drafts_of_a_crashed_process_block_no_record(tmp_path: Path) -> None:
    directory = tmp_path / "agent"
    (directory / f"{ROOT}.new").mkdir(parents=True)
    (directory / f"{OTHER}.new").write_text("half a record")
    (directory / f"{OTHER}.new").chmod(0)
    store = FileOwnershipStore("agent", tmp_path)
    store.save(ROOT, OWNED)
    store.save(OTHER, LESS)
    assert store.trees() == [ROOT, OTHER]


def test_to_hold_records_removes_old_drafts(tmp_path: Path) -> None:
    directory = tmp_path / "agent"
    directory.mkdir()
    old, young = directory / f"{ROOT}-old.new", directory / f"{ROOT}-young.new"
    old.write_text("half")
    young.write_text("half")
    os.utime(old, (0, 0))
    with FileOwnershipStore("agent", tmp_path).held():
        pass
    assert list(directory.iterdir()) == [young]


def test_records_are_for_their_owner_alone(tmp_path: Path) -> None:
    FileOwnershipStore("agent", tmp_path).save(ROOT, OWNED)
    (file,) = (tmp_path / "agent").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
