"""Seed document "Return resources of entire trees in Placement": its cases and answers."""

from __future__ import annotations

from typing import Any

import pytest

from roost.demo.drawings import drawings
from roost.demo.world import World
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import SeedWorld, load_seed

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
both_cases = pytest.mark.parametrize(
    "case",
    [drawings()["entire-trees-case1"], drawings()["entire-trees-case2"]],
    ids=["case1", "case2"],
)

# The document writes MEMORY_MB=2048, which the server refuses.
TWO_NODES = "resources1=PCPU:4,MEMORY_MB:2048&resources2=PCPU:4,MEMORY_MB:2048"
APART = f"{TWO_NODES}&group_policy=isolate"
TOGETHER = f"{TWO_NODES}&group_policy=none"

# The document counts candidates that differ in their mappings only as one.
NODE_EACH = """
    1. NUMA_NODE_0 (PCPU, MEMORY_MB) + NUMA_NODE_1 (PCPU, MEMORY_MB)
       {1=NUMA_NODE_0 2=NUMA_NODE_1}
    2. NUMA_NODE_0 (PCPU, MEMORY_MB) + NUMA_NODE_1 (PCPU, MEMORY_MB)
       {1=NUMA_NODE_1 2=NUMA_NODE_0}
"""
ONE_NODE = """
    3. NUMA_NODE_0 (PCPU:8, MEMORY_MB:4096) {1=NUMA_NODE_0 2=NUMA_NODE_0}
    4. NUMA_NODE_1 (PCPU:8, MEMORY_MB:4096) {1=NUMA_NODE_1 2=NUMA_NODE_1}
"""
HALF = {"resources": {"PCPU": 4, "MEMORY_MB": 2048}}
WHOLE = {"resources": {"PCPU": 8, "MEMORY_MB": 4096}}

# The summaries as printed, with two corrections. A root has no parent, where the document says "".
# The physical function is below the first NUMA node as in the drawing, where the document prints
# the second.
NODE = {
    "resources": {"PCPU": {"used": 0, "capacity": 8}, "MEMORY_MB": {"used": 0, "capacity": 6144}},
    "traits": [],
    "parent_provider_uuid": "CN_NAME",
    "root_provider_uuid": "CN_NAME",
}
BELOW_THE_COMPUTE_NODE: dict[str, Any] = {
    "NUMA_NODE_0": NODE,
    "NUMA_NODE_1": NODE,
    "PHYS_FUNC_PCI_ID": {
        "resources": {"SRIOV_NET_VF": {"used": 0, "capacity": 16}},
        "traits": [],
        "parent_provider_uuid": "NUMA_NODE_0",
        "root_provider_uuid": "CN_NAME",
    },
}
COMPUTE_NODE: dict[str, Any] = {
    "traits": [],
    "parent_provider_uuid": None,
    "root_provider_uuid": "CN_NAME",
}


def taken(seed: SeedWorld, request: str, version: str) -> list[Any]:
    """The different allocations of the candidates."""
    found: list[Any] = []
    for entry in seed.body(request, version)["allocation_requests"]:
        if entry["allocations"] not in found:
            found.append(entry["allocations"])
    return sorted(found, key=lambda allocations: (-len(allocations), *allocations))


def summaries(seed: SeedWorld, request: str, version: str) -> Any:
    return seed.body(request, version)["provider_summaries"]


# Problem description.


@on_sqlite
@both_cases
def test_problem_description_a_numa_node_for_each_group(
    database: Database, api: ApiClient, case: World
) -> None:
    seed = load_seed(database, api, case)
    seed.check(APART, NODE_EACH, trees="CN_NAME", since="1.29")
    for version in ("1.29", "1.39"):
        assert taken(seed, APART, version) == [{"NUMA_NODE_0": HALF, "NUMA_NODE_1": HALF}]
    # The document expects the candidate before 1.29 as well, without the compute node. But before
    # 1.29 no candidate takes from two providers of one tree.
    seed.check_none(APART, since="1.25", until="1.28")


@on_sqlite
@both_cases
def test_problem_description_the_request_as_printed_is_refused(
    database: Database, api: ApiClient, case: World
) -> None:
    seed = load_seed(database, api, case)
    problem = "Badly formed resources parameter."
    assert problem in seed.refusal(APART.replace("MEMORY_MB:", "MEMORY_MB="))


