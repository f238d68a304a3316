"""Seed document "Modeling with Provider Trees": the numbered lists of the first edition.

The second edition has the same sections, except for the lists in `test_provider_trees.py`.
"""

from __future__ import annotations

import pytest

from roost.demo.drawings import drawings
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import load_seed

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:500"
HOST_AND_PORT = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:500,SRIOV_NET_VF:2"

# The list of the second drawing, which the document repeats for aggregate A.
EIGHT = """
    1. NUMA1_1 (VCPU) + CN1 (MEMORY_MB, DISK_GB)
    2. NUMA1_2 (VCPU) + CN1 (MEMORY_MB, DISK_GB)
    3. NUMA2_1 (VCPU) + CN2 (MEMORY_MB, DISK_GB)
    4. NUMA2_2 (VCPU) + CN2 (MEMORY_MB, DISK_GB)
    5. NUMA1_1 (VCPU) + CN1 (MEMORY_MB) + SS1 (DISK_GB)
    6. NUMA1_2 (VCPU) + CN1 (MEMORY_MB) + SS1 (DISK_GB)
    7. NUMA2_1 (VCPU) + CN2 (MEMORY_MB) + SS1 (DISK_GB)
    8. NUMA2_2 (VCPU) + CN2 (MEMORY_MB) + SS1 (DISK_GB)
"""


# Sharing Resource Providers.


def test_sharing_resource_providers(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["sharing"])
    seed.check(
        HOST,
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB)
        2. CN2 (VCPU, MEMORY_MB, DISK_GB)
        3. CN1 (VCPU, MEMORY_MB) + SS1 (DISK_GB)
        """,
        trees="CN1 CN2 SS1",
        since="1.10",
    )


@on_sqlite
def test_sharing_resource_providers_ss2_reaches_only_itself(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["sharing"])
    seed.check(
        "resources=DISK_GB:500",
        """
        1. CN1 (DISK_GB)
        2. CN2 (DISK_GB)
        3. SS1 (DISK_GB)
        4. SS2 (DISK_GB)
        """,
        trees="CN1 CN2 SS1 SS2",
        since="1.10",
    )


def test_sharing_resource_providers_when_a_tree_structure_is_present(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(HOST, EIGHT, trees="CN1 CN2 SS1", since="1.29")
    # The document speaks of 1.29. Before 1.29 no candidate takes from two providers of one tree.
    # Each of these candidates takes VCPU from a child and memory from its root.
    seed.check_none(HOST, since="1.10", until="1.28")


# Filtering Aggregates.


def test_filtering_aggregates_a(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(f"{HOST}&member_of=<aggA uuid>", EIGHT, trees="CN1 CN2 SS1", since="1.29")
    seed.check_none(f"{HOST}&member_of=<aggA uuid>", since="1.21", until="1.28")


def test_filtering_aggregates_b(database: Database, api: ApiClient) -> None:
    # The first edition says that SS1 is not in aggregate A, which is wrong. SS1 is not in B, as
    # the second edition says.
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(
        f"{HOST}&member_of=<aggB uuid>",
        """
        1. NUMA1_1 (VCPU) + CN1 (MEMORY_MB, DISK_GB)
        2. NUMA1_2 (VCPU) + CN1 (MEMORY_MB, DISK_GB)
        """,
        trees="CN1",
        since="1.29",
    )
    seed.check_none(f"{HOST}&member_of=<aggB uuid>", since="1.21", until="1.28")


@on_sqlite
def test_filtering_aggregates_of_a_root_spans_the_tree_from_the_first_version_on(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(
        "resources=VCPU:1&member_of=<aggA uuid>",
        """
        1. NUMA1_1 (VCPU)
        2. NUMA1_2 (VCPU)
        3. NUMA2_1 (VCPU)
        4. NUMA2_2 (VCPU)
        """,
        trees="CN1 CN2",
        since="1.21",
    )
    # The aggregate of CN1 counts for both NUMA nodes, that of NUMA2_1 not for NUMA2_2.
    seed.check(
        "resources=VCPU:1&member_of=<aggB uuid>",
        """
        1. NUMA1_1 (VCPU)
        2. NUMA1_2 (VCPU)
        3. NUMA2_1 (VCPU)
        """,
        trees="CN1 CN2",
        since="1.21",
    )


@on_sqlite
def test_filtering_aggregates_that_are_forbidden(database: Database, api: ApiClient) -> None:
    # The document is older than forbidden aggregates, which count for the tree in the same way.
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(
        f"{HOST}&member_of=!<aggB uuid>",
        """
        1. NUMA2_2 (VCPU) + CN2 (MEMORY_MB, DISK_GB)
        2. NUMA2_2 (VCPU) + CN2 (MEMORY_MB) + SS1 (DISK_GB)
        """,
        trees="CN2 SS1",
        since="1.32",
    )
    seed.check_none(f"{HOST}&member_of=!<aggA uuid>", since="1.32")
    problem = "Forbidden member_of parameters are not supported in the specified microversion"
    assert problem in seed.refusal(f"{HOST}&member_of=!<aggB uuid>", "1.31")


# Filtering by Traits.


def test_filtering_by_traits_required(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    request = f"{HOST_AND_PORT}&required=HW_NIC_ACCEL_SSL"
    seed.check(
        request,
        "1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF)",
        trees="CN1",
        since="1.29",
    )
    seed.check_none(request, since="1.17", until="1.28")


def test_filtering_by_traits_forbidden(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    request = f"{HOST_AND_PORT}&required=!HW_NIC_ACCEL_SSL"
    seed.check(
        request,
        "1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_2 (SRIOV_NET_VF)",
        trees="CN1",
        since="1.29",
    )
    seed.check_none(request, since="1.22", until="1.28")
    problem = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC."
    assert problem in seed.refusal(request, "1.21")


def test_filtering_by_traits_that_are_not_asked_for(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    seed.check(
        HOST_AND_PORT,
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF)
        2. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_2 (SRIOV_NET_VF)
        """,
        trees="CN1",
        since="1.29",
    )
    seed.check_none(HOST_AND_PORT, since="1.10", until="1.28")


