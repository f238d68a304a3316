"""`roost provider`: lists with filters, one provider, edits and deletions."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml

from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.transports.tampering import one_server


@pytest.fixture
def host(live_providers: LiveProviders) -> LiveProviders:
    """A host with a GPU and a consumer, and a second host."""
    live_providers.add(
        "host",
        totals={"VCPU": 16, "MEMORY_MB": 4096},
        traits=["HW_CPU_X86_AVX2"],
        aggregates=["rack"],
    )
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.add("spare", totals={"VCPU": 2}, traits=["HW_CPU_X86_AVX"])
    live_providers.claim("instance", host={"VCPU": 6}, gpu={"VGPU": 1})
    return live_providers


def listed(host: LiveProviders, *arguments: str) -> list[str]:
    """The short names of the host's test that a list has."""
    outcome = roost("provider", "list", "--json", *arguments)
    assert outcome.status == 0, outcome.err
    names = {host.name(short): short for short in ("host", "gpu", "spare")}
    return sorted(names[one["name"]] for one in outcome.json if one["name"] in names)


# -- list


def test_filters_choose_providers(host: LiveProviders) -> None:
    name = host.name("host")
    assert listed(host) == ["gpu", "host", "spare"]
    assert listed(host, "--name", name) == ["host"]
    assert listed(host, "--name", f"*{name.partition('-')[2]}") == ["gpu", "host", "spare"]
    assert listed(host, "--roots") == ["host", "spare"]
    assert listed(host, "--in-tree", host.name("gpu")) == ["gpu", "host"]
    assert listed(host, "--in-tree", host.uuid("gpu").upper(), "--roots") == ["host"]
    assert listed(host, "--member-of", host.uuid("rack")) == ["host"]
    assert listed(host, "--member-of", f"!{host.uuid('rack')}") == ["gpu", "spare"]
    assert listed(host, "--require", "HW_CPU_X86_AVX2") == ["host"]
    assert listed(host, "--require", "in:HW_CPU_X86_AVX2,HW_CPU_X86_AVX") == ["host", "spare"]
    assert listed(host, "--forbid", "HW_CPU_X86_AVX2", "--roots") == ["spare"]
    assert listed(host, "--resources", "VCPU=2") == ["host", "spare"]
    assert listed(host, "--resources", "VCPU=11", "--resources", "MEMORY_MB=1") == []
    assert listed(host, "--resources", "VCPU:10,MEMORY_MB:1") == ["host"]


