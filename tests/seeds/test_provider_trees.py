"""Seed document "Modeling with Provider Trees": the lists that the second edition added.

The lists of its first sections are in `test_provider_trees_first_edition.py`.
"""

from __future__ import annotations

import pytest

from roost.demo.drawings import drawings
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import load_seed

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


# Filtering by Traits.


def test_filtering_by_traits_any_of_them(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["nic-traits"])
    request = """resources=VCPU:1,MEMORY_MB:512,DISK_GB:500,SRIOV_NET_VF:2
                 &required=in:HW_NIC_ACCEL_SSL,HW_NIC_ACCEL_TLS"""
    seed.check(
        request,
        "1. CN1 (VCPU, MEMORY_MB, DISK_GB) + NIC1_1 (SRIOV_NET_VF)",
        trees="CN1",
        since="1.39",
    )
    assert "only supported since microversion 1.39" in seed.refusal(request, "1.38")


def test_filtering_by_traits_any_of_them_with_required_and_forbidden_traits(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["root-traits"])
    resources = "resources=VCPU:1,DISK_GB:100"
    any_of = "required=in:HW_CPU_X86_AVX,HW_CPU_X86_AVX2"
    flat = "1. NON_NUMA_CN (VCPU, DISK_GB)\n"
    nested = "2. NUMA_CN (DISK_GB) + NUMA2 (VCPU)\n"
    seed.check(
        f"{resources}&{any_of}&required=STORAGE_DISK_SSD",
        flat + nested,
        trees="NON_NUMA_CN NUMA_CN",
        since="1.39",
    )
    seed.check(
        f"{resources}&{any_of}&required=STORAGE_DISK_SSD,!CUSTOM_WINDOWS_LICENSE_POOL",
        nested,
        trees="NUMA_CN",
        since="1.39",
    )


# Filtering by Tree.

IN_CN1 = """
    1. NUMA1_1 (VCPU) + CN1 (DISK_GB)
    2. NUMA1_2 (VCPU) + CN1 (DISK_GB)
"""


@pytest.mark.parametrize("member", ["CN1", "NUMA1_1", "NUMA1_2"])
def test_filtering_by_tree(database: Database, api: ApiClient, member: str) -> None:
    seed = load_seed(database, api, drawings()["in-tree"])
    request = f"resources=VCPU:1,DISK_GB:50&in_tree=<{member} uuid>"
    seed.check(request, IN_CN1, trees="CN1", since="1.31")
    assert "Invalid query string parameters: " in seed.refusal(request, "1.30")


def test_filtering_by_tree_binds_the_unsuffixed_resources_only(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["in-tree"])
    seed.check(
        """resources=VCPU:1&in_tree=<CN1 uuid>
          &resources1=DISK_GB:10""",
        """
        1. NUMA1_1 (VCPU) + CN1 (DISK_GB) {''=NUMA1_1 1=CN1}
        2. NUMA1_2 (VCPU) + CN1 (DISK_GB) {''=NUMA1_2 1=CN1}
        3. NUMA1_1 (VCPU) + SS1 (DISK_GB) {''=NUMA1_1 1=SS1}
        4. NUMA1_2 (VCPU) + SS1 (DISK_GB) {''=NUMA1_2 1=SS1}
        5. NUMA1_1 (VCPU) + SS2 (DISK_GB) {''=NUMA1_1 1=SS2}
        6. NUMA1_2 (VCPU) + SS2 (DISK_GB) {''=NUMA1_2 1=SS2}
        """,
        trees="CN1 SS1 SS2",
        since="1.31",
    )


def test_filtering_by_tree_of_a_suffixed_group(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["in-tree"])
    seed.check(
        """resources=VCPU:1
          &resources1=DISK_GB:10&in_tree1=<SS1 uuid>""",
        """
        1. NUMA1_1 (VCPU) + SS1 (DISK_GB) {''=NUMA1_1 1=SS1}
        2. NUMA1_2 (VCPU) + SS1 (DISK_GB) {''=NUMA1_2 1=SS1}
        3. NUMA2_1 (VCPU) + SS1 (DISK_GB) {''=NUMA2_1 1=SS1}
        4. NUMA2_2 (VCPU) + SS1 (DISK_GB) {''=NUMA2_2 1=SS1}
        """,
        trees="CN1 CN2 SS1",
        since="1.31",
    )