@on_sqlite
def test_filtering_by_traits_of_one_provider_from_the_first_version_on(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    seed.check(
        "resources=SRIOV_NET_VF:2&required=HW_NIC_ACCEL_SSL",
        "1. NIC1_1 (SRIOV_NET_VF)",
        trees="CN1",
        since="1.17",
    )
    seed.check(
        "resources=SRIOV_NET_VF:2&required=!HW_NIC_ACCEL_SSL",
        "1. NIC1_2 (SRIOV_NET_VF)",
        trees="CN1",
        since="1.22",
    )


@on_sqlite
def test_filtering_by_traits_which_never_span_other_providers(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    # NIC1_1 gives nothing here, so its trait does not count.
    seed.check_none(f"{HOST}&required=HW_NIC_ACCEL_SSL", since="1.17")
    seed.check(
        f"{HOST}&required=!HW_NIC_ACCEL_SSL",
        "1. CN1 (VCPU, MEMORY_MB, DISK_GB)",
        trees="CN1",
        since="1.22",
    )


@on_sqlite
def test_filtering_by_traits_regardless_of_sharing(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["sharing"])
    seed.check(
        f"{HOST}&required=MISC_SHARES_VIA_AGGREGATE",
        "1. CN1 (VCPU, MEMORY_MB) + SS1 (DISK_GB)",
        trees="CN1 SS1",
        since="1.17",
    )
    seed.check(
        f"{HOST}&required=!MISC_SHARES_VIA_AGGREGATE",
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB)
        2. CN2 (VCPU, MEMORY_MB, DISK_GB)
        """,
        trees="CN1 CN2",
        since="1.22",
    )


# Granular Resource Requests.

TWO_PORTS = """resources1=SRIOV_NET_VF:1&required1=HW_NIC_ACCEL_SSL
              &resources2=SRIOV_NET_VF:1"""


def test_granular_resource_requests_isolate(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    request = f"{HOST}&{TWO_PORTS}&group_policy=isolate"
    seed.check(
        request,
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF:1) + NIC1_2 (SRIOV_NET_VF:1)
           {''=CN1 1=NIC1_1 2=NIC1_2}
        """,
        trees="CN1",
        since="1.29",
    )
    seed.check_none(request, since="1.25", until="1.28")


def test_granular_resource_requests_none(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    request = f"{HOST}&{TWO_PORTS}&group_policy=none"
    seed.check(
        request,
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF:1) + NIC1_2 (SRIOV_NET_VF:1)
           {''=CN1 1=NIC1_1 2=NIC1_2}
        2. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF:2)
           {''=CN1 1=NIC1_1 2=NIC1_1}
        """,
        trees="CN1",
        since="1.29",
    )
    seed.check_none(request, since="1.25", until="1.28")


@on_sqlite
def test_granular_resource_requests_of_cards_alone_from_the_first_version_on(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    same_card = "1. NIC1_1 (SRIOV_NET_VF:2) {1=NIC1_1 2=NIC1_1}\n"
    two_cards = "2. NIC1_1 (SRIOV_NET_VF:1) + NIC1_2 (SRIOV_NET_VF:1) {1=NIC1_1 2=NIC1_2}\n"
    together, apart = (f"{TWO_PORTS}&group_policy={policy}" for policy in ("none", "isolate"))
    seed.check(together, same_card, trees="CN1", since="1.25", until="1.28")
    seed.check(together, same_card + two_cards, trees="CN1", since="1.29")
    seed.check_none(apart, since="1.25", until="1.28")
    seed.check(apart, two_cards, trees="CN1", since="1.29")


@on_sqlite
def test_granular_resource_requests_see_only_aggregates_of_the_provider_itself(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["sharing-numa"])
    seed.check(
        "resources1=VCPU:1&member_of1=<aggB uuid>",
        "1. NUMA2_1 (VCPU) {1=NUMA2_1}",
        trees="CN2",
        since="1.25",
    )
    seed.check_none("resources1=VCPU:1&member_of1=<aggA uuid>", since="1.25")
    seed.check(
        "resources=MEMORY_MB:512,DISK_GB:500&resources1=VCPU:1&member_of1=<aggB uuid>",
        """
        1. NUMA2_1 (VCPU) + CN2 (MEMORY_MB, DISK_GB) {''=CN2 1=NUMA2_1}
        2. NUMA2_1 (VCPU) + CN2 (MEMORY_MB) + SS1 (DISK_GB) {''=CN2+SS1 1=NUMA2_1}
        """,
        trees="CN2 SS1",
        since="1.29",
    )