@one_server
def test_a_list_names_parents_and_roots(host: LiveProviders) -> None:
    (gpu,) = roost("provider", "list", "--name", host.name("gpu"), "--json").json
    parent = {"uuid": host.uuid("host"), "name": host.name("host")}
    assert (gpu["parent"], gpu["root"]) == (parent, parent)
    titles, line = roost("provider", "list", "--name", host.name("gpu")).lines
    assert titles.split() == ["NAME", "UUID", "GENERATION", "PARENT", "ROOT"]
    assert line.split() == [
        *(host.name("gpu"), host.uuid("gpu"), str(host.generation("gpu"))),
        *(host.name("host"), host.name("host")),
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "words", "following"),
    [
        (["--require", "HW_CPU_X86_AVX9"], 1, "Near it: HW_CPU_X86_AVX", "roost trait list"),
        (["--require", "CUSTOM_NEW"], 1, "No trait has the name CUSTOM_NEW", "create CUSTOM_NEW"),
        (["--resources", "VCPUS=1"], 1, "Near it: VCPU", "roost class list"),
        (["--resources", "VCPU"], 2, "write CLASS=AMOUNT", "roost class list"),
        (["--in-tree", "no-such-host"], 1, "No provider has", "roost provider list"),
    ],
)
@one_server
def test_an_error_ends_with_the_next_command(
    host: LiveProviders, arguments: list[str], status: int, words: str, following: str
) -> None:
    del host
    outcome = roost("provider", "list", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert words in outcome.err
    assert outcome.err.splitlines()[-1].startswith("Next: roost ")
    assert outcome.err.rstrip().endswith(following)


# -- show


def test_a_provider_is_shown_with_all_that_it_has(host: LiveProviders) -> None:
    shown = roost("provider", "show", host.name("host"), "--output", "yaml")
    found = yaml.safe_load(shown.out)
    assert found["uuid"] == host.uuid("host")
    assert found["children"] == [{"uuid": host.uuid("gpu"), "name": host.name("gpu")}]
    assert found["parent"] is None
    assert (found["inventories"]["VCPU"]["used"], found["inventories"]["VCPU"]["capacity"]) == (
        6,
        16,
    )
    assert found["traits"] == ["HW_CPU_X86_AVX2"]
    assert found["aggregates"] == [host.uuid("rack")]
    assert found["consumers"] == 1
    drawn = roost("provider", "show", host.uuid("host")).lines
    assert f"children    {host.name('gpu')}" in drawn
    assert drawn[-1] == f"VCPU       {'█' * 8}{'░' * 12}  6 of 16"


@one_server
def test_csv_of_a_provider_has_a_line_for_each_inventory(host: LiveProviders) -> None:
    titles, memory, vcpu = roost("provider", "show", host.name("host"), "-o", "csv").lines
    assert titles.startswith("resource_class,used,capacity,total,reserved,allocation_ratio,")
    assert memory.startswith("MEMORY_MB,0,4096,4096,0,1")
    assert vcpu.startswith("VCPU,6,16,16,0,1")


@one_server
def test_provider_tree_draws_the_tree_of_a_provider(host: LiveProviders) -> None:
    drawn = roost("provider", "tree", host.name("gpu"))
    assert drawn.out == roost("tree", "show", host.name("host")).out
    assert drawn.lines[0] == f"{host.name('host')}  {host.uuid('host')}"


# -- set


def edited(host: LiveProviders, *arguments: str) -> Outcome:
    return roost("provider", "set", host.name("host"), *arguments)


def test_an_edit_changes_what_is_named_and_nothing_else(host: LiveProviders) -> None:
    name, before = host.name("host"), host.inventories("host")
    arguments = [
        *("--inventory", "VCPU=32", "--inventory", "VCPU:allocation_ratio=2"),
        *("--inventory", "DISK_GB=100", "--remove-inventory", "MEMORY_MB"),
        *("--add-trait", "HW_CPU_X86_AVX", "--remove-trait", "HW_CPU_X86_AVX2"),
        *("--add-aggregate", host.uuid("zone").upper()),
        *("--remove-aggregate", host.uuid("rack")),
    ]
    expected = [
        f"{name}: inventory MEMORY_MB removed",
        f"{name}: inventory DISK_GB added (total 100)",
        f"{name}: inventory VCPU total 16 -> 32, allocation_ratio 1 -> 2",
        f"{name}: aggregates added: {host.uuid('zone')}",
        f"{name}: aggregates removed: {host.uuid('rack')}",
        f"{name}: traits added: HW_CPU_X86_AVX",
        f"{name}: traits removed: HW_CPU_X86_AVX2",
    ]
    planned = edited(host, *arguments, "--dry-run")
    assert (planned.status, planned.lines) == (
        0,
        [
            f"{name}: inventory MEMORY_MB would be removed",
            f"{name}: inventory DISK_GB would be added (total 100)",
            f"{name}: inventory VCPU would change: total 16 -> 32, allocation_ratio 1 -> 2",
            f"{name}: aggregates would be added: {host.uuid('zone')}",
            f"{name}: aggregates would be removed: {host.uuid('rack')}",
            f"{name}: traits would be added: HW_CPU_X86_AVX",
            f"{name}: traits would be removed: HW_CPU_X86_AVX2",
        ],
    )
    assert planned.err == "7 changes would be made\n"
    assert host.inventories("host") == before

    made = edited(host, *arguments)
    assert (made.status, made.lines, made.err) == (0, expected, "7 changes made\n")
    assert host.totals("host") == {"VCPU": 32, "DISK_GB": 100}
    assert host.inventories("host")["VCPU"] == {
        **before["VCPU"],
        "total": 32,
        "allocation_ratio": 2.0,
    }
    assert host.traits("host") == {"HW_CPU_X86_AVX"}
    assert host.aggregates("host") == ["zone"]

    again = edited(host, "--inventory", "VCPU=32", "--add-trait", "HW_CPU_X86_AVX")
    assert (again.status, again.out, again.err) == (0, "", "0 changes made\n")


def test_a_provider_gets_another_name_and_parent(host: LiveProviders) -> None:
    uuid, new = host.uuid("spare"), host.name("renamed")
    outcome = roost(
        *("provider", "set", host.name("spare"), "--rename", new),
        *("--parent", host.name("host"), "--inventory", "VCPU=3"),
    )
    assert outcome.lines == [
        f"{host.name('spare')}: name {host.name('spare')} -> {new}",
        f"{host.name('spare')}: parent none -> {host.uuid('host')}",
        f"{new}: inventory VCPU total 2 -> 3",
    ]
    found: dict[str, Any] = host.provider("spare")
    assert (found["name"], found["parent_provider_uuid"]) == (new, host.uuid("host"))
    assert host.totals("spare") == {"VCPU": 3}

    roost("provider", "set", uuid, "--no-parent")
    assert host.provider("spare")["parent_provider_uuid"] is None

    taken = roost("provider", "set", uuid, "--rename", host.name("host"))
    assert taken.status == 1
    assert taken.err.splitlines()[-1] == f"Next: roost provider show {host.name('host')}"


def test_inventory_in_use_is_kept_with_a_reason(host: LiveProviders) -> None:
    outcome = edited(host, "--remove-inventory", "VCPU")
    assert outcome.status == 1
    assert f"{host.name('host')} keeps its inventory: consumers hold VCPU 6" in outcome.err
    assert outcome.err.splitlines()[-1] == (
        f"Next: roost consumer list --provider {host.name('host')}"
    )
    assert host.totals("host") == {"VCPU": 16, "MEMORY_MB": 4096}


@one_server
def test_an_edit_below_the_used_amount_is_warned_of(host: LiveProviders) -> None:
    outcome = edited(host, "--inventory", "VCPU=4", "--dry-run")
    assert "consumers hold 6 VCPU, more than the new capacity of 4" in outcome.err


@one_server
def test_amounts_and_ratios_of_an_edit_have_no_exponent(host: LiveProviders) -> None:
    host.add("large", totals={"MEMORY_MB": 2**22})
    host.claim("all", large={"MEMORY_MB": 2**22})
    set_large = ("provider", "set", host.name("large"), "--inventory")
    made = roost(*set_large, f"MEMORY_MB={2**21}", "--inventory", "VCPU=4")
    assert "hold 4,194,304 MEMORY_MB, more than the new capacity of 2,097,152" in made.err
    ratio = roost(*set_large, "VCPU:allocation_ratio=0.00001")
    assert ratio.lines == [f"{host.name('large')}: inventory VCPU allocation_ratio 1 -> 0.00001"]
    shown = roost("provider", "show", host.name("large"), "--output", "csv").out
    assert ",0.00001," in shown
    assert "allocation ratio 0.00001" in roost("tree", "show", host.name("large")).out


@one_server
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Nothing to change is named"),
        (["--inventory", "DISK_GB:reserved=1"], "so its total is needed as well"),
        (["--inventory", "VCPU"], "write VCPU=16, or VCPU:reserved=2"),
        (["--inventory", "VCPU:size=1"], "the fields are total, reserved"),
        (["--inventory", "VCPU=many"], "total is a whole number"),
        (["--inventory", "VCPU:allocation_ratio=x"], "allocation_ratio is a number"),
        (["--inventory", "VCPU:allocation_ratio=inf"], "allocation_ratio is a number, such as"),
        (["--inventory", "VCPU:allocation_ratio=nan", "--dry-run"], "allocation_ratio is a number"),
        (
            ["--inventory", "VCPU=-5", "--dry-run"],
            "whole number up to 2147483647, and never negative",
        ),
        (
            ["--inventory", f"VCPU:reserved={9:9<400}"],
            "reserved is a whole number up to 2147483647",
        ),
        (["--inventory", "VCPUS=1"], "Near it: VCPU"),
        (["--add-trait", "HW_CPU_X86_AVX22"], "Near it: HW_CPU_X86_AVX2"),
        (
            ["--add-aggregate", "rack"],
            "rack is no uuid, and Placement knows aggregates by uuid only.\n"
            "Next: roost help aggregate\n",
        ),
        (["--parent", "x", "--no-parent"], "contradict each other"),
    ],
)
def test_an_edit_that_cannot_be_made_is_explained(
    host: LiveProviders, arguments: list[str], words: str
) -> None:
    before = host.generation("host")
    outcome = edited(host, *arguments)
    assert outcome.status in (1, 2)
    assert words in outcome.err
    assert host.generation("host") == before