def test_filtering_by_tree_of_two_groups(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["in-tree"])
    seed.check(
        """resources1=VCPU:1&in_tree1=<CN1 uuid>
          &resources2=DISK_GB:10&in_tree2=<SS1 uuid>
          &group_policy=isolate""",
        """
        1. NUMA1_1 (VCPU) + SS1 (DISK_GB) {1=NUMA1_1 2=SS1}
        2. NUMA1_2 (VCPU) + SS1 (DISK_GB) {1=NUMA1_2 2=SS1}
        """,
        trees="CN1 SS1",
        since="1.31",
    )


def test_filtering_by_tree_with_a_word_as_suffix(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["in-tree"])
    request = "resources=VCPU:1&in_tree=<CN1 uuid>&resources_D-1=DISK_GB:10&in_tree_D-1=<SS1 uuid>"
    seed.check(
        request,
        """
        1. NUMA1_1 (VCPU) + SS1 (DISK_GB) {''=NUMA1_1 _D-1=SS1}
        2. NUMA1_2 (VCPU) + SS1 (DISK_GB) {''=NUMA1_2 _D-1=SS1}
        """,
        trees="CN1 SS1",
        since="1.33",
    )
    assert "Invalid query string parameters: " in seed.refusal(request, "1.32")
    too_long = "S" * 65
    request = f"resources{too_long}=VCPU:1&in_tree{too_long}=<CN1 uuid>"
    assert "Invalid query string parameters: " in seed.refusal(request)


# Filtering by Root Provider Traits.


def test_filtering_by_root_provider_traits_required(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["root-traits"])
    request = """resources1=VCPU:1,MEMORY_MB:512&required1=HW_CPU_X86_AVX2
                &resources2=DISK_GB:100
                &group_policy=none
                &root_required=COMPUTE_VOLUME_MULTI_ATTACH"""
    seed.check(
        request,
        """
        1. NON_NUMA_CN (VCPU, MEMORY_MB, DISK_GB) {1=NON_NUMA_CN 2=NON_NUMA_CN}
        2. NUMA_CN (DISK_GB) + NUMA2 (VCPU, MEMORY_MB) {1=NUMA2 2=NUMA_CN}
        """,
        trees="NON_NUMA_CN NUMA_CN",
        since="1.35",
    )
    assert "Invalid query string parameters: " in seed.refusal(request, "1.34")


def test_filtering_by_root_provider_traits_forbidden(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["root-traits"])
    seed.check(
        """resources1=VCPU:1,MEMORY_MB:512
          &resources2=DISK_GB:100
          &group_policy=none
          &root_required=!CUSTOM_WINDOWS_LICENSE_POOL""",
        """
        1. NUMA_CN (DISK_GB) + NUMA1 (VCPU, MEMORY_MB) {1=NUMA1 2=NUMA_CN}
        2. NUMA_CN (DISK_GB) + NUMA2 (VCPU, MEMORY_MB) {1=NUMA2 2=NUMA_CN}
        """,
        trees="NUMA_CN",
        since="1.35",
    )


def test_filtering_by_root_provider_traits_several_of_them(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["root-traits"])
    both = "COMPUTE_VOLUME_MULTI_ATTACH,!CUSTOM_WINDOWS_LICENSE_POOL"
    seed.check(
        f"resources=VCPU:1&root_required={both}",
        """
        1. NUMA1 (VCPU)
        2. NUMA2 (VCPU)
        """,
        trees="NUMA_CN",
        since="1.35",
    )
    # NUMA2 has the trait, but NUMA2 is no root.
    seed.check(
        "resources=VCPU:1&root_required=HW_CPU_X86_AVX2",
        "1. NON_NUMA_CN (VCPU)",
        trees="NON_NUMA_CN",
        since="1.35",
    )


