"""`GET /roost/capacity`: claims reach what it says, and no claims reach more."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from support.api_client import Answer, ApiClient
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import World, Worlds

NUMA = "R(), N1<R(VCPU {0}), V1<N1(GOLD {1}), N2<R(VCPU {2}), V2<N2(GOLD {3})"
CPU_AND_DEVICE = "resources_C=VCPU:2&resources_V=GOLD:1&group_policy=none&same_subtree=_C,_V"
TWICE = (
    "resources_C=VCPU:2&resources_V=GOLD:1&resources_D=VCPU:2&resources_W=GOLD:1"
    "&group_policy=isolate&same_subtree=_C,_V&same_subtree=_D,_W"
)
HOSTS_AND_POOLS = "H1(VCPU 4, agg A), H2(VCPU 4, agg A B), *S1(DISK 20, agg A), *S2(DISK 10, agg B)"
DEVICES = "R(), A<R(GOLD 3), B<R(GOLD 2), C<R(GOLD 1)"
NODES = "R(), N1<R(VCPU 15{0}), N2<R(VCPU 6{0})"
TWO_GROUPS = "resources_A=VCPU:{}&resources_B=VCPU:{}&group_policy={}"
TRAITS = "R(MEM 8, T1), N1<R(VCPU 4, T2), N2<R(VCPU 4)"

# World, request, the capacity, and how it is found.
CASES = {
    "flat": ("H1(VCPU 8, MEM 16), H2(VCPU 3, MEM 3)", "VCPU:2,MEM:4", 4, "counting"),
    "flat, partly used": ("H(VCPU 8 used 3+2), G(VCPU 2)", "VCPU:1", 5, "counting"),
    "reserved and ratio": ("H(VCPU 8 reserved 2 ratio 1.5)", "VCPU:2", 4, "counting"),
    "max_unit": ("H(VCPU 8 max 2)", "VCPU:2", 4, "counting"),
    "above max_unit": ("H(VCPU 8 max 2)", "VCPU:3", 0, "counting"),
    "step_size": ("H(VCPU 8 min 3 step 3)", "VCPU:3", 2, "counting"),
    "nested": ("R(DISK 9), N1<R(VCPU 4), N2<R(VCPU 3)", "VCPU:2,DISK:2", 3, "counting"),
    "groups": ("R(DISK 9), N1<R(VCPU 4), N2<R(VCPU 3)", "resources=DISK:2&resources_A=VCPU:2", 3,
               "counting"),
    "equal groups, together": (NODES.format(""), TWO_GROUPS.format(3, 3, "none"), 3, "counting"),
    "equal groups, max_unit": (NODES.format(" max 4"), TWO_GROUPS.format(3, 3, "none"), 2,
                               "counting"),
    "isolated": (DEVICES, "resources_A=GOLD:1&resources_B=GOLD:1&group_policy=isolate", 3,
                 "counting"),
    "three isolated": (
        DEVICES,
        "resources_A=GOLD:1&resources_B=GOLD:1&resources_C=GOLD:1&group_policy=isolate",
        1, "counting"),
    "isolated, other amounts": ("R(), N1<R(VCPU 6), N2<R(VCPU 6)",
                                TWO_GROUPS.format(4, 2, "isolate"), 2, "packing"),
    "other amounts": ("R(), N1<R(VCPU 6), N2<R(VCPU 6)", TWO_GROUPS.format(4, 2, "none"), 2,
                      "packing"),
    "other amounts, no remainder helps": (
        "R(), N1<R(VCPU 7), N2<R(VCPU 5)", TWO_GROUPS.format(4, 2, "none"), 1, "packing"),
    "other amounts, searched": (
        "R(), N1<R(VCPU 12), N2<R(VCPU 12)", TWO_GROUPS.format(5, 3, "none"), 2, "packing"),
    "with and without suffix": ("R(VCPU 7)", "resources=VCPU:1&resources_X=VCPU:2", 2, "packing"),
    "same_subtree": (NUMA.format(4, 1, 2, 8), CPU_AND_DEVICE, 2, "counting"),
    "same_subtree, wrong sides": (NUMA.format(8, 0, 0, 8).replace(" 0)", " 1 reserved 1)"),
                                  CPU_AND_DEVICE, 0, "counting"),
    "two of same_subtree, isolated": (NUMA.format(4, 4, 8, 4), TWICE, 2, "packing"),
    "same_subtree without resources": (
        "R(), N1<R(T1), V1<N1(GOLD 2), N2<R(), V2<N2(GOLD 5)",
        "resources_V=GOLD:1&required_N=T1&group_policy=none&same_subtree=_N,_V", 2, "counting"),
    "pools": (HOSTS_AND_POOLS, "VCPU:1,DISK:5", 6, "flow"),
    "pools suffice": (HOSTS_AND_POOLS, "VCPU:2,DISK:5", 4, "flow"),
    "own disk and a pool": ("H(VCPU 8, DISK 12, agg A), *S(DISK 10, agg A)", "VCPU:1,DISK:5", 4,
                            "flow"),
    "two classes from pools": (HOSTS_AND_POOLS + ", *I(GOLD 3, agg A)", "VCPU:1,DISK:5,GOLD:1", 3,
                               "flow"),
    "a pool alone": ("H(VCPU 4, agg A), *S(DISK 20, agg A)", "DISK:5", 4, "flow"),
    "isolation beside a pool": (
        "R(agg A), X<R(GOLD 2), Y<R(GOLD 2), *S(DISK 99, agg A)",
        "resources=DISK:5&resources_A=GOLD:1&resources_B=GOLD:1&group_policy=isolate", 2, "flow"),
    "isolated, a pool elsewhere": (
        "R(), X<R(VCPU 2), Y<R(VCPU 16), G(VCPU 1, agg A), *S(VCPU 8, agg A)",
        "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=isolate", 3, "flow"),
    "same_subtree on a pool": (
        "H(VCPU 3, agg A), G(VCPU 3), *S(T1, agg A)",
        "resources=VCPU:1&required_A=T1&required_B=T1&group_policy=none&same_subtree=_A,_B", 3,
        "flow"),
    "required traits on several providers": (TRAITS, "resources=VCPU:1,MEM:1&required=T1,T2", 4,
                                             "packing"),
    "a required trait on every candidate": (TRAITS, "resources=VCPU:1,MEM:1&required=T1", 8,
                                            "counting"),
    "a required trait, and a pool": (
        "H(VCPU 4, agg A, T1), G(VCPU 4, agg A), *S(DISK 40, agg A)",
        "resources=VCPU:1,DISK:5&required=T1", 4, "flow"),
    "in_tree": ("H(VCPU 4), G(VCPU 4)", "resources=VCPU:1&in_tree=<G>", 4, "counting"),
    "member_of": ("H(VCPU 4, agg A), G(VCPU 4)", "resources=VCPU:1&member_of={A}", 4, "counting"),
    "root_required": ("H(VCPU 4, T1), G(VCPU 4)", "resources=VCPU:1&root_required=!T1", 4,
                      "counting"),
    "nothing": ("H(VCPU 4)", "VCPU:5", 0, "counting"),
}  # fmt: skip


def capacity(world: World, query: str, more: str = "") -> Answer:
    return world.api.get(f"/roost/capacity?{write_query(query)}{more}")


def claim(api: ApiClient, allocations: Any) -> str:
    consumer = str(uuid4())
    body = {
        "allocations": allocations,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{consumer}", body).status == 204
    return consumer


def candidates(world: World, query: str) -> list[Any]:
    answer = world.api.get(f"/allocation_candidates?{write_query(query)}")
    return [candidate["allocations"] for candidate in answer.json["allocation_requests"]]


@pytest.mark.parametrize("name", CASES)
def test_the_capacity_of_each_kind_of_request_is_exact(worlds: Worlds, name: str) -> None:
    text, query, fits, method = CASES[name]
    answer = capacity(worlds(text), query).json
    assert (answer["fits"], answer["exact"], answer["method"]) == (fits, True, method)
    assert "at_most" not in answer
    assert (answer["limited_by"] is None) == (fits == 0)


@pytest.mark.parametrize("name", CASES)
def test_claims_reach_the_capacity_and_then_no_candidate_is_left(worlds: Worlds, name: str) -> None:
    text, query, fits, _ = CASES[name]
    world = worlds(text)
    consumers: list[str] = []
    try:
        for left in range(fits, 0, -1):
            for allocations in candidates(world, query):
                consumers.append(claim(world.api, allocations))
                # Of all candidates, one keeps the room that the best sequence needs.
                if capacity(world, query).json["fits"] == left - 1:
                    break
                world.api.delete(f"/allocations/{consumers.pop()}")
            else:
                pytest.fail(f"no candidate leaves room for {left - 1} more consumers")
        assert candidates(world, query) == []
    finally:
        for consumer in consumers:
            world.api.delete(f"/allocations/{consumer}")


def test_roots_have_all_their_pools_to_themselves(worlds: Worlds) -> None:
    answer = capacity(worlds(HOSTS_AND_POOLS), "VCPU:1,DISK:5", "&by=root").json
    assert answer["fits"] == 6
    assert {row["root"]["uuid"]: row["fits"] for row in answer["roots"]} == {
        provider_uuid("H1"): 4,
        provider_uuid("H2"): 4,
    }
    assert answer["next"] is None


def test_roots_without_room_are_not_listed_and_pages_follow_each_other(worlds: Worlds) -> None:
    world = worlds("H1(VCPU 4), H2(VCPU 1), H3(VCPU 2), H4(VCPU 9)")
    first = capacity(world, "VCPU:2", "&by=root&page_limit=2").json
    assert first["fits"] == 7
    second = capacity(world, "VCPU:2", f"&by=root&page_limit=2&marker={first['next']}").json
    rows = [*first["roots"], *second["roots"]]
    assert second["next"] is None
    assert [row["root"]["uuid"] for row in rows] == sorted(
        provider_uuid(name) for name in ("H1", "H3", "H4")
    )
    assert sum(row["fits"] for row in rows) == 7
    assert all(row["root"]["name"] for row in rows)


def test_without_by_no_root_is_listed(worlds: Worlds) -> None:
    answer = capacity(worlds("H(VCPU 4)"), "VCPU:2").json
    assert (answer["fits"], answer["roots"], answer["next"]) == (2, [], None)


def test_the_limit_of_the_query_does_not_count(worlds: Worlds) -> None:
    answer = capacity(worlds("H(VCPU 4), G(VCPU 4)"), "resources=VCPU:1&limit=1").json
    assert answer["fits"] == 8


@pytest.mark.parametrize(
    ("drawn", "query", "classes", "text"),
    [
        ("H(VCPU 8, MEM 2)", "VCPU:1,MEM:1", ["MEMORY_MB"], "More MEMORY_MB lets more in."),
        (
            "H1(VCPU 8, MEM 2), H2(VCPU 8, MEM 3), H3(VCPU 1, MEM 9)",
            "VCPU:1,MEM:1",
            ["MEMORY_MB", "VCPU"],
            "More MEMORY_MB or more VCPU lets more in, each by itself.",
        ),
        (
            "H(VCPU 4, MEM 4)",
            "VCPU:1,MEM:1",
            ["VCPU", "MEMORY_MB"],
            "More VCPU and MEMORY_MB together let more in.",
        ),
        # A local disk and a pool: the pool has enough for one consumer more, VCPU for many.
        (
            "H(VCPU 9, DISK 2, agg A), *S(DISK 2, agg A)",
            "VCPU:1,DISK:2",
            ["DISK_GB"],
            "More DISK_GB lets more in.",
        ),
        (HOSTS_AND_POOLS, "VCPU:1,DISK:5", ["DISK_GB"], "More DISK_GB lets more in."),
        # More VCPU lets more into the first host, and a larger pool lets more into the second.
        (
            "H1(VCPU 1, DISK 9), H2(VCPU 9, agg A), *S(DISK 2, agg A)",
            "VCPU:1,DISK:1",
            ["VCPU", "DISK_GB"],
            "More VCPU or more DISK_GB lets more in, each by itself.",
        ),
    ],
)
def test_more_of_the_classes_that_limit_lets_more_in(
    worlds: Worlds, drawn: str, query: str, classes: list[str], text: str
) -> None:
    assert capacity(worlds(drawn), query).json["limited_by"] == {
        "resource_class": classes[0],
        "resource_classes": classes,
        "together": "together" in text,
        "text": text,
    }


def test_an_overcommitted_provider_holds_nothing_and_takes_nothing_from_others(
    worlds: Worlds,
) -> None:
    world = worlds("R(), N1<R(VCPU 8 used 6), N2<R(VCPU 3)")
    path = f"/resource_providers/{provider_uuid('N1')}/inventories/VCPU"
    inventory = world.api.get(path).json
    assert world.api.put(path, {**inventory, "total": 2}).status == 200
    try:
        assert capacity(world, "VCPU:1").json["fits"] == 3
    finally:
        inventory["resource_provider_generation"] = world.api.get(path).json[
            "resource_provider_generation"
        ]
        world.api.put(path, inventory)


def test_a_capacity_that_takes_too_long_has_two_bounds(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.search.capacity.program._MOVES_MAX", -1)
    world = worlds("R(), N1<R(VCPU 12), N2<R(VCPU 12)")
    answer = capacity(world, TWO_GROUPS.format(5, 3, "none"), "&by=root").json
    assert (answer["fits"], answer["at_most"], answer["exact"]) == (2, 3, False)
    assert answer["method"] == "bounds"
    (root,) = answer["roots"]
    assert (root["fits"], root["at_most"]) == (2, 3)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("resources=VCPU:1&by=host", "by is 'host'. Send `by=root`, or leave it out."),
        ("resources=VCPU:1&by=root&by=root", "by may be sent once."),
        ("resources=VCPU:1&by=root&page_limit=0", "Send a number from 1 to 10000."),
        ("resources=VCPU:1&by=root&marker=%FF", ""),
        ("resources=VCPU:1&page_limit=-5", "Send a number from 1 to 10000."),
        ("resources=VCPU:1&marker=junk!", "marker is not from an answer of this server."),
        ("resources=NOPE:1", "No such resource class NOPE."),
        ("resources=VCPU:1&required=CUSTOM_NOPE", "No such trait(s): CUSTOM_NOPE."),
        ("resources=VCPU:0", "requires amount >= 1"),
        ("by=root", "There must be at least one resources"),
        ("resources=VCPU:1&ask=1", "Invalid query string parameters"),
    ],
)
def test_a_bad_question_is_refused(worlds: Worlds, parameters: str, sentence: str) -> None:
    answer = worlds("H(VCPU 4)").api.get(f"/roost/capacity?{parameters}")
    assert answer.status == 400
    assert sentence in answer.detail
    assert answer.json["errors"][0]["code"]


def test_absurd_amounts_are_counted(worlds: Worlds) -> None:
    huge = "VCPU 2147483647 ratio 1000000000.0"
    world = worlds(", ".join(f"H{number}({huge})" for number in range(12)))
    answer = capacity(world, "VCPU:1", "&by=root")
    assert (answer.status, len(answer.json["roots"])) == (200, 12)
    assert world.api.get("/roost/fragmentation?ask=resources%3DVCPU:1").status == 200


def test_an_empty_world_holds_nothing(worlds: Worlds) -> None:
    answer = capacity(worlds("H()"), "VCPU:1", "&by=root").json
    assert (answer["fits"], answer["exact"], answer["roots"]) == (0, True, [])
