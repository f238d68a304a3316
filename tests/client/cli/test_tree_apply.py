"""`roost tree apply` and `roost tree diff`: a file made true, or compared, and whose it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import Outcome, roost
from support.placement_stub import nobody
from support.remote_world import RemoteWorld
from support.tampering import one_server


def provider(world: RemoteWorld, short: str, **said: Any) -> dict[str, Any]:
    """A provider of a tree file, with the name and uuid that it has in this world."""
    return {"name": world.name(short), "uuid": world.uuid(short), **said}


def write(*providers: dict[str, Any], path: str = "rack.yaml", **said: Any) -> None:
    Path(path).write_text(json.dumps({**said, "providers": providers}))


def apply(*arguments: str, path: str = "rack.yaml", stdin: str = "") -> Outcome:
    return roost("tree", "apply", "-f", path, *arguments, stdin=stdin)


def diff(*arguments: str, path: str = "rack.yaml", stdin: str = "") -> Outcome:
    return roost("tree", "diff", "-f", path, *arguments, stdin=stdin)


def memory(state: Path) -> dict[str, str]:
    """All that is remembered, file by file."""
    return {str(path): path.read_text() for path in state.rglob("*") if path.is_file()}


# -- making it true


def test_a_file_is_created_changed_and_removed(world: RemoteWorld) -> None:
    host, gpu = world.name("host"), world.name("gpu")
    child = provider(world, "gpu", inventories={"VGPU": 4}, traits=["CUSTOM_GOLD"])
    write(provider(world, "host", inventories={"VCPU": 16}, children=[child]))
    created = apply()
    assert created.status == 0
    assert created.lines == [
        f"{host}: created",
        f"{gpu}: created below {host}",
        f"{host}: inventory VCPU added (total 16)",
        f"{host}: traits added: CUSTOM_OWNER_RACK",
        f"{gpu}: inventory VGPU added (total 4)",
        f"{gpu}: traits added: CUSTOM_GOLD, CUSTOM_OWNER_RACK",
    ]
    assert created.err == "6 changes made, as owner rack\n"
    assert world.totals("gpu") == {"VGPU": 4}

    write(provider(world, "host", inventories={"VCPU": {"total": 16, "reserved": 1}}))
    changed = apply()
    assert changed.lines == [f"{host}: inventory VCPU reserved 0 -> 1", f"{gpu}: deleted"]
    assert not world.exists("gpu")

    again = apply()
    assert (again.status, again.out) == (0, "")
    assert again.err == "0 changes made, as owner rack\n"


def test_what_others_have_put_there_is_left_alone(world: RemoteWorld) -> None:
    world.add(
        *("host",),
        totals={"MEMORY_MB": 1024},
        traits=["HW_CPU_X86_AVX2"],
        aggregates=["theirs"],
    )
    world.add("child", "host", totals={"VGPU": 1})
    wanted = {
        "inventories": {"VCPU": 8},
        "traits": ["HW_CPU_X86_AVX"],
        "aggregates": [world.uuid("mine")],
    }
    write(provider(world, "host", **wanted))
    assert apply().status == 0
    assert world.totals("host") == {"MEMORY_MB": 1024, "VCPU": 8}
    assert world.traits("host") == {"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}
    assert world.aggregates("host") == ["mine", "theirs"]

    write(provider(world, "host"))
    assert apply().lines == [
        f"{world.name('host')}: inventory VCPU removed",
        f"{world.name('host')}: aggregates removed: {world.uuid('mine')}",
        f"{world.name('host')}: traits removed: HW_CPU_X86_AVX",
    ]
    assert world.totals("host") == {"MEMORY_MB": 1024}
    assert world.totals("child") == {"VGPU": 1}
    assert world.aggregates("host") == ["theirs"]


@one_server
def test_two_owners_write_to_one_provider(world: RemoteWorld) -> None:
    write(provider(world, "host", inventories={"VCPU": 8}), path="a.yaml")
    write(provider(world, "host", traits=["HW_CPU_X86_AVX"]), path="b.yaml")
    for path in ("a.yaml", "b.yaml"):
        assert apply(path=path).status == 0
    write(provider(world, "host"), path="b.yaml")
    removed = apply(path="b.yaml")
    assert removed.lines == [f"{world.name('host')}: traits removed: HW_CPU_X86_AVX"]
    assert removed.err == "1 change made, as owner b\n"
    assert world.totals("host") == {"VCPU": 8}


@one_server
def test_adopt_takes_what_is_there_for_ones_own(world: RemoteWorld) -> None:
    world.add("host", totals={"VCPU": 8, "PCPU": 4})
    world.add("child", "host")
    write(provider(world, "host", inventories={"VCPU": 8}))
    assert apply().out == ""
    assert apply("--adopt").lines == [f"{world.name('host')}: inventory PCPU removed"]
    # What is not declared at all is not adopted.
    assert world.exists("child")


@one_server
def test_what_is_in_use_is_kept_and_said_to_be(world: RemoteWorld) -> None:
    write(provider(world, "host", inventories={"VCPU": 8}))
    apply()
    world.claim("instance", host={"VCPU": 1})
    write(provider(world, "host"))
    kept = apply()
    assert kept.status == 0
    assert kept.lines == [f"kept: {world.name('host')}: inventory VCPU not removed, in use"]
    assert apply("--json").json["trees"][0]["kept"] == [
        f"{world.name('host')}: inventory VCPU not removed, in use"
    ]
    world.release("instance")
    assert apply().lines == [f"{world.name('host')}: inventory VCPU removed"]


def test_names_may_be_in_any_language(world: RemoteWorld) -> None:
    name = f"Gehäuse 7 / 机架 & {world.uuid('mark')} ?#%"
    write({"name": name, "uuid": world.uuid("host"), "inventories": {"VCPU": 1}})
    assert apply().lines[0] == f"{name}: created"
    assert world.provider("host")["name"] == name
    write({"name": name, "inventories": {"VCPU": 2}})
    assert apply().lines == [f"{name}: inventory VCPU total 1 -> 2"]
    assert roost("tree", "show", name).lines[0] == f"{name}  {world.uuid('host')}"
    assert f"name: {name}\n" in roost("tree", "export", name).out


# -- comparing


@one_server
@pytest.mark.parametrize("command", [["apply", "--dry-run"], ["diff"]], ids=" ".join)
def test_comparing_writes_nothing_and_remembers_nothing(
    world: RemoteWorld, state: Path, command: list[str]
) -> None:
    write(provider(world, "host", inventories={"VCPU": 8}))
    would = roost("tree", *command, "-f", "rack.yaml")
    assert would.lines == [
        f"{world.name('host')}: created",
        f"{world.name('host')}: inventory VCPU added (total 8)",
        f"{world.name('host')}: traits added: CUSTOM_OWNER_RACK",
    ]
    assert would.err == "3 changes would be made, as owner rack\n"
    assert not world.exists("host")
    assert not state.exists()

    world.add("other", totals={"VCPU": 1})
    apply()
    remembered = memory(state)
    write(provider(world, "host", inventories={"PCPU": 8}), provider(world, "other"))
    generations = [world.generation(short) for short in ("host", "other")]
    assert len(roost("tree", *command, "-f", "rack.yaml", "--adopt").lines) == 3
    assert [world.generation(short) for short in ("host", "other")] == generations
    assert memory(state) == remembered


@one_server
def test_a_tree_that_is_not_on_the_server_is_not_forgotten(world: RemoteWorld, state: Path) -> None:
    # It may be on another server, for which the same file is meant.
    write(provider(world, "host"))
    apply()
    remembered = memory(state)
    world.delete("host")
    write()
    for arguments in (["--dry-run"], [], ["--prune"]):
        outcome = apply(*arguments)
        assert (outcome.status, outcome.out) == (0, "")
        assert world.name("host") not in outcome.err
    assert memory(state) == remembered


def test_the_exit_status_of_diff_says_whether_something_would_change(world: RemoteWorld) -> None:
    write(provider(world, "host"))
    assert diff().status == 2
    apply()
    same = diff()
    assert (same.status, same.out) == (0, "")
    assert same.err == "0 changes would be made, as owner rack\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-f", "rack.yaml"],
        ["-f", "missing.yaml"],
        ["-f", "bad.yaml"],
        ["-f", "rack.yaml", "--url", "nowhere"],
        ["-f", "rack.yaml", "--owner", "the rack"],
        ["--fil", "rack.yaml"],
        [],
    ],
    ids=" ".join,
)
def test_diff_without_an_answer_is_neither(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("rack.yaml").write_text("providers: [{name: host}]")
    Path("bad.yaml").write_text("providers: {}")
    with nobody() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost("tree", "diff", *arguments)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err != ""


@one_server
def test_json_has_every_tree_and_nothing_else_is_on_standard_output(world: RemoteWorld) -> None:
    write(provider(world, "a", traits=["HW_CPU_X86_AVX"]), provider(world, "b"))
    for command, dry_run in ((diff, True), (apply, False)):
        told = command("--json").json
        assert (told["owner"], told["dry_run"]) == ("rack", dry_run)
        assert [tree["tree"] for tree in told["trees"]] == [world.name("a"), world.name("b")]
        first = told["trees"][0]
        assert [creation["uuid"] for creation in first["difference"]["creations"]] == [
            world.uuid("a")
        ]
        (change, *_) = first["difference"]["changes"]
        assert change["after"] == ["CUSTOM_OWNER_RACK", "HW_CPU_X86_AVX"]
        assert first["kept"] == []


@one_server
def test_json_tells_what_was_done_before_something_failed(world: RemoteWorld) -> None:
    world.add("b")
    taken = {"name": "another name", "uuid": world.uuid("b")}
    write(provider(world, "a"), taken)
    outcome = apply("--json")
    assert outcome.status == 1
    assert [tree["tree"] for tree in outcome.json["trees"]] == [world.name("a")]
    assert world.uuid("b") in outcome.err
    assert world.exists("a")


# -- whose it is


@one_server
@pytest.mark.parametrize(
    ("said", "arguments", "owner"),
    [
        ({}, [], "rack"),
        ({"owner": "file"}, [], "file"),
        ({"owner": "file"}, ["--owner", "option"], "option"),
        ({}, ["--owner", "Option_1"], "option-1"),
    ],
)
def test_the_owner_is_the_option_or_the_files_or_the_files_name(
    world: RemoteWorld, state: Path, said: dict[str, str], arguments: list[str], owner: str
) -> None:
    write(provider(world, "host"), **said)
    outcome = apply(*arguments)
    assert outcome.err.endswith(f"as owner {owner}\n")
    assert (state / owner / f"{world.uuid('host')}.json").exists()
    mark = f"CUSTOM_OWNER_{owner.upper().replace('-', '_')}"
    assert world.traits("host") == {mark}


@one_server
def test_standard_input_has_no_name_to_be_the_owner(world: RemoteWorld) -> None:
    text = json.dumps({"providers": [provider(world, "host")]})
    refused = apply(path="-", stdin=text)
    assert refused.status == 1
    assert "Give --owner" in refused.err
    assert not world.exists("host")
    assert apply("--owner", "me", path="-", stdin=text).status == 0
    assert world.exists("host")


def test_a_file_whose_name_is_no_owner_says_what_to_do() -> None:
    write(path="my rack.yaml")
    refused = apply(path="my rack.yaml")
    assert refused.status == 1
    assert "'my rack' cannot be an owner" in refused.err
    assert "--owner" in refused.err


@one_server
def test_without_anywhere_to_remember_nothing_is_written(world: RemoteWorld) -> None:
    Path("taken").write_text("where a directory should be")
    write(provider(world, "host"))
    refused = apply("--records", "taken/records")
    assert refused.status == 1
    assert "taken/records" in refused.err
    assert "choose another directory with --records" in refused.err
    assert not world.exists("host")
    # Looking needs no memory.
    assert diff("--records", "nowhere").status == 2
    assert not Path("nowhere").exists()


# -- files and trees of the server need not have the same shape


@one_server
def test_a_file_may_have_several_trees_and_they_come_and_go(world: RemoteWorld) -> None:
    a, b, c = (provider(world, short, inventories={"VCPU": 1}) for short in "abc")
    write(a, b, c)
    assert apply().status == 0
    assert [world.exists(short) for short in "abc"] == [True] * 3

    write(a, c)
    without = apply()
    assert (without.status, without.out) == (0, "")
    assert f"rack declared something of {world.name('b')} before" in without.err
    assert "--prune removes it" in without.err
    assert world.exists("b")

    assert diff("--prune").lines == [f"{world.name('b')}: deleted"]
    assert apply("--prune").lines == [f"{world.name('b')}: deleted"]
    assert [world.exists(short) for short in "abc"] == [True, False, True]
    assert "--prune" not in apply().err


@one_server
def test_prune_takes_away_only_what_was_declared(world: RemoteWorld) -> None:
    world.add("host", totals={"VCPU": 8})
    write(provider(world, "host", traits=["HW_CPU_X86_AVX"]))
    apply()
    write()
    assert apply("--prune").lines == [f"{world.name('host')}: traits removed: HW_CPU_X86_AVX"]
    assert world.totals("host") == {"VCPU": 8}


@one_server
def test_a_tree_that_was_moved_below_a_declared_one_is_not_taken_for_undeclared(
    world: RemoteWorld,
) -> None:
    write(*(provider(world, short, inventories={"VCPU": 1}) for short in "ab"))
    apply()
    body = {"name": world.name("b"), "parent_provider_uuid": world.uuid("a")}
    world.send("PUT", world.path("b"), body)
    assert apply("--prune").out == ""
    assert [world.totals(short) for short in "ab"] == [{"VCPU": 1}] * 2


@one_server
def test_a_provider_without_parent_may_be_in_the_middle_of_a_tree(world: RemoteWorld) -> None:
    world.add("host")
    world.add("numa", "host", totals={"VCPU": 8})
    child = provider(world, "gpu", inventories={"VGPU": 1})
    write(provider(world, "numa", traits=["CUSTOM_GOLD"], children=[child]))
    assert apply().lines == [
        f"{world.name('gpu')}: created below {world.name('numa')}",
        f"{world.name('numa')}: traits added: CUSTOM_GOLD",
        f"{world.name('gpu')}: inventory VGPU added (total 1)",
        f"{world.name('gpu')}: traits added: CUSTOM_OWNER_RACK",
    ]
    assert world.provider("gpu")["root_provider_uuid"] == world.uuid("host")
    assert diff().status == 0
    write(provider(world, "numa"))
    assert apply().lines == [
        f"{world.name('numa')}: traits removed: CUSTOM_GOLD",
        f"{world.name('gpu')}: deleted",
    ]


def test_two_parts_of_one_tree_do_not_remove_each_other(world: RemoteWorld) -> None:
    world.add("host")
    for short in ("numa0", "numa1"):
        world.add(short, "host")
    first, second = (
        provider(
            *(world, f"numa{number}"),
            inventories={"VCPU": 8},
            children=[provider(world, f"gpu{number}", inventories={"VGPU": 1})],
        )
        for number in (0, 1)
    )
    # One of them is found by its name.
    del second["uuid"]
    write(first, second)
    assert apply().status == 0
    assert diff().status == 0
    assert [world.totals(f"gpu{number}") for number in (0, 1)] == [{"VGPU": 1}] * 2

    write(first)
    assert apply().lines == [
        f"{world.name('numa1')}: inventory VCPU removed",
        f"{world.name('gpu1')}: deleted",
    ]
    assert world.totals("gpu0") == {"VGPU": 1}


@one_server
def test_a_lender_and_its_borrowers_may_be_in_one_file(world: RemoteWorld, state: Path) -> None:
    rack = [world.uuid("rack")]
    lender = provider(
        *(world, "pool"),
        inventories={"DISK_GB": 100},
        aggregates=rack,
        traits=["MISC_SHARES_VIA_AGGREGATE"],
    )
    write(provider(world, "host", aggregates=rack), lender)
    assert apply().status == 0
    assert diff().status == 0
    # Without any memory, too, neither takes the other for something left behind.
    for remembered in memory(state):
        Path(remembered).unlink()
    assert (diff().status, apply().out) == (0, "")


# -- files that cannot be used


def test_everything_that_is_wrong_with_a_file_is_told_at_once() -> None:
    # The hundredth line: between colons it is also the name of a picture.
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
def test_a_provider_that_is_elsewhere_than_declared_stays_and_that_is_told(
    world: RemoteWorld,
) -> None:
    world.add("host")
    world.add("numa", "host")
    misplaced = provider(world, "other", children=[provider(world, "numa")])
    write(provider(world, "host", children=[misplaced]))
    outcome = apply()
    assert outcome.status == 0
    assert f"kept: {world.name('numa')}: stays below {world.name('host')}" in outcome.out
    assert world.provider("numa")["parent_provider_uuid"] == world.uuid("host")


@one_server
def test_a_provider_that_has_another_name_than_declared_is_refused(world: RemoteWorld) -> None:
    world.add("host")
    write(provider(world, "host") | {"name": world.name("renamed")})
    outcome = apply()
    assert (outcome.status, outcome.out) == (1, "")
    assert world.name("host") in outcome.err
    assert world.provider("host")["name"] == world.name("host")


@one_server
def test_what_looks_odd_is_told_besides(world: RemoteWorld) -> None:
    write(provider(world, "host", traits=["HW_CPU_OF_NEXT_YEAR"]))
    outcome = diff()
    assert outcome.status == 2
    assert outcome.err.startswith("warning: rack.yaml:1:")
    assert "`HW_CPU_OF_NEXT_YEAR` is not among the standard traits" in outcome.err
