"""`roost owner` shows what the records of this machine claim."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from roost.client.ownership.record import Absence, OwnedProvider, OwnershipRecord
from roost.client.ownership.store import FileOwnershipStore
from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.stubs.placement_stub import closed_port_url

HOST = "5a1cbbc0-7f0e-4b6c-9a53-000000000001"
GPU = "5a1cbbc0-7f0e-4b6c-9a53-000000000002"
POOL = "5a1cbbc0-7f0e-4b6c-9a53-000000000003"
RACK = "5a1cbbc0-7f0e-4b6c-9a53-000000000009"


def save(state: Path, owner: str, root: str, **providers: OwnedProvider) -> None:
    record = OwnershipRecord({globals()[name]: owned for name, owned in providers.items()})
    FileOwnershipStore(owner, state).save(root, record)


@pytest.fixture
def rack(state: Path) -> Path:
    """The records of an owner with two trees, and of one that owns a trait."""
    host = OwnedProvider(
        *("host", True),
        {"VCPU": frozenset({"total", "reserved"})},
        frozenset({"CUSTOM_GOLD", "HW_CPU_X86_AVX"}),
    )
    gpu = OwnedProvider("host_gpu0", True, {"VGPU": frozenset({"total"})})
    save(state, "rack", HOST, HOST=host, GPU=gpu)
    save(state, "rack", POOL, POOL=OwnedProvider("pool", aggregates=frozenset({RACK})))
    save(state, "nova", HOST, GPU=OwnedProvider("host_gpu0", traits=frozenset({"CUSTOM_GOLD"})))
    for path in state.rglob("*.json"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return state


def listed(*arguments: str) -> list[dict[str, Any]]:
    outcome = roost("owner", "list", "--json", *arguments)
    assert outcome.status == 0, outcome.err
    found: list[dict[str, Any]] = outcome.json
    return found


# -- the list


def test_the_list_counts_what_each_owner_claims(rack: Path) -> None:
    nova, racks = listed()
    assert racks["written"].startswith("2023-11-1")
    assert {**racks, "written": None} == {
        "owner": "rack",
        "trees": 2,
        "created": 2,
        "inventories": 2,
        "traits": 2,
        "aggregates": 1,
        "missing": 0,
        "written": None,
        "process": None,
        "command": None,
        "servers": [],
    }
    assert (nova["owner"], nova["trees"], nova["created"], nova["traits"]) == ("nova", 1, 0, 1)
    assert listed("--records", str(rack)) == [nova, racks]


def test_the_list_has_all_forms(rack: Path) -> None:
    del rack
    table = roost("owner", "list")
    assert table.err == ""
    assert table.lines[0].split() == [
        *("OWNER", "TREES", "CREATED", "MISSING", "INVENTORIES", "TRAITS"),
        *("AGGREGATES", "WRITTEN", "PROCESS", "COMMAND", "SERVERS"),
    ]
    assert table.lines[2].split()[:7] == ["rack", "2", "2", "0", "2", "2", "1"]
    as_csv = list(csv.DictReader(io.StringIO(roost("owner", "list", "-o", "csv").out)))
    assert [(row["owner"], row["trees"]) for row in as_csv] == [("nova", "1"), ("rack", "2")]
    assert yaml.safe_load(roost("owner", "list", "-o", "yaml").out) == listed()


def test_the_process_that_holds_the_records_is_named(rack: Path) -> None:
    with FileOwnershipStore("rack", rack).held():
        _, held = listed()
        shown = roost("owner", "show", "rack")
    assert held["process"] == os.getpid()
    assert "pytest" in held["command"] or "python" in held["command"]
    assert f"in use by  process {os.getpid()} (" in shown.out
    assert listed()[1]["process"] is None


def test_the_number_of_a_process_that_crashed_is_not_named(rack: Path) -> None:
    (rack / "rack.lock").write_text(f"{os.getpid()}\n")
    assert listed()[1]["process"] is None


def test_an_owner_that_claims_nothing_is_left_out(state: Path) -> None:
    (state / "rack").mkdir(parents=True)
    (state / "not an owner").mkdir()
    assert listed() == []
    with FileOwnershipStore("rack", state).held():
        assert [owner["owner"] for owner in listed()] == ["rack"]


def test_no_records_at_all_are_explained(state: Path) -> None:
    outcome = roost("owner", "list")
    assert outcome.status == 0
    assert f"No owner has records in {state}." in outcome.err
    assert "/var/lib/roost-agent" in outcome.err
    assert listed() == []
    shown = roost("owner", "show", "rack")
    assert shown.status == 1
    assert f"No owner has records in {state}." in shown.err


# -- one owner


def test_an_owner_is_drawn_tree_by_tree(rack: Path) -> None:
    del rack
    drawn = roost("owner", "show", "rack")
    assert (drawn.status, drawn.err) == (0, "")
    assert drawn.lines[:2] == ["owner      rack", "trees      2"]
    assert drawn.lines[4:] == [
        "server     -",
        "",
        f"host  {HOST}  created",
        "VCPU (reserved, total)",
        "traits CUSTOM_GOLD, HW_CPU_X86_AVX",
        f"└── host_gpu0  {GPU}  created",
        "    VGPU (total)",
        "",
        f"pool  {POOL}",
        f"aggregate {RACK}",
    ]
    assert roost("owner", "show", "nova").lines[6:] == [
        f"tree of {HOST}, nothing claimed of its root",
        f"└── host_gpu0  {GPU}",
        "    trait CUSTOM_GOLD",
    ]


def test_programs_get_all_claims_of_an_owner(rack: Path) -> None:
    del rack
    value = roost("owner", "show", "rack", "--json").json
    assert (value["owner"], value["process"]) == ("rack", None)
    first, second = value["trees"]
    assert (first["root"], second["root"]) == (HOST, POOL)
    assert first["providers"][0] == {
        "name": "host",
        "uuid": HOST,
        "created": True,
        "inventories": {"VCPU": ["reserved", "total"]},
        "traits": ["CUSTOM_GOLD", "HW_CPU_X86_AVX"],
        "aggregates": [],
        "missing": None,
    }
    rows = list(csv.DictReader(io.StringIO(roost("owner", "show", "rack", "-o", "csv").out)))
    assert [(row["provider"], row["resource_class"], row["fields"]) for row in rows] == [
        ("host", "VCPU", "reserved total"),
        ("host_gpu0", "VGPU", "total"),
        ("pool", "", ""),
    ]


def test_a_provider_that_its_driver_no_longer_finds_is_told(
    rack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del rack
    missing = OwnedProvider("host_gpu0", True, absence=Absence(2, 1_700_000_000, 1_700_000_060))
    record = OwnershipRecord({HOST: OwnedProvider("host", True), GPU: missing})
    monkeypatch.setattr(FileOwnershipStore, "load", lambda self, root_uuid: record)
    assert [owner["missing"] for owner in listed()] == [1, 2]
    drawn = roost("owner", "show", "nova").lines
    assert drawn[7] == f"└── host_gpu0  {GPU}  created"
    assert re.fullmatch(r"    missing since 2023-11-1\d \d\d:\d\d:20, in 2 reports", drawn[8])
    (tree,) = roost("owner", "show", "nova", "--json").json["trees"]
    assert tree["providers"][1]["missing"]["reports"] == 2
    assert tree["providers"][1]["missing"]["since"].startswith("2023-11-1")


def test_an_owner_has_several_spellings_and_an_empty_record_is_no_error(rack: Path) -> None:
    (rack / "rack" / f"{uuid4()}.json").write_text('{"providers": {}}')
    shown = roost("owner", "show", "RACK", "--json")
    assert (shown.status, shown.json["owner"]) == (0, "rack")


def test_an_unknown_owner_gets_the_names_near_it(rack: Path) -> None:
    outcome = roost("owner", "show", "rak")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.splitlines() == [
        f"roost: No owner rak has records in {rack}. Near it: rack.",
        "Next: roost owner list",
    ]


# -- what cannot be read


@pytest.mark.parametrize("command", [["list"], ["show", "rack"]], ids=" ".join)
def test_a_damaged_record_is_named_and_the_rest_is_shown(rack: Path, command: list[str]) -> None:
    damaged = rack / "rack" / f"{POOL}.json"
    damaged.write_text("{")
    outcome = roost("owner", *command)
    assert outcome.status == 1
    assert "rack" in outcome.out
    assert f"The ownership record {damaged} is damaged" in outcome.err
    assert "Delete the file" in outcome.err


@pytest.mark.parametrize("command", [["list"], ["show", "rack"]], ids=" ".join)
def test_a_directory_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "file"))
    outcome = roost("owner", *command)
    assert (outcome.status, outcome.out) == (1, "")
    assert f"Cannot read the ownership records in {tmp_path / 'file'}" in outcome.err
    assert "--records" in outcome.err


# -- with a server


def test_check_tells_which_providers_the_server_does_not_have(
    live_providers: LiveProviders,
) -> None:
    tree = {
        "name": live_providers.name("host"),
        "children": [{"name": live_providers.name("gpu"), "inventories": {"VGPU": 1}}],
    }
    applied = roost(
        *("tree", "apply", "-f", "-", "--owner", "rack"), stdin=json.dumps({"providers": [tree]})
    )
    assert applied.status == 0
    assert listed("--check")[0]["gone"] == 0
    assert roost("owner", "show", "rack", "--check").err == ""

    (gpu,) = live_providers.send(
        "GET", f"/resource_providers?name={live_providers.name('gpu')}"
    ).json["resource_providers"]
    live_providers.send("DELETE", f"/resource_providers/{gpu['uuid']}")
    assert listed("--check")[0]["gone"] == 1
    shown = roost("owner", "show", "rack", "--check")
    assert shown.status == 0
    assert (
        f"└── {live_providers.name('gpu')}  {gpu['uuid']}  created  not on the server" in shown.out
    )
    assert "Not on the server: 1 provider of the records" in shown.err
    as_json = roost("owner", "show", "rack", "--check", "--json").json
    assert [provider["gone"] for provider in as_json["trees"][0]["providers"]] == [False, True]


def test_only_check_needs_a_server(rack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del rack
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        assert roost("owner", "list").status == 0
        assert roost("owner", "show", "rack").status == 0
        refused: Outcome = roost("owner", "show", "rack", "--check")
    assert (refused.status, refused.out) == (1, "")
    assert "no connection" in refused.err


def test_names_in_records_are_printed_harmlessly(state: Path) -> None:
    save(state, "rack", HOST, HOST=OwnedProvider("host\x1b[1m\n", True))
    outcome = roost("owner", "show", "rack")
    assert r"host\x1b[1m\n" in outcome.out
    assert "\x1b" not in outcome.out
