"""`roost tree show` draws whole trees with their usage, by the name or uuid of any member."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.model.trees.owner_names import owner_of_trait
from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.four_provider_stub import FourProviderStub
from support.stubs.placement_stub import PlacementStub, Reply, closed_port_url
from support.transports.tampering import one_server

FREE, USED = "░", "█"


@pytest.fixture
def host(live_providers: LiveProviders) -> LiveProviders:
    """A host with a child, a sharing provider, and a consumer with allocations on all three."""
    live_providers.add("host", aggregates=["rack"], traits=["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"])
    set_inventory(
        live_providers, "host", "VCPU", {"total": 16, "reserved": 4, "allocation_ratio": 2.0}
    )
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.add(
        "pool",
        totals={"DISK_GB": 1000},
        aggregates=["rack"],
        traits=["MISC_SHARES_VIA_AGGREGATE"],
    )
    live_providers.claim("instance", host={"VCPU": 6}, gpu={"VGPU": 1}, pool={"DISK_GB": 100})
    return live_providers


def set_inventory(
    live_providers: LiveProviders, short: str, name: str, fields: dict[str, Any]
) -> None:
    body = {
        "resource_provider_generation": live_providers.generation(short),
        "inventories": {name: fields},
    }
    live_providers.send("PUT", live_providers.path(short, "inventories"), body)


def test_a_drawing_has_the_usage_and_the_sharing_providers(host: LiveProviders) -> None:
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
        f"        DISK_GB  {USED * 2}{FREE * 18}  100 of 1,000",
        "        trait MISC_SHARES_VIA_AGGREGATE",
        f"        aggregate {host.uuid('rack')}",
    ]


def test_json_nests_children_in_their_parents(host: LiveProviders) -> None:
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


def test_the_owner_of_a_provider_stands_for_its_mark(live_providers: LiveProviders) -> None:
    host, gpu = live_providers.name("host"), live_providers.name("gpu")
    live_providers.add("host", traits=["HW_CPU_X86_AVX"])
    content = {"providers": [{"name": host, "children": [{"name": gpu}]}]}
    applied = roost(
        *("tree", "apply", "-f", "-", "--owner", "rack-team"), stdin=json.dumps(content)
    )
    assert applied.status == 0
    (tree,) = roost("tree", "show", host, "--json").json
    (child,) = tree["children"]
    (mark,) = child["traits"]
    assert owner_of_trait(mark) == "rack-team"
    assert (tree["owners"], child["owners"]) == ([], ["rack-team"])
    assert roost("tree", "show", host).lines == [
        f"{host}  {live_providers.uuid('host')}",
        "trait HW_CPU_X86_AVX",
        f"└── {gpu}  {child['uuid']}",
        "    owner rack-team",
    ]
    detailed = roost("tree", "show", host, "--details").lines
    assert detailed[-2:] == ["    owner rack-team", f"    trait {mark}"]
    rows = roost("tree", "show", host, "-o", "csv").lines
    assert (rows[0].split(",")[-1], rows[2].split(",")[-1]) == ("owners", "rack-team")


@one_server
def test_trees_are_drawn_in_the_order_of_the_arguments(live_providers: LiveProviders) -> None:
    for short in ("a", "b"):
        live_providers.add(short)
    drawing = roost(
        "tree", "show", live_providers.name("b"), live_providers.uuid("a"), live_providers.name("b")
    )
    assert [line.split()[0] for line in drawing.lines] == [
        live_providers.name("b"),
        live_providers.name("a"),
    ]


@one_server
def test_piped_lines_are_not_broken(live_providers: LiveProviders) -> None:
    long = "host" * 40
    live_providers.add(long)
    assert roost("tree", "show", live_providers.name(long)).lines == [
        f"{live_providers.name(long)}  {live_providers.uuid(long)}"
    ]


def test_all_trees_are_drawn_by_name_without_arguments(small_server: FourProviderStub) -> None:
    outcome = roost("tree", "show")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.lines == [
        *(f"{name}  {small_server.uuid(name)}" for name in ("a", "b")),
        f"└── d  {small_server.uuid('d')}",
        f"c  {small_server.uuid('c')}",
    ]


@pytest.mark.parametrize(
    ("limit", "shown", "hidden"),
    [("1", "a", 2), ("2", "ab", 1), ("3", "abc", 0), ("0", "abc", 0)],
)
def test_a_note_has_the_number_of_trees_beyond_the_limit(
    small_server: FourProviderStub, limit: str, shown: str, hidden: int
) -> None:
    del small_server
    drawing = roost("tree", "show", "--limit", limit)
    as_json = roost("tree", "show", "--limit", limit, "--json")
    assert "".join(line[0] for line in drawing.lines if line[0] != "└") == shown
    assert [tree["name"] for tree in as_json.json] == list(shown)
    for note in (drawing.err, as_json.err):
        assert f" {hidden} more trees" in note if hidden else note == ""


def test_an_error_names_a_tree_that_is_deleted_meanwhile(small_server: FourProviderStub) -> None:
    small_server.deleted.add("c")
    outcome = roost("tree", "show")
    assert outcome.status == 1
    assert small_server.uuid("c") in outcome.err


def test_a_note_about_a_server_without_providers_suggests_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with PlacementStub(otherwise=lambda _: Reply(body={"resource_providers": []})) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        drawing, as_json = roost("tree", "show"), roost("tree", "show", "--json")
    assert (drawing.status, drawing.out) == (0, "")
    assert "roost agent --driver linux" in drawing.err
    assert as_json.json == []


@pytest.mark.parametrize("what", ["name", "uuid"])
def test_an_error_names_a_provider_that_does_not_exist(
    live_providers: LiveProviders, what: str
) -> None:
    missing = getattr(live_providers, what)("missing")
    outcome = roost("tree", "show", missing)
    assert (outcome.status, outcome.out) == (1, "")
    assert missing in outcome.err


def test_a_name_may_have_the_form_of_a_uuid(live_providers: LiveProviders) -> None:
    name = live_providers.uuid("name")
    body = {"uuid": live_providers.uuid("host"), "name": name}
    live_providers.send("POST", "/resource_providers", body)
    assert roost("tree", "show", name).lines == [f"{name}  {live_providers.uuid('host')}"]


def test_an_unreachable_server_is_an_error_after_one_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost("tree", "show", "host")
    assert (outcome.status, outcome.out) == (1, "")
    first, second = outcome.err.splitlines()
    assert first.startswith(f"roost: no connection to {url}")
    assert "(1 attempt): Connection refused. Is the server running" in first
    assert "--url" in first
    assert second == "Next: roost doctor"
