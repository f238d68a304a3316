"""`roost tree apply` writes a file to the server, and `roost tree diff` compares them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.stubs.placement_stub import closed_port_url
from support.transports.tampering import one_server


def provider(live_providers: LiveProviders, short: str, **keys: Any) -> dict[str, Any]:
    """A provider of a tree file, with the name and uuid that it has on the server."""
    return {"name": live_providers.name(short), "uuid": live_providers.uuid(short), **keys}


def write(*providers: dict[str, Any], path: str = "rack.yaml", **keys: Any) -> None:
    """Write a tree file that names its owner, unless a test gives another `owner` or `None`."""
    given = {"owner": Path(path).stem, **keys}
    content = {name: value for name, value in given.items() if value is not None}
    Path(path).write_text(json.dumps({**content, "providers": providers}))


def apply(*arguments: str, path: str = "rack.yaml", stdin: str = "") -> Outcome:
    return roost("tree", "apply", "-f", path, *arguments, stdin=stdin)


def diff(*arguments: str, path: str = "rack.yaml", stdin: str = "") -> Outcome:
    return roost("tree", "diff", "-f", path, *arguments, stdin=stdin)


def records(state: Path) -> dict[str, str]:
    """The text of all records by path."""
    return {str(path): path.read_text() for path in state.rglob("*") if path.is_file()}


# -- applying


def test_apply_creates_changes_and_deletes_providers(live_providers: LiveProviders) -> None:
    host, gpu = live_providers.name("host"), live_providers.name("gpu")
    child = provider(live_providers, "gpu", inventories={"VGPU": 4}, traits=["CUSTOM_GOLD"])
    write(provider(live_providers, "host", inventories={"VCPU": 16}, children=[child]))
    created = apply()
    assert created.status == 0
    assert created.lines == [
        f"{host}: created",
        f"{gpu}: created below {host}",
        f"{host}: inventory VCPU added (total 16)",
        f"{host}: traits added: CUSTOM_ROOST_OWNER_RACK",
        f"{gpu}: inventory VGPU added (total 4)",
        f"{gpu}: traits added: CUSTOM_GOLD, CUSTOM_ROOST_OWNER_RACK",
    ]
    assert created.err == "6 changes made, as owner rack\n"
    assert live_providers.totals("gpu") == {"VGPU": 4}

    write(provider(live_providers, "host", inventories={"VCPU": {"total": 16, "reserved": 1}}))
    changed = apply()
    assert changed.lines == [f"{host}: inventory VCPU reserved 0 -> 1", f"{gpu}: deleted"]
    assert not live_providers.exists("gpu")

    again = apply()
    assert (again.status, again.out) == (0, "")
    assert again.err == "0 changes made, as owner rack\n"


def test_apply_keeps_what_other_writers_put_on_a_provider(live_providers: LiveProviders) -> None:
    live_providers.add(
        *("host",),
        totals={"MEMORY_MB": 1024},
        traits=["HW_CPU_X86_AVX2"],
        aggregates=["other"],
    )
    live_providers.add("child", "host", totals={"VGPU": 1})
    wanted = {
        "inventories": {"VCPU": 8},
        "traits": ["HW_CPU_X86_AVX"],
        "aggregates": [live_providers.uuid("mine")],
    }
    write(provider(live_providers, "host", **wanted))
    assert apply().status == 0
    assert live_providers.totals("host") == {"MEMORY_MB": 1024, "VCPU": 8}
    assert live_providers.traits("host") == {"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}
    assert live_providers.aggregates("host") == ["mine", "other"]

    write(provider(live_providers, "host"))
    assert apply().lines == [
        f"{live_providers.name('host')}: inventory VCPU removed",
        f"{live_providers.name('host')}: aggregates removed: {live_providers.uuid('mine')}",
        f"{live_providers.name('host')}: traits removed: HW_CPU_X86_AVX",
    ]
    assert live_providers.totals("host") == {"MEMORY_MB": 1024}
    assert live_providers.totals("child") == {"VGPU": 1}
    assert live_providers.aggregates("host") == ["other"]


@one_server
def test_two_owners_write_to_one_provider(live_providers: LiveProviders) -> None:
    write(provider(live_providers, "host", inventories={"VCPU": 8}), path="a.yaml")
    write(provider(live_providers, "host", traits=["HW_CPU_X86_AVX"]), path="b.yaml")
    for path in ("a.yaml", "b.yaml"):
        assert apply(path=path).status == 0
    write(provider(live_providers, "host"), path="b.yaml")
    removed = apply(path="b.yaml")
    assert removed.lines == [f"{live_providers.name('host')}: traits removed: HW_CPU_X86_AVX"]
    assert removed.err == "1 change made, as owner b\n"
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_adopt_removes_undeclared_inventories_of_declared_providers(
    live_providers: LiveProviders,
) -> None:
    live_providers.add("host", totals={"VCPU": 8, "PCPU": 4})
    live_providers.add("child", "host")
    write(provider(live_providers, "host", inventories={"VCPU": 8}))
    assert apply().out == ""
    assert apply("--adopt").lines == [f"{live_providers.name('host')}: inventory PCPU removed"]
    # A provider that the file does not declare is not adopted.
    assert live_providers.exists("child")


@one_server
def test_apply_keeps_an_inventory_in_use_and_reports_it(live_providers: LiveProviders) -> None:
    write(provider(live_providers, "host", inventories={"VCPU": 8}))
    apply()
    live_providers.claim("instance", host={"VCPU": 1})
    write(provider(live_providers, "host"))
    kept = apply()
    assert kept.status == 3
    assert kept.lines == [
        f"kept: {live_providers.name('host')}: inventory VCPU not removed, in use"
    ]
    assert "1 part of the declaration cannot be made true" in kept.err
    as_json = apply("--json")
    assert as_json.status == 3
    assert as_json.json["trees"][0]["kept"] == [
        f"{live_providers.name('host')}: inventory VCPU not removed, in use"
    ]
    # Comparing keeps its own statuses.
    for compared in (apply("--dry-run"), diff()):
        assert (compared.status, compared.lines) == (0, [f"would be {kept.lines[0]}"])
    live_providers.release("instance")
    assert apply().lines == [f"{live_providers.name('host')}: inventory VCPU removed"]


def test_names_may_be_in_any_language(live_providers: LiveProviders) -> None:
    name = f"Gehäuse 7 / 机架 & {live_providers.uuid('mark')} ?#%"
    write({"name": name, "uuid": live_providers.uuid("host"), "inventories": {"VCPU": 1}})
    assert apply().lines[0] == f"{name}: created"
    assert live_providers.provider("host")["name"] == name
    write({"name": name, "inventories": {"VCPU": 2}})
    assert apply().lines == [f"{name}: inventory VCPU total 1 -> 2"]
    assert roost("tree", "show", name).lines[0] == f"{name}  {live_providers.uuid('host')}"
    assert f"name: {name}\n" in roost("tree", "export", name).out


# -- comparing


@one_server
@pytest.mark.parametrize("command", [["apply", "--dry-run"], ["diff"]], ids=" ".join)
def test_comparing_writes_neither_to_the_server_nor_to_the_records(
    live_providers: LiveProviders, state: Path, command: list[str]
) -> None:
    write(provider(live_providers, "host", inventories={"VCPU": 8}))
    compared = roost("tree", *command, "-f", "rack.yaml")
    assert compared.lines == [
        f"{live_providers.name('host')}: would be created",
        f"{live_providers.name('host')}: inventory VCPU would be added (total 8)",
        f"{live_providers.name('host')}: traits would be added: CUSTOM_ROOST_OWNER_RACK",
    ]
    assert compared.err == "3 changes would be made, as owner rack\n"
    assert not live_providers.exists("host")
    assert not state.exists()

    live_providers.add("other", totals={"VCPU": 1})
    apply()
    before = records(state)
    write(
        provider(live_providers, "host", inventories={"PCPU": 8}), provider(live_providers, "other")
    )
    generations = [live_providers.generation(short) for short in ("host", "other")]
    assert len(roost("tree", *command, "-f", "rack.yaml", "--adopt").lines) == 3
    assert [live_providers.generation(short) for short in ("host", "other")] == generations
    assert records(state) == before


@one_server
def test_the_records_of_a_tree_that_is_not_on_the_server_stay(
    live_providers: LiveProviders, state: Path
) -> None:
    # The tree may be on another server that the same file is applied to.
    write(provider(live_providers, "host"))
    apply()
    before = records(state)
    live_providers.delete("host")
    write()
    for arguments in (["--dry-run"], [], ["--prune"]):
        outcome = apply(*arguments)
        assert (outcome.status, outcome.out) == (0, "")
        assert live_providers.name("host") not in outcome.err
    assert records(state) == before


def test_the_exit_status_of_diff_is_3_if_something_would_change(
    live_providers: LiveProviders,
) -> None:
    write(provider(live_providers, "host"))
    assert diff().status == 3
    apply()
    same = diff()
    assert (same.status, same.out) == (0, "")
    assert same.err == "0 changes would be made, as owner rack\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("-f rack.yaml", 1),
        ("-f missing.yaml", 1),
        ("-f bad.yaml", 1),
        ("-f rack.yaml --url nowhere", 1),
        ("-f rack.yaml --owner 'the rack'", 1),
        ("--fil rack.yaml", 2),
        ("", 2),
    ],
)
def test_the_exit_status_of_diff_tells_errors_from_wrong_usage(
    arguments: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("rack.yaml").write_text("providers: [{name: host}]")
    Path("bad.yaml").write_text("providers: {}")
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost("tree", "diff", *shlex.split(arguments))
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.err != ""


@one_server
def test_json_with_all_trees_is_the_only_output(live_providers: LiveProviders) -> None:
    write(provider(live_providers, "a", traits=["HW_CPU_X86_AVX"]), provider(live_providers, "b"))
    for command, dry_run in ((diff, True), (apply, False)):
        printed = command("--json").json
        assert (printed["owner"], printed["dry_run"]) == ("rack", dry_run)
        assert [tree["tree"] for tree in printed["trees"]] == [
            live_providers.name("a"),
            live_providers.name("b"),
        ]
        first = printed["trees"][0]
        assert [creation["uuid"] for creation in first["difference"]["creations"]] == [
            live_providers.uuid("a")
        ]
        (change, *_) = first["difference"]["changes"]
        assert change["after"] == ["CUSTOM_ROOST_OWNER_RACK", "HW_CPU_X86_AVX"]
        assert first["kept"] == []


# -- the owner


@one_server
@pytest.mark.parametrize(
    ("keys", "arguments", "owner"),
    [
        ({"owner": "file"}, [], "file"),
        ({"owner": "file"}, ["--owner", "option"], "option"),
        ({"owner": None}, ["--owner", "Option_1"], "option-1"),
    ],
)
def test_the_owner_is_the_option_or_the_key_of_the_file(
    live_providers: LiveProviders,
    state: Path,
    keys: dict[str, str],
    arguments: list[str],
    owner: str,
) -> None:
    write(provider(live_providers, "host"), **keys)
    outcome = apply(*arguments)
    assert outcome.err.endswith(f"as owner {owner}\n")
    assert (state / owner / f"{live_providers.uuid('host')}.json").exists()
    mark = f"CUSTOM_ROOST_OWNER_{owner.upper().replace('-', '_')}"
    assert live_providers.traits("host") == {mark}


def test_the_first_use_of_a_file_must_name_the_owner(
    live_providers: LiveProviders, state: Path
) -> None:
    write(provider(live_providers, "host"), owner=None)
    refused = apply()
    assert (refused.status, refused.out) == (1, "")
    assert "rack.yaml names no owner" in refused.err
    assert f"{state} has no records of an owner rack" in refused.err
    # Both ways to name it.
    assert "Add the line `owner: rack` to the file, or give --owner rack" in refused.err
    assert refused.err.endswith("Next: roost tree apply -f rack.yaml --owner rack\n")
    assert not live_providers.exists("host")
    assert not state.exists()


def test_a_file_that_was_used_before_goes_on_under_its_name(live_providers: LiveProviders) -> None:
    write(provider(live_providers, "host"), owner=None)
    assert apply("--owner", "rack").status == 0
    again = apply()
    assert again.status == 0
    note, result = again.err.splitlines()
    assert note.startswith("note: rack.yaml names no owner, and goes on as owner rack")
    assert result == "0 changes made, as owner rack"
    # A copy of the file is a file that was not used before.
    Path("copy.yaml").write_text(Path("rack.yaml").read_text())
    assert apply(path="copy.yaml").status == 1


@one_server
@pytest.mark.parametrize("command", [["apply", "--dry-run"], ["diff"]], ids=" ".join)
def test_comparing_a_file_without_owner_goes_on_with_a_note(
    live_providers: LiveProviders, command: list[str]
) -> None:
    write(provider(live_providers, "host"), owner=None)
    compared = roost("tree", *command, "-f", "rack.yaml")
    assert f"{live_providers.name('host')}: would be created" in compared.lines
    assert compared.status == (3 if command == ["diff"] else 0)
    assert compared.err.startswith("note: rack.yaml names no owner, and is compared as owner rack")
    assert "`owner: rack` in the file, or --owner rack" in compared.err


@one_server
def test_standard_input_needs_an_owner(live_providers: LiveProviders) -> None:
    text = json.dumps({"providers": [provider(live_providers, "host")]})
    refused = apply(path="-", stdin=text)
    assert refused.status == 1
    assert "Give --owner" in refused.err
    assert not live_providers.exists("host")
    assert apply("--owner", "me", path="-", stdin=text).status == 0
    assert live_providers.exists("host")


def test_an_error_about_a_file_name_that_is_no_owner_suggests_the_option() -> None:
    write(path="my rack.yaml", owner=None)
    refused = apply(path="my rack.yaml")
    assert refused.status == 1
    assert "'my rack' cannot be an owner" in refused.err
    assert "--owner" in refused.err


@one_server
def test_apply_writes_nothing_without_a_directory_for_the_records(
    live_providers: LiveProviders,
) -> None:
    Path("taken").write_text("a file instead of a directory")
    write(provider(live_providers, "host"))
    refused = apply("--records", "taken/records")
    assert refused.status == 1
    assert "taken/records" in refused.err
    assert "choose another directory with --records" in refused.err
    assert not live_providers.exists("host")
    # Comparing needs no records.
    assert diff("--records", "nowhere").status == 3
    assert not Path("nowhere").exists()


# -- files whose trees differ from those of the server


@one_server
def test_a_tree_that_a_file_no_longer_mentions_stays_until_prune(
    live_providers: LiveProviders,
) -> None:
    a, b, c = (provider(live_providers, short, inventories={"VCPU": 1}) for short in "abc")
    write(a, b, c)
    assert apply().status == 0
    assert [live_providers.exists(short) for short in "abc"] == [True] * 3

    write(a, c)
    without = apply()
    assert (without.status, without.out) == (0, "")
    assert live_providers.name("b") in without.err
    assert "--prune" in without.err
    assert live_providers.exists("b")

    assert diff("--prune").lines == [f"{live_providers.name('b')}: would be deleted"]
    assert apply("--prune").lines == [f"{live_providers.name('b')}: deleted"]
    assert [live_providers.exists(short) for short in "abc"] == [True, False, True]
    assert "--prune" not in apply().err


@one_server
def test_prune_removes_only_what_the_owner_declared(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    write(provider(live_providers, "host", traits=["HW_CPU_X86_AVX"]))
    apply()
    write()
    assert apply("--prune").lines == [
        f"{live_providers.name('host')}: traits removed: HW_CPU_X86_AVX"
    ]
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_prune_keeps_a_tree_that_was_moved_below_a_declared_provider(
    live_providers: LiveProviders,
) -> None:
    write(*(provider(live_providers, short, inventories={"VCPU": 1}) for short in "ab"))
    apply()
    body = {"name": live_providers.name("b"), "parent_provider_uuid": live_providers.uuid("a")}
    live_providers.send("PUT", live_providers.path("b"), body)
    assert apply("--prune").out == ""
    assert [live_providers.totals(short) for short in "ab"] == [{"VCPU": 1}] * 2


@one_server
def test_a_provider_without_declared_parent_may_be_in_the_middle_of_a_tree(
    live_providers: LiveProviders,
) -> None:
    live_providers.add("host")
    live_providers.add("numa", "host", totals={"VCPU": 8})
    child = provider(live_providers, "gpu", inventories={"VGPU": 1})
    write(provider(live_providers, "numa", traits=["CUSTOM_GOLD"], children=[child]))
    assert apply().lines == [
        f"{live_providers.name('gpu')}: created below {live_providers.name('numa')}",
        f"{live_providers.name('numa')}: traits added: CUSTOM_GOLD",
        f"{live_providers.name('gpu')}: inventory VGPU added (total 1)",
        f"{live_providers.name('gpu')}: traits added: CUSTOM_ROOST_OWNER_RACK",
    ]
    assert live_providers.provider("gpu")["root_provider_uuid"] == live_providers.uuid("host")
    assert diff().status == 0
    write(provider(live_providers, "numa"))
    assert apply().lines == [
        f"{live_providers.name('numa')}: traits removed: CUSTOM_GOLD",
        f"{live_providers.name('gpu')}: deleted",
    ]


def test_two_parts_of_one_tree_in_a_file_do_not_remove_each_other(
    live_providers: LiveProviders,
) -> None:
    live_providers.add("host")
    for short in ("numa0", "numa1"):
        live_providers.add(short, "host")
    first, second = (
        provider(
            *(live_providers, f"numa{number}"),
            inventories={"VCPU": 8},
            children=[provider(live_providers, f"gpu{number}", inventories={"VGPU": 1})],
        )
        for number in (0, 1)
    )
    # Without its uuid the second provider is found by its name.
    del second["uuid"]
    write(first, second)
    assert apply().status == 0
    assert diff().status == 0
    assert [live_providers.totals(f"gpu{number}") for number in (0, 1)] == [{"VGPU": 1}] * 2

    write(first)
    assert apply().lines == [
        f"{live_providers.name('numa1')}: inventory VCPU removed",
        f"{live_providers.name('gpu1')}: deleted",
    ]
    assert live_providers.totals("gpu0") == {"VGPU": 1}


@one_server
def test_a_sharing_provider_and_its_users_may_be_in_one_file(
    live_providers: LiveProviders, state: Path
) -> None:
    rack = [live_providers.uuid("rack")]
    pool = provider(
        *(live_providers, "pool"),
        inventories={"DISK_GB": 100},
        aggregates=rack,
        traits=["MISC_SHARES_VIA_AGGREGATE"],
    )
    write(provider(live_providers, "host", aggregates=rack), pool)
    assert apply().status == 0
    assert diff().status == 0
    # Without records, too, neither provider counts as undeclared.
    for path in records(state):
        Path(path).unlink()
    assert (diff().status, apply().out) == (0, "")


# -- files with problems


def test_the_error_lists_all_problems_of_a_file() -> None:
    # rich would replace `:100:` by an emoji.
    Path("rack.yaml").write_text(
        "providers:\n- name: no\n- name: host\n  trait: []\n" + "#\n" * 95 + "- name: [x]\n"
    )
    outcome = apply()
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("roost: ")
    lines = outcome.err.removeprefix("roost: ").splitlines()
    places = ["rack.yaml:2:9: `name`", "rack.yaml:4:3: unknown key", "rack.yaml:100:9: `name`"]
    assert [line.startswith(place) for line, place in zip(lines, places, strict=True)] == [True] * 3


@one_server
def test_a_provider_with_another_parent_than_declared_stays_and_is_reported(
    live_providers: LiveProviders,
) -> None:
    live_providers.add("host")
    live_providers.add("numa", "host")
    misplaced = provider(live_providers, "other", children=[provider(live_providers, "numa")])
    write(provider(live_providers, "host", children=[misplaced]))
    outcome = apply()
    assert outcome.status == 3
    assert (
        f"kept: {live_providers.name('numa')}: stays below {live_providers.name('host')}"
        in outcome.out
    )
    assert live_providers.provider("numa")["parent_provider_uuid"] == live_providers.uuid("host")


@one_server
def test_a_provider_with_another_name_than_declared_is_refused(
    live_providers: LiveProviders,
) -> None:
    live_providers.add("host")
    write(provider(live_providers, "host") | {"name": live_providers.name("renamed")})
    outcome = apply()
    assert (outcome.status, outcome.out) == (1, "")
    assert live_providers.name("host") in outcome.err
    assert live_providers.provider("host")["name"] == live_providers.name("host")


@one_server
def test_the_warnings_of_a_file_are_printed(live_providers: LiveProviders) -> None:
    write(provider(live_providers, "host", traits=["HW_CPU_OF_NEXT_YEAR"]))
    outcome = diff()
    assert outcome.status == 3
    assert outcome.err.startswith("warning: rack.yaml:1:")
    assert "`HW_CPU_OF_NEXT_YEAR` is not among the standard traits" in outcome.err