@one_server
def test_changes_as_json_have_both_sides(host: LiveProviders) -> None:
    found = edited(host, "--add-trait", "HW_CPU_X86_AVX", "--dry-run", "--json").json
    assert found["dry_run"] is True
    (change,) = found["changes"]
    assert (change["field"], change["before"], change["after"]) == (
        "traits",
        ["HW_CPU_X86_AVX2"],
        ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"],
    )


# -- delete


def test_a_provider_in_use_is_not_deleted_and_the_reason_is_named(host: LiveProviders) -> None:
    name = host.name("host")
    alone = roost("provider", "delete", host.name("spare"), name)
    assert alone.status == 1
    assert f"{name} has 1 provider below it ({host.name('gpu')})" in alone.err
    below = roost("provider", "delete", host.name("spare"), name, "--with-children", "--dry-run")
    assert below.status == 1
    assert "1 consumer holds 1 VGPU of it" in below.err
    assert below.err.splitlines()[-1] == f"Next: roost consumer list --provider {host.name('gpu')}"
    assert all(map(host.exists, ("host", "gpu", "spare")))


def test_a_subtree_is_deleted_from_its_leaves_up(host: LiveProviders) -> None:
    host.release("instance")
    names = [host.name("gpu"), host.name("host")]
    planned = roost("provider", "delete", names[1], "--with-children", "--dry-run")
    assert planned.lines == [f"{name}: would be deleted" for name in names]
    assert host.exists("gpu")
    # A child that is named before its parent is deleted before it, too.
    made = roost("provider", "delete", *names)
    assert (made.status, made.lines) == (0, [f"{name}: deleted" for name in names])
    assert not host.exists("host")
    assert host.exists("spare")


