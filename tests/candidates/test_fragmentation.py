"""`GET /roost/fragmentation`: what is free, and what of it requests can use."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from support.api_client import Answer
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import World, Worlds


def fragmentation(world: World, *queries: str) -> Answer:
    asks = "&".join(f"ask={quote(write_query(query), safe='')}" for query in queries)
    return world.api.get(f"/roost/fragmentation?{asks}")


def classes(world: World, *queries: str) -> dict[str, Any]:
    found: dict[str, Any] = fragmentation(world, *queries).json["resource_classes"]
    return found


def test_free_amounts_are_usable_where_a_question_has_a_candidate(worlds: Worlds) -> None:
    world = worlds("H1(VCPU 8 used 2, MEM 4), H2(VCPU 3, MEM 9 used 1), H3(MEM 5)")
    assert classes(world, "VCPU:4", "VCPU:1,MEM:8", "MEM:99") == {
        "MEMORY_MB": {"free": 17, "usable": [4, 8, 0]},
        "VCPU": {"free": 9, "usable": [6, 3, 0]},
    }


def test_rules_between_groups_count(worlds: Worlds) -> None:
    world = worlds("R(), N1<R(VCPU 3), N2<R(VCPU 3), Q(), M<Q(VCPU 6)")
    two = "resources_A=VCPU:3&resources_B=VCPU:3&group_policy="
    assert classes(world, f"{two}isolate", f"{two}none") == {
        "VCPU": {"free": 12, "usable": [6, 12]}
    }


def test_the_trees_of_pools_that_lend_are_usable(worlds: Worlds) -> None:
    world = worlds("H(VCPU 4, agg A), *S(DISK 20 used 5, agg A), *T(DISK 9, agg B)")
    assert classes(world, "VCPU:1,DISK:5") == {
        "DISK_GB": {"free": 24, "usable": [15]},
        "VCPU": {"free": 4, "usable": [4]},
    }


def test_roots_with_inventory_and_without_usage_are_empty(worlds: Worlds) -> None:
    world = worlds("H1(VCPU 8 used 2), H2(VCPU 3), H3(), R(), N<R(VCPU 4 used 1), M<R(MEM 3)")
    assert fragmentation(world, "VCPU:1").json["empty_roots"] == 1


def test_free_is_never_negative(worlds: Worlds) -> None:
    world = worlds("H(VCPU 8 used 6), G(VCPU 3)")
    path = f"/resource_providers/{provider_uuid('H')}/inventories/VCPU"
    inventory = world.api.get(path).json
    assert world.api.put(path, {**inventory, "total": 2}).status == 200
    try:
        assert classes(world, "VCPU:1") == {"VCPU": {"free": 3, "usable": [3]}}
    finally:
        inventory["resource_provider_generation"] = world.api.get(path).json[
            "resource_provider_generation"
        ]
        world.api.put(path, inventory)


def test_without_questions_only_free_amounts_are_told(worlds: Worlds) -> None:
    assert fragmentation(worlds("H(VCPU 4)")).json == {
        "resource_classes": {"VCPU": {"free": 4, "usable": []}},
        "empty_roots": 1,
    }


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("resources=VCPU:1", "Send each question as `ask`"),
        ("ask=resources%3DVCPU:1&limit=1", "'limit' is no parameter of this route."),
        ("ask=resources%3DVCPU:1&ask=resources%3DVCPU:x", "ask[1]: Requested resource VCPU"),
        (
            "ask=resources%3DNOPE:1",
            "ask[0]: Invalid resource class in resources parameter: No such",
        ),
        ("ask=", "ask[0]: There must be at least one resources"),
        ("&".join(["ask=resources%3DVCPU:1"] * 21), "A request takes 20 questions."),
    ],
)
def test_a_bad_question_is_refused(worlds: Worlds, parameters: str, sentence: str) -> None:
    answer = worlds("H(VCPU 4)").api.get(f"/roost/fragmentation?{parameters}")
    assert answer.status == 400
    assert sentence in answer.detail
