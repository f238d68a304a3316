"""Kept scans of hosts follow every fact of the sharing providers that reach these hosts.

Each tree has a block of its own, and the pool is the last one. A change of the pool leaves the
blocks of all hosts, the numbers of all blocks and the tables of sets as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from support.api_client import ApiClient
from support.worlds.notation import aggregate_uuid, long_name
from support.worlds.world import Configured, claim, replace

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

SHARES = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True)
class Case:
    """A change of the pool P, and a question with its candidates before and after."""

    world: str
    change: Callable[[ApiClient], object]
    question: str
    before: list[str]
    after: list[str]


CASES = {
    "full": Case(
        "A(VCPU 8, agg Q), *P(DISK 8, agg Q)",
        lambda api: claim(api, "P", "DISK_GB", 8),
        "VCPU:1,DISK:1",
        ["A+P"],
        [],
    ),
    "full of one of two classes": Case(
        "A(VCPU 8, MEM 8, agg Q), *P(DISK 8, MEM 8, agg Q)",
        lambda api: claim(api, "P", "MEMORY_MB", 8),
        "VCPU:1,DISK:1,MEM:1",
        ["A+P", "A+P"],
        ["A+P"],
    ),
    "in another aggregate": Case(
        "A(VCPU 8, agg Q), B(VCPU 8, agg R), *P(DISK 8, agg Q)",
        lambda api: replace(api, "P", "aggregates", [aggregate_uuid("R")]),
        "VCPU:1,DISK:1",
        ["A+P"],
        ["B+P"],
    ),
    "with other traits": Case(
        "A(VCPU 8, agg Q), *O(GOLD 8, T2, agg R), *P(DISK 8, T1, agg Q)",
        lambda api: replace(api, "P", "traits", [SHARES, long_name("T2")]),
        "VCPU:1,DISK:1&required=T2",
        [],
        ["A+P"],
    ),
    "too small for two groups": Case(
        "A(VCPU 8, agg Q), *P(DISK 8, agg Q)",
        lambda api: claim(api, "P", "DISK_GB", 4),
        "VCPU:1&resources_X=DISK:3&resources_Y=DISK:3&group_policy=none",
        ["A+P"],
        [],
    ),
}


@pytest.fixture(autouse=True)
def _one_tree_per_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 1)
    monkeypatch.setattr("roost.search.forest.forest.BLOCK_PROVIDERS", 1)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_hosts_take_from_the_pool_as_it_is_now(configured: Configured, case: Case) -> None:
    world = configured(case.world)

    def found() -> list[str]:
        return ["+".join(sorted(each.allocations)) for each in world.ask(case.question).candidates]

    assert found() == case.before
    case.change(world.api)
    assert found() == case.after