@one_server
@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["made", "planned"])
def test_what_is_not_there_is_not_removed_and_a_warning_says_so(
    host: LiveProviders, more: list[str]
) -> None:
    name, before = host.name("host"), host.generation("host")
    outcome = edited(
        host,
        *("--remove-trait", "HW_CPU_X86_AVX22", "--remove-inventory", "VGPU"),
        *("--remove-aggregate", host.uuid("nowhere")),
        *more,
    )
    # A script that removes something may run twice.
    assert (outcome.status, outcome.lines) == (0, [])
    ending = "so there is nothing to remove."
    assert outcome.err.splitlines() == [
        f"roost: warning: {name} does not have inventory of VGPU, {ending} Near it: VCPU.",
        f"roost: warning: {name} does not have the aggregate {host.uuid('nowhere')}, {ending}",
        f"roost: warning: {name} does not have the trait HW_CPU_X86_AVX22, {ending}"
        " Near it: HW_CPU_X86_AVX2.",
        f"0 changes {'would be ' if more else ''}made",
    ]
    assert host.generation("host") == before


@one_server
def test_an_error_half_way_follows_what_was_made(host: LiveProviders) -> None:
    # The server refuses the inventory after the new name.
    outcome = edited(host, "--rename", host.name("other"), "--inventory", "MEMORY_MB=0")
    assert outcome.status == 1
    old, new = host.name("host"), host.name("other")
    assert outcome.lines == [f"{old}: name {old} -> {new}"]
    assert outcome.err.splitlines()[0] == "1 change made"


# -- odd names


@one_server
@pytest.mark.parametrize("name", ["a b", "-x", "[red]x", "new\nNext: rm", "esc\x1b[31m", "机架"])
def test_any_name_can_be_shown_and_deleted(live_providers: LiveProviders, name: str) -> None:
    full = live_providers.name(name)
    live_providers.add(name)
    shown = roost("provider", "show", "--json", "--", full)
    assert shown.json["name"] == full
    for command in (["provider", "show"], ["provider", "tree"], ["doctor"]):
        outcome = roost(*command, "--", full)
        assert outcome.status == 0
        assert "\x1b" not in outcome.out
        assert not any(line.startswith("Next: rm") for line in outcome.lines)
    assert roost("provider", "list", "--name", full, "--json").json == [
        {
            "name": full,
            "uuid": live_providers.uuid(name),
            "generation": 0,
            "parent": None,
            "root": {"uuid": live_providers.uuid(name), "name": full},
        }
    ]
    live_providers.add("child", name)
    refused = roost("provider", "delete", "--", full)
    following = refused.err.splitlines()[-1].removeprefix("Next: ")
    # The command that the error ends with can be typed as it is.
    made = roost(*shlex.split(following.replace("--dry-run", ""))[1:])
    assert (made.status, made.err) == (0, "2 changes made\n")


@one_server
@pytest.mark.parametrize(
    "command",
    [
        ["provider", "delete", ""],
        ["provider", "show", " "],
        ["provider", "list", "--in-tree", ""],
        ["provider", "list", "--name", ""],
        ["consumer", "list", "--provider", ""],
        ["usage", "--project", ""],
        ["doctor", ""],
    ],
    ids=" ".join,
)
def test_an_empty_word_never_means_all(live_providers: LiveProviders, command: list[str]) -> None:
    del live_providers
    outcome = roost(*command)
    assert (outcome.status, outcome.out) == (2, "")
    assert "it is empty. Give a value, or leave the option out." in outcome.err


def test_a_refusal_of_the_server_ends_with_the_help_of_the_command(host: LiveProviders) -> None:
    outcome = edited(host, "--inventory", "VCPU=0")
    assert outcome.status == 1
    assert "(HTTP 400)" in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost provider set --help"
