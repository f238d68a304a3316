"""`roost tree show`: whole trees by the name or uuid of any member, with what is used."""

from __future__ import annotations

from typing import Any

import pytest

from support.commands import roost
from support.placement_stub import PlacementStub, Reply, nobody
from support.remote_world import RemoteWorld
from support.small_server import SmallServer
from support.tampering import one_server

FREE, USED = "░", "█"


@pytest.fixture
def host(world: RemoteWorld) -> RemoteWorld:
    """A host with a child, something shared with both, and an instance on all three."""
    world.add("host", aggregates=["rack"], traits=["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"])
    set_inventory(world, "host", "VCPU", {"total": 16, "reserved": 4, "allocation_ratio": 2.0})
    world.add("gpu", "host", totals={"VGPU": 4})
    world.add(
        "pool",
        totals={"DISK_GB": 1000},
        aggregates=["rack"],
        traits=["MISC_SHARES_VIA_AGGREGATE"],
    )
    world.claim("instance", host={"VCPU": 6}, gpu={"VGPU": 1}, pool={"DISK_GB": 100})
    return world


def set_inventory(world: RemoteWorld, short: str, name: str, fields: dict[str, Any]) -> None:
    body = {
        "resource_provider_generation": world.generation(short),
        "inventories": {name: fields},
    }
    world.send("PUT", world.path(short, "inventories"), body)


def test_a_tree_is_drawn_with_what_is_used_and_what_is_shared_with_it(host: RemoteWorld) -> None:
    drawings = {
        roost("tree", "show", name_or_uuid).out
        for name_or_uuid in (
            host.name("host"),
            host.uuid("host").upper(),
            host.name("gpu"),
        )
    }
    (drawing,) = drawings
    assert drawing.splitlines() == [
        f"{host.name('host')}  {host.uuid('host')}",
        f"VCPU  {USED * 5}{FREE * 15}  6 of 24 (4 of 16 reserved, allocation ratio 2)",
        "traits HW_CPU_X86_AVX, HW_CPU_X86_AVX2",
        f"aggregate {host.uuid('rack')}",
        f"├── {host.name('gpu')}  {host.uuid('gpu')}",
        f"│   VGPU  {USED * 5}{FREE * 15}  1 of 4",
        "└── shared with it",
        f"    └── {host.name('pool')}  {host.uuid('pool')}",
        f"        DISK_GB  {USED * 2}{FREE * 18}  100 of 1000",
        "        trait MISC_SHARES_VIA_AGGREGATE",
        f"        aggregate {host.uuid('rack')}",
    ]


def test_json_is_nested_like_the_tree(host: RemoteWorld) -> None:
    (tree,) = roost("tree", "show", host.name("gpu"), host.name("host"), "--json").json
    assert (tree["name"], tree["uuid"]) == (host.name("host"), host.uuid("host"))
    assert tree["generation"] == host.generation("host")
    assert tree["inventories"]["VCPU"] == {
        **host.inventories("host")["VCPU"],
        "used": 6,
    }
    assert tree["traits"] == ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"]
    assert tree["aggregates"] == [host.uuid("rack")]
    (child,) = tree["children"]
    assert (child["name"], child["children"]) == (host.name("gpu"), [])
    assert child["inventories"]["VGPU"]["used"] == 1
    (shared,) = tree["sharing"]
    assert shared["uuid"] == host.uuid("pool")
    assert shared["inventories"]["DISK_GB"]["used"] == 100


@one_server
def test_several_trees_are_drawn_in_the_order_in_which_they_are_named(world: RemoteWorld) -> None:
    for short in ("a", "b"):
        world.add(short)
    drawing = roost("tree", "show", world.name("b"), world.uuid("a"), world.name("b"))
    assert [line.split()[0] for line in drawing.lines] == [world.name("b"), world.name("a")]


@one_server
def test_lines_are_not_broken_for_a_program_that_reads_them(world: RemoteWorld) -> None:
    long = "host" * 40
    world.add(long)
    assert roost("tree", "show", world.name(long)).lines == [
        f"{world.name(long)}  {world.uuid(long)}"
    ]


def test_without_names_all_trees_are_drawn_by_name(small_server: SmallServer) -> None:
    outcome = roost("tree", "show")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.lines == [
        *(f"{name}  {small_server.uuid(name)}" for name in ("a", "b")),
        f"└── d  {small_server.uuid('d')}",
        f"c  {small_server.uuid('c')}",
    ]


@pytest.mark.parametrize(
    ("limit", "shown", "left_out"),
    [("1", "a", 2), ("2", "ab", 1), ("3", "abc", 0), ("0", "abc", 0)],
)
def test_trees_beyond_the_limit_are_counted(
    small_server: SmallServer, limit: str, shown: str, left_out: int
) -> None:
    del small_server
    drawing = roost("tree", "show", "--limit", limit)
    as_json = roost("tree", "show", "--limit", limit, "--json")
    assert "".join(line[0] for line in drawing.lines if line[0] != "└") == shown
    assert [tree["name"] for tree in as_json.json] == list(shown)
    note = f"... and {left_out} more trees: name some, or --limit 0\n" if left_out else ""
    assert (drawing.err, as_json.err) == (note, note)


def test_a_tree_that_goes_away_meanwhile_is_told(small_server: SmallServer) -> None:
    small_server.deleted.add("c")
    outcome = roost("tree", "show")
    assert outcome.status == 1
    assert f"{small_server.uuid('c')} was deleted by somebody else just now" in outcome.err


def test_a_server_without_providers_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with PlacementStub(otherwise=lambda _: Reply(body={"resource_providers": []})) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        drawing, as_json = roost("tree", "show"), roost("tree", "show", "--json")
    assert (drawing.status, drawing.out) == (0, "")
    assert "roost agent --driver linux" in drawing.err
    assert as_json.json == []


@pytest.mark.parametrize("what", ["name", "uuid"])
def test_a_name_that_nobody_has_is_told(world: RemoteWorld, what: str) -> None:
    nobody = getattr(world, what)("nobody")
    outcome = roost("tree", "show", nobody)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        f"roost: No provider has the name or uuid {nobody}; `roost tree show` lists the trees\n"
    )


def test_a_provider_may_be_named_like_a_uuid(world: RemoteWorld) -> None:
    name = world.uuid("name")
    body = {"uuid": world.uuid("host"), "name": name}
    world.send("POST", "/resource_providers", body)
    assert roost("tree", "show", name).lines == [f"{name}  {world.uuid('host')}"]


def test_a_server_that_is_down_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost("tree", "show", "host")
    assert (outcome.status, outcome.out) == (1, "")
    first, second = outcome.err.splitlines()
    assert first.startswith(f"roost: GET /resource_providers?name=host: no connection to {url}")
    assert "(1 attempt)" in first
    assert second.startswith("Is the server running")
    assert "--url" in second
