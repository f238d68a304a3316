"""Seed document "ComputeDriver.update_provider_tree": the candidates of its three trees.

The document lists no candidates. It names the sharing providers that belong to a compute node.
Such a provider has an aggregate in common with any provider of the compute node's tree. Other
providers of the sharing tree, and other trees with the same aggregate, do not belong to it.
"""

from __future__ import annotations

import pytest

from roost.demo.drawings import drawings
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import SeedWorld, load_seed

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"
INGRESS = "NET_BW_IGR_KILOBIT_PER_SEC"


@pytest.fixture
def seed(database: Database, api: ApiClient) -> SeedWorld:
    return load_seed(database, api, drawings()["update-provider-tree"])


# The Method: the first drawing. The reference service fails on some of these requests, where a
# sharing provider is a child in a tree that cannot give the rest. By the rules the child shares.


def test_the_method_storage_is_shared_with_both_compute_nodes(seed: SeedWorld) -> None:
    # NUMA2 of CN1 and NUMA1 of CN2 are in agg1, so the storage reaches both trees as a whole.
    seed.check(
        "resources=VCPU:1,DISK_GB:10",
        """
        1. CN1/NUMA1 (VCPU) + SSP (DISK_GB)
        2. CN1/NUMA2 (VCPU) + SSP (DISK_GB)
        3. CN2/NUMA1 (VCPU) + SSP (DISK_GB)
        4. CN2/NUMA2 (VCPU) + SSP (DISK_GB)
        """,
        trees="CN1 SHR_ROOT CN2",
        since="1.10",
    )


def test_the_method_storage_is_shared_with_granular_groups(seed: SeedWorld) -> None:
    seed.check(
        "resources1=VCPU:1&resources2=DISK_GB:10&group_policy=isolate",
        """
        1. CN1/NUMA1 (VCPU) + SSP (DISK_GB) {1=CN1/NUMA1 2=SSP}
        2. CN1/NUMA2 (VCPU) + SSP (DISK_GB) {1=CN1/NUMA2 2=SSP}
        3. CN2/NUMA1 (VCPU) + SSP (DISK_GB) {1=CN2/NUMA1 2=SSP}
        4. CN2/NUMA2 (VCPU) + SSP (DISK_GB) {1=CN2/NUMA2 2=SSP}
        """,
        trees="CN1 SHR_ROOT CN2",
        since="1.25",
    )


def test_the_method_each_compute_node_has_bandwidth_of_its_own(seed: SeedWorld) -> None:
    # Both classes come from the same provider, because no compute node has both BW1 and BW2.
    seed.check(
        f"resources=VCPU:1,{EGRESS}:1000,{INGRESS}:1000",
        f"""
        1. CN1/NUMA1 (VCPU) + BW1 ({EGRESS}, {INGRESS})
        2. CN1/NUMA2 (VCPU) + BW1 ({EGRESS}, {INGRESS})
        3. CN2/NUMA1 (VCPU) + BW2 ({EGRESS}, {INGRESS})
        4. CN2/NUMA2 (VCPU) + BW2 ({EGRESS}, {INGRESS})
        """,
        trees="CN1 SHR_ROOT CN2",
        since="1.10",
    )


def test_the_method_storage_and_bandwidth_are_two_providers_of_one_tree(seed: SeedWorld) -> None:
    request = f"resources=VCPU:1,DISK_GB:10,{EGRESS}:1000"
    seed.check(
        request,
        f"""
        1. CN1/NUMA1 (VCPU) + SSP (DISK_GB) + BW1 ({EGRESS})
        2. CN1/NUMA2 (VCPU) + SSP (DISK_GB) + BW1 ({EGRESS})
        3. CN2/NUMA1 (VCPU) + SSP (DISK_GB) + BW2 ({EGRESS})
        4. CN2/NUMA2 (VCPU) + SSP (DISK_GB) + BW2 ({EGRESS})
        """,
        trees="CN1 SHR_ROOT CN2",
        since="1.29",
    )
    seed.check_none(request, since="1.10", until="1.28")