@on_sqlite
@both_cases
def test_problem_description_the_compute_node_is_not_in_the_summaries(
    database: Database, api: ApiClient, case: World
) -> None:
    seed = load_seed(database, api, case)
    seed.check(TOGETHER, ONE_NODE, trees="CN_NAME", since="1.25", until="1.28")
    node = {"resources": NODE["resources"], "traits": []}
    assert summaries(seed, TOGETHER, "1.28") == {"NUMA_NODE_0": node, "NUMA_NODE_1": node}


# Proposed change.


@on_sqlite
@both_cases
def test_proposed_change_the_candidates(database: Database, api: ApiClient, case: World) -> None:
    # The document prints three answers to a request with `isolate`. The second and the third
    # answer belong to `none`.
    seed = load_seed(database, api, case)
    seed.check(TOGETHER, NODE_EACH + ONE_NODE, trees="CN_NAME", since="1.29")
    for version in ("1.29", "1.39"):
        assert taken(seed, TOGETHER, version) == [
            {"NUMA_NODE_0": HALF, "NUMA_NODE_1": HALF},
            {"NUMA_NODE_0": WHOLE},
            {"NUMA_NODE_1": WHOLE},
        ]


@on_sqlite
def test_proposed_change_1_resource_providers_without_inventories(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["entire-trees-case1"])
    for version in ("1.29", "1.39"):
        for request in (APART, TOGETHER):
            assert summaries(seed, request, version) == {
                "CN_NAME": {"resources": {}, **COMPUTE_NODE},
                **BELOW_THE_COMPUTE_NODE,
            }


@on_sqlite
def test_proposed_change_2_all_resources(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["entire-trees-case2"])
    for version in ("1.29", "1.39"):
        for request in (APART, TOGETHER):
            assert summaries(seed, request, version) == {
                "CN_NAME": {"resources": {"VCPU": {"used": 0, "capacity": 8}}, **COMPUTE_NODE},
                **BELOW_THE_COMPUTE_NODE,
            }


# Work Items.


@on_sqlite
@both_cases
def test_work_items_step_by_step(database: Database, api: ApiClient, case: World) -> None:
    seed = load_seed(database, api, case)
    request = "resources=PCPU:4"
    seed.check(
        request,
        """
        1. NUMA_NODE_0 (PCPU)
        2. NUMA_NODE_1 (PCPU)
        """,
        trees="CN_NAME",
        since="1.10",
    )
    asked_for, all_classes = {"PCPU"}, {"PCPU", "MEMORY_MB"}
    nodes = {"NUMA_NODE_0": all_classes, "NUMA_NODE_1": all_classes}
    function = {"PHYS_FUNC_PCI_ID": {"SRIOV_NET_VF"}}
    steps = {
        "1.26": {"NUMA_NODE_0": asked_for, "NUMA_NODE_1": asked_for},
        # 1.27 adds all resource classes. 1.29 adds the rest of the tree.
        "1.27": nodes,
        "1.28": nodes,
        "1.29": {
            "CN_NAME": {"VCPU"} if case is drawings()["entire-trees-case2"] else set(),
            **nodes,
            **function,
        },
    }
    for version, step in steps.items():
        shown = summaries(seed, request, version)
        assert {name: set(shown[name]["resources"]) for name in shown} == step, version


# Usages, which all printed answers leave at zero. The type of a sum differs between databases.


@both_cases
def test_used_is_the_sum_of_the_allocations(
    database: Database, api: ApiClient, case: World
) -> None:
    seed = load_seed(database, api, case)
    body = {
        "allocations": {case.uuid("NUMA_NODE_0"): HALF},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{case.uuid('instance')}", body).status == 204
    for version in ("1.29", "1.39"):
        # The claim leaves one half of the first node.
        assert taken(seed, TOGETHER, version) == [
            {"NUMA_NODE_0": HALF, "NUMA_NODE_1": HALF},
            {"NUMA_NODE_1": WHOLE},
        ]
        shown = summaries(seed, TOGETHER, version)
        assert shown["NUMA_NODE_0"]["resources"] == {
            "PCPU": {"used": 4, "capacity": 8},
            "MEMORY_MB": {"used": 2048, "capacity": 6144},
        }
        assert shown["NUMA_NODE_1"] == NODE
