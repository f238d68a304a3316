"""The answer at each version: its shape, nested providers, summaries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from support.worlds.case_tables import rows
from support.worlds.world import World, Worlds, shown_classes

MINORS = range(10, 40)
NESTED = (
    "R(MEM 9, DISK 9, agg A), N<R(VCPU 4, GOLD 1), M<R(VCPU 4), F(VCPU 4, MEM 4), "
    "*SS(DISK 10, agg A), SK<SS(GOLD 10)"
)


def each_version(minors: Sequence[int] = MINORS) -> pytest.MarkDecorator:
    """Run a test at each of these versions."""
    return pytest.mark.parametrize("minor", [pytest.param(m, id=f"1.{m}") for m in minors])


def named(world: World, body: bytes) -> Any:
    """A body with the names of the providers instead of their uuids."""
    text = body.decode()
    for uuid, name in world.names().items():
        text = text.replace(uuid, name)
    return json.loads(text)


@pytest.mark.parametrize(
    ("world", "query", "before", "since"),
    rows(
        f"""
        World: {NESTED}

        VCPU:1,MEM:1            | F                 | F; N+R; M+R
        VCPU:1                  | F; M; N           | F; M; N
        VCPU:1,DISK:1           | M+SS; N+SS        | M+SS; N+SS; M+R; N+R
        MEM:1,DISK:1            | R; R+SS           | R; R+SS
        resources1=VCPU:1&resources2=MEM:1&group_policy=none    | F     | F; N+R; M+R
        VCPU:1&member_of={{A}}    | M; N              | M; N
        """
    ),
)
def test_one_provider_of_each_tree_gives_below_1_29(
    worlds: Worlds, world: str, query: str, before: str, since: str
) -> None:
    worlds(world).expect(query, before, version="1.28")
    worlds(world).expect(query, since, version="1.29")


@each_version()
def test_a_tree_gives_as_a_whole_since_1_29(worlds: Worlds, minor: int) -> None:
    expected = "F" if minor < 29 else "F; N+R; M+R"
    worlds(NESTED).expect("VCPU:1,MEM:1", expected, version=f"1.{minor}")


def test_the_route_is_unknown_below_1_10(worlds: Worlds) -> None:
    world = worlds(NESTED)
    statuses = [world.send("VCPU:1", f"1.{minor}").status for minor in range(12)]
    assert statuses == [404] * 10 + [200] * 2


@each_version()
def test_the_answer_without_candidates_is_empty(worlds: Worlds, minor: int) -> None:
    answer = worlds(NESTED).send("VCPU:99", f"1.{minor}")
    assert answer.status == 200
    assert answer.json == {"allocation_requests": [], "provider_summaries": {}}


@each_version()
def test_the_answer_has_the_headers_of_its_version(worlds: Worlds, minor: int) -> None:
    answer = worlds(NESTED).send("VCPU:1", f"1.{minor}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("cache-control") == ("no-cache" if minor >= 15 else None)
    assert ("last-modified" in answer.headers) == (minor >= 15)


@each_version()
def test_allocation_requests_have_the_form_of_their_version(worlds: Worlds, minor: int) -> None:
    world = worlds("H(VCPU 4, agg A), *SS(DISK 4, agg A)")
    body = named(world, world.send("VCPU:1,DISK:2", f"1.{minor}").body)
    (entry,) = body["allocation_requests"]
    if minor < 12:
        entry["allocations"].sort(key=lambda item: item["resource_provider"]["uuid"])
        allocations: Any = [
            {"resource_provider": {"uuid": "H"}, "resources": {"VCPU": 1}},
            {"resource_provider": {"uuid": "SS"}, "resources": {"DISK_GB": 2}},
        ]
    else:
        allocations = {
            "H": {"resources": {"VCPU": 1}},
            "SS": {"resources": {"DISK_GB": 2}},
        }
    if minor < 34:
        assert entry == {"allocations": allocations}
    else:
        entry["mappings"][""].sort()
        assert entry == {"allocations": allocations, "mappings": {"": ["H", "SS"]}}


@each_version(range(34, 40))
def test_mappings_have_a_key_for_each_group(worlds: Worlds, minor: int) -> None:
    world, version = worlds("H(VCPU 4, MEM 4)"), f"1.{minor}"
    world.expect("resources=VCPU:1&resources1=MEM:1", "{''=H 1=H}", version=version)
    # The suffixes 1 and 01 differ.
    query = "resources1=VCPU:1&resources01=MEM:1&group_policy=none"
    world.expect(query, "{1=H 01=H}", version=version)


@each_version()
def test_a_summary_has_the_fields_of_its_version(worlds: Worlds, minor: int) -> None:
    world = worlds("R(T1, VCPU 7 reserved 2 ratio 1.5 used 1+3), N<R(MEM 4)")
    body = named(world, world.send("VCPU:1", f"1.{minor}").body)
    root: dict[str, Any] = {"resources": {"VCPU": {"capacity": 7, "used": 4}}}
    if minor >= 17:
        root["traits"] = ["CUSTOM_T1"]
    if minor < 29:
        assert body["provider_summaries"] == {"R": root}
        return
    root |= {"parent_provider_uuid": None, "root_provider_uuid": "R"}
    child = {
        "resources": {"MEMORY_MB": {"capacity": 4, "used": 0}},
        "traits": [],
        "parent_provider_uuid": "R",
        "root_provider_uuid": "R",
    }
    assert body["provider_summaries"] == {"R": root, "N": child}


@pytest.mark.parametrize(
    ("world", "query", "version", "classes"),
    rows(
        f"""
        World: {NESTED}

        VCPU:1         | 1.12   | F: VCPU; M: VCPU; N: VCPU
        VCPU:1         | 1.26   | F: VCPU; M: VCPU; N: VCPU
        VCPU:1         | 1.27   | F: MEM, VCPU; M: VCPU; N: GOLD, VCPU
        VCPU:1         | 1.28   | F: MEM, VCPU; M: VCPU; N: GOLD, VCPU
        VCPU:1         | 1.29   | F: MEM, VCPU; M: VCPU; N: GOLD, VCPU; R: DISK, MEM
        MEM:1,DISK:1   | 1.26   | R: DISK, MEM; SS: DISK
        MEM:1,DISK:1   | 1.28   | R: DISK, MEM; SS: DISK
        MEM:1,DISK:1   | 1.29   | M: VCPU; N: GOLD, VCPU; R: DISK, MEM; SK: GOLD; SS: DISK
        """
    ),
)
def test_summaries_show_the_classes_of_their_version(
    worlds: Worlds, world: str, query: str, version: str, classes: str
) -> None:
    assert shown_classes(worlds(world).ask(query, version).summaries) == classes


def test_a_class_is_shown_up_to_1_26_if_any_group_asks_for_it(worlds: Worlds) -> None:
    world = worlds("H(VCPU 4, MEM 4 used 4, GOLD 1), K(VCPU 4, MEM 4)")
    query = "resources=VCPU:1&resources1=MEM:1"
    assert shown_classes(world.ask(query, "1.26").summaries) == "K: MEM, VCPU"
    # A class without room is shown as well.
    world = worlds("H(VCPU 4, MEM 4 used 4, agg A, GOLD 1), *S(MEM 4, agg A)")
    summaries = world.ask("VCPU:1,MEM:1", "1.26").summaries
    assert shown_classes(summaries) == "H: MEM, VCPU; S: MEM"
    assert summaries["H"]["resources"]["MEMORY_MB"] == {"capacity": 4, "used": 4}


def test_members_without_inventory_are_summarised(worlds: Worlds) -> None:
    world = worlds("R(), N<R(VCPU 4), L<N(T1, T2)")
    summaries = named(world, world.send("VCPU:1").body)["provider_summaries"]
    assert summaries["R"] == {
        "resources": {},
        "traits": [],
        "parent_provider_uuid": None,
        "root_provider_uuid": "R",
    }
    summaries["L"]["traits"].sort()
    assert summaries["L"] == {
        "resources": {},
        "traits": ["CUSTOM_T1", "CUSTOM_T2"],
        "parent_provider_uuid": "N",
        "root_provider_uuid": "R",
    }


def test_capacity_does_not_depend_on_usage(worlds: Worlds) -> None:
    world = worlds("P(VCPU 2 used 3, MEM 4, DISK 100 ratio 0.29, GOLD 4 reserved 4)")
    assert world.ask("MEM:1").summaries["P"]["resources"] == {
        "VCPU": {"capacity": 2, "used": 3},
        "MEMORY_MB": {"capacity": 4, "used": 0},
        "DISK_GB": {"capacity": 28, "used": 0},
        "CUSTOM_GOLD": {"capacity": 0, "used": 0},
    }


def test_an_answer_with_one_candidate_is_complete(worlds: Worlds) -> None:
    world = worlds("R(MEM 9, T1), N<R(VCPU 4)")
    query = "resources_A=VCPU:1&required_B=T1&group_policy=none&same_subtree=_A,_B"
    assert named(world, world.send(query, "1.36").body) == {
        "allocation_requests": [
            {
                "allocations": {"N": {"resources": {"VCPU": 1}}},
                "mappings": {"_A": ["N"], "_B": ["R"]},
            }
        ],
        "provider_summaries": {
            "R": {
                "resources": {"MEMORY_MB": {"capacity": 9, "used": 0}},
                "traits": ["CUSTOM_T1"],
                "parent_provider_uuid": None,
                "root_provider_uuid": "R",
            },
            "N": {
                "resources": {"VCPU": {"capacity": 4, "used": 0}},
                "traits": [],
                "parent_provider_uuid": "R",
                "root_provider_uuid": "R",
            },
        },
    }


@pytest.mark.parametrize("version", ["1.11", "1.12"])
def test_an_answer_of_the_first_versions_is_complete(worlds: Worlds, version: str) -> None:
    world = worlds("H(VCPU 4, agg A), *SS(DISK 4, agg A)")
    body = named(world, world.send("VCPU:1,DISK:2", version).body)
    assert sorted(body) == ["allocation_requests", "provider_summaries"]
    assert body["provider_summaries"] == {
        "SS": {"resources": {"DISK_GB": {"capacity": 4, "used": 0}}},
        "H": {"resources": {"VCPU": {"capacity": 4, "used": 0}}},
    }