def test_the_method_the_sharing_tree_is_a_tree_like_any_other(seed: SeedWorld) -> None:
    request = f"resources=DISK_GB:10,{EGRESS}:1000"
    seed.check(
        request,
        f"""
        1. SSP (DISK_GB) + BW1 ({EGRESS})
        2. SSP (DISK_GB) + BW2 ({EGRESS})
        """,
        trees="SHR_ROOT",
        since="1.29",
    )
    seed.check_none(request, since="1.10", until="1.28")
    # The sharing tree has both BW1 and BW2.
    seed.check(
        f"resources={EGRESS}:1000,{INGRESS}:1000",
        f"""
        1. BW1 ({EGRESS}, {INGRESS})
        2. BW2 ({EGRESS}, {INGRESS})
        3. BW1 ({EGRESS}) + BW2 ({INGRESS})
        4. BW2 ({EGRESS}) + BW1 ({INGRESS})
        """,
        trees="SHR_ROOT",
        since="1.29",
    )
    seed.check(
        "resources=DISK_GB:10&in_tree=<SHR_ROOT uuid>",
        "1. SSP (DISK_GB)",
        trees="SHR_ROOT",
        since="1.31",
    )


def test_the_method_the_aggregates_of_children_span_no_tree(seed: SeedWorld) -> None:
    seed.check(
        "resources=VCPU:1,DISK_GB:10&member_of=<agg1 uuid>",
        """
        1. CN1/NUMA2 (VCPU) + SSP (DISK_GB)
        2. CN2/NUMA1 (VCPU) + SSP (DISK_GB)
        """,
        trees="CN1 SHR_ROOT CN2",
        since="1.21",
    )
    # The storage is not in agg2.
    seed.check_none("resources=VCPU:1,DISK_GB:10&member_of=<agg2 uuid>", since="1.21")


# The Method: the second drawing, the providers that belong to CN1.


def test_the_method_cn1_has_its_tree_its_storage_and_its_bandwidth(seed: SeedWorld) -> None:
    # The drawing shows the sharing providers as roots. The summaries show their whole own tree.
    from_groups = f"SSP (DISK_GB) + BW1 ({EGRESS})"
    seed.check(
        f"""resources=SRIOV_NET_VF:1&in_tree=<CN1 uuid>
           &resources1=DISK_GB:10&resources2={EGRESS}:1000
           &group_policy=none""",
        f"""
        1. CN1/PF1 (SRIOV_NET_VF) + {from_groups} {{''=CN1/PF1 1=SSP 2=BW1}}
        2. CN1/PF2 (SRIOV_NET_VF) + {from_groups} {{''=CN1/PF2 1=SSP 2=BW1}}
        3. CN1/PF3 (SRIOV_NET_VF) + {from_groups} {{''=CN1/PF3 1=SSP 2=BW1}}
        4. CN1/PF4 (SRIOV_NET_VF) + {from_groups} {{''=CN1/PF4 1=SSP 2=BW1}}
        """,
        trees="CN1 SHR_ROOT",
        since="1.31",
    )


def test_the_method_the_list_of_providers_shows_the_providers_of_cn1(
    seed: SeedWorld, api: ApiClient
) -> None:
    def listed(query: str) -> set[str]:
        found = api.get(f"/resource_providers?{query}").json["resource_providers"]
        return {provider["name"].removeprefix(f"{seed.world.name}/") for provider in found}

    assert listed(f"in_tree={seed.world.uuid('CN1')}") == {
        *("CN1", "CN1/NUMA1", "CN1/NUMA2"),
        *("CN1/PF1", "CN1/PF2", "CN1/PF3", "CN1/PF4"),
    }
    aggregates = ",".join(seed.world.uuid(name) for name in ("agg1", "agg2"))
    sharing = "required=MISC_SHARES_VIA_AGGREGATE"
    assert listed(f"member_of=in:{aggregates}&{sharing}") == {"SSP", "BW1"}