def test_filtering_by_root_provider_traits_with_a_suffix_or_twice_is_refused(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["root-traits"])
    request = "resources=VCPU:1&root_required"
    trait = "HW_CPU_X86_AVX2"
    assert "Invalid query string parameters: " in seed.refusal(f"{request}1={trait}")
    once = "Query parameter 'root_required' may be specified only once."
    assert once in seed.refusal(f"{request}={trait}&root_required=STORAGE_DISK_SSD")
    any_of = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39."
    assert any_of in seed.refusal(f"{request}=in:{trait},STORAGE_DISK_SSD")


def test_filtering_by_root_provider_traits_when_sharing_providers_are_involved(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["sharing"])
    request = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:500&root_required"
    seed.check(
        f"{request}=!MISC_SHARES_VIA_AGGREGATE",
        """
        1. CN1 (VCPU, MEMORY_MB, DISK_GB)
        2. CN2 (VCPU, MEMORY_MB, DISK_GB)
        3. CN1 (VCPU, MEMORY_MB) + SS1 (DISK_GB)
        """,
        trees="CN1 CN2 SS1",
        since="1.35",
    )
    seed.check_none(f"{request}=MISC_SHARES_VIA_AGGREGATE", since="1.35")


def test_filtering_by_root_provider_traits_when_only_sharing_providers_are_involved(
    database: Database, api: ApiClient
) -> None:
    # The document speaks only of roots of trees that do not share. But a sharing provider that
    # is its own anchor is a root like any other, so its own traits count.
    seed = load_seed(database, api, drawings()["sharing"])
    seed.check(
        "resources=DISK_GB:500&root_required=MISC_SHARES_VIA_AGGREGATE",
        """
        1. SS1 (DISK_GB)
        2. SS2 (DISK_GB)
        """,
        trees="SS1 SS2",
        since="1.35",
    )
    seed.check(
        "resources=DISK_GB:500&root_required=!MISC_SHARES_VIA_AGGREGATE",
        """
        1. CN1 (DISK_GB)
        2. CN2 (DISK_GB)
        3. SS1 (DISK_GB)
        """,
        trees="CN1 CN2 SS1",
        since="1.35",
    )


# Filtering by Same Subtree. The class ACCELERATOR_FPGA of the document does not exist, so the tests
# use FPGA.

COMPUTE_AND_ACCEL = """resources_COMPUTE=VCPU:1,MEMORY_MB:256
                      &resources_ACCEL=FPGA:1
                      &group_policy=none"""
INCLUDED = """
    1. NUMA0 (VCPU, MEMORY_MB) + FPGA0_0 (FPGA) {_COMPUTE=NUMA0 _ACCEL=FPGA0_0}
    2. NUMA1 (VCPU, MEMORY_MB) + FPGA1_0 (FPGA) {_COMPUTE=NUMA1 _ACCEL=FPGA1_0}
    3. NUMA1 (VCPU, MEMORY_MB) + FPGA1_1 (FPGA) {_COMPUTE=NUMA1 _ACCEL=FPGA1_1}
"""
BUT_NOT = """
    4. NUMA0 (VCPU, MEMORY_MB) + FPGA1_0 (FPGA) {_COMPUTE=NUMA0 _ACCEL=FPGA1_0}
    5. NUMA0 (VCPU, MEMORY_MB) + FPGA1_1 (FPGA) {_COMPUTE=NUMA0 _ACCEL=FPGA1_1}
    6. NUMA1 (VCPU, MEMORY_MB) + FPGA0_0 (FPGA) {_COMPUTE=NUMA1 _ACCEL=FPGA0_0}
"""


def test_filtering_by_same_subtree(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["same-subtree"])
    request = f"{COMPUTE_AND_ACCEL}&same_subtree=_COMPUTE,_ACCEL"
    seed.check(request, INCLUDED, trees="CN", since="1.36")
    assert "Invalid query string parameters: " in seed.refusal(request, "1.35")


def test_filtering_by_same_subtree_left_out_gives_all_candidates(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["same-subtree"])
    seed.check(COMPUTE_AND_ACCEL, INCLUDED + BUT_NOT, trees="CN", since="1.33")


