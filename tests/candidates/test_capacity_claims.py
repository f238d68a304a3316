"""Claims through the API on larger clouds never reach more than the capacity, and end with none."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import uuid4

import pytest

from support.api_client import ApiClient
from support.worlds.notation import write_query
from support.worlds.world import World, Worlds

HOST = (
    "{0}(DISK 40 used {1}, agg {2}), {0}a<{0}(VCPU 8 used {3}, MEM 16), {0}x<{0}a(GOLD 3),"
    " {0}b<{0}(VCPU 8 used {4}, MEM 12, T1), {0}y<{0}b(GOLD 2)"
)
POOLS = ", *P(DISK 60, agg A), *Q(DISK 25, agg A B)"
REQUESTS = (
    "VCPU:2,MEM:3,DISK:7",
    "resources=VCPU:2,MEM:3,DISK:7&required=T1",
    "resources=DISK:5&resources_C=VCPU:2,MEM:2&resources_D=GOLD:1&group_policy=none"
    "&same_subtree=_C,_D",
    "resources_A=VCPU:3&resources_B=VCPU:2&resources_C=GOLD:1&group_policy=isolate",
    "resources=DISK:11&resources_A=DISK:6&resources_B=VCPU:1&group_policy=none",
)


def cloud() -> str:
    random = Random(7)
    hosts = [
        HOST.format(
            f"H{number}", random.randint(1, 30), "AB"[number % 2], *random.choices(range(1, 8), k=2)
        )
        for number in range(6)
    ]
    return ", ".join(hosts) + POOLS


def bounds(world: World, query: str) -> tuple[int, int]:
    answer = world.api.get(f"/roost/capacity?{write_query(query)}").json
    return answer["fits"], answer.get("at_most", answer["fits"])


def claim_at_random(api: ApiClient, query: str, random: Random) -> list[str]:
    """Claim random candidates until there is none; return the consumers."""
    consumers: list[str] = []
    while True:
        path = f"/allocation_candidates?{write_query(query)}"
        found: list[Any] = api.get(path).json["allocation_requests"]
        if not found:
            return consumers
        consumers.append(str(uuid4()))
        body = {
            "allocations": random.choice(found)["allocations"],
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert api.put(f"/allocations/{consumers[-1]}", body).status == 204


@pytest.mark.parametrize("query", REQUESTS)
def test_random_claims_never_exceed_the_capacity(worlds: Worlds, query: str) -> None:
    world = worlds(cloud())
    fits, at_most = bounds(world, query)
    assert 0 < fits <= at_most
    consumers = claim_at_random(world.api, query, Random(query))
    try:
        assert len(consumers) <= at_most
        assert bounds(world, query) == (0, 0)
    finally:
        for consumer in consumers:
            assert world.api.delete(f"/allocations/{consumer}").status == 204
    assert bounds(world, query) == (fits, at_most)