def test_filtering_by_same_subtree_with_the_class_of_the_document_is_refused(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["same-subtree"])
    request = COMPUTE_AND_ACCEL.replace("FPGA:1", "ACCELERATOR_FPGA:1")
    problem = "Invalid resource class in resources parameter: No such resource class"
    assert f"{problem} ACCELERATOR_FPGA." in seed.refusal(request)


TWO_TYPES = """required_NUMA=HW_NUMA_ROOT
              &resources_ACCEL1=FPGA:1
              &required_ACCEL1=CUSTOM_TYPE1
              &resources_ACCEL2=FPGA:1
              &required_ACCEL2=CUSTOM_TYPE2
              &group_policy=none"""
TYPES_INCLUDED = """
    1. FPGA1_0 (FPGA) + FPGA1_1 (FPGA) + NUMA1 {_NUMA=NUMA1 _ACCEL1=FPGA1_0 _ACCEL2=FPGA1_1}
"""
TYPES_BUT_NOT = """
    2. FPGA0_0 (FPGA) + FPGA1_1 (FPGA) + NUMA0 {_NUMA=NUMA0 _ACCEL1=FPGA0_0 _ACCEL2=FPGA1_1}
    3. FPGA0_0 (FPGA) + FPGA1_1 (FPGA) + NUMA1 {_NUMA=NUMA1 _ACCEL1=FPGA0_0 _ACCEL2=FPGA1_1}
    4. FPGA1_0 (FPGA) + FPGA1_1 (FPGA) + NUMA0 {_NUMA=NUMA0 _ACCEL1=FPGA1_0 _ACCEL2=FPGA1_1}
"""


def test_filtering_by_same_subtree_with_a_group_without_resources(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, drawings()["same-subtree"])
    request = f"{TWO_TYPES}&same_subtree=_NUMA,_ACCEL1,_ACCEL2"
    seed.check(request, TYPES_INCLUDED, trees="CN", since="1.36")
    # A group that is alone in its same_subtree restricts no other group.
    request = f"{TWO_TYPES}&same_subtree=_NUMA"
    seed.check(request, TYPES_INCLUDED + TYPES_BUT_NOT, trees="CN", since="1.36")
    problem = "Resourceless suffixed group request should be specified in `same_subtree`"
    assert problem in seed.refusal(TWO_TYPES)
    problem = "All traits parameters must be associated with resources."
    assert problem in seed.refusal(TWO_TYPES, "1.35")


def test_filtering_by_same_subtree_repeated(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, drawings()["same-subtree"])
    # Each of two pairs of groups gets a NUMA node with an accelerator. Each pair by itself is in
    # one subtree, but all four groups together are not.
    groups = """resources_C1=VCPU:1&resources_A1=FPGA:1
               &resources_C2=VCPU:1&resources_A2=FPGA:1
               &group_policy=isolate"""
    took = "NUMA0 (VCPU) + FPGA0_0 (FPGA) + NUMA1 (VCPU)"
    seed.check(
        f"{groups}&same_subtree=_C1,_A1&same_subtree=_C2,_A2",
        f"""
        1. {took} + FPGA1_0 (FPGA) {{_C1=NUMA0 _A1=FPGA0_0 _C2=NUMA1 _A2=FPGA1_0}}
        2. {took} + FPGA1_1 (FPGA) {{_C1=NUMA0 _A1=FPGA0_0 _C2=NUMA1 _A2=FPGA1_1}}
        3. {took} + FPGA1_0 (FPGA) {{_C1=NUMA1 _A1=FPGA1_0 _C2=NUMA0 _A2=FPGA0_0}}
        4. {took} + FPGA1_1 (FPGA) {{_C1=NUMA1 _A1=FPGA1_1 _C2=NUMA0 _A2=FPGA0_0}}
        """,
        trees="CN",
        since="1.36",
    )
    seed.check_none(f"{groups}&same_subtree=_C1,_A1,_C2,_A2", since="1.36")
