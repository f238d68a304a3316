"""Seed document "Support any traits in allocation_candidates query": its promises.

The document has no drawing, so the world is that of its use case. Each network device is
connected to one physical network, and a port may be on either of two networks.
"""

from __future__ import annotations

import pytest

from roost.demo.world import ProviderSpec, World
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import load_seed, totals

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
_CARD = totals(NET_BW_EGR_KILOBIT_PER_SEC=10_000)

PHYSNETS = World(
    "physnets",
    "A host on three physical networks and one on the last of them",
    (
        ProviderSpec("CN1", inventories=totals(VCPU=8), traits=("CUSTOM_FAST",)),
        ProviderSpec("NIC1", "CN1", _CARD, ("CUSTOM_PHYSNET1",)),
        ProviderSpec("NIC2", "CN1", _CARD, ("CUSTOM_PHYSNET2",)),
        ProviderSpec("NIC3", "CN1", _CARD, ("CUSTOM_PHYSNET3",)),
        ProviderSpec("CN2", inventories=totals(VCPU=8)),
        ProviderSpec("NIC4", "CN2", _CARD, ("CUSTOM_PHYSNET3",)),
    ),
)

ONE_GROUP = f"resources=VCPU:1,{BANDWIDTH}:1000"
TWO_GROUPS = f"resources=VCPU:1&resources1={BANDWIDTH}:1000"

TOO_EARLY = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39."
NOT_FORBIDDEN = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden traits."


def test_problem_description_every_trait_of_a_list_counts(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, PHYSNETS)
    both = "CUSTOM_PHYSNET1,CUSTOM_PHYSNET2"
    seed.check_none(f"{ONE_GROUP}&required={both}", since="1.17")
    seed.check_none(f"{TWO_GROUPS}&required1={both}", since="1.25")


def test_use_cases_a_port_that_may_be_on_either_network(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, PHYSNETS)
    seed.check(
        f"{TWO_GROUPS}&required1=in:CUSTOM_PHYSNET1,CUSTOM_PHYSNET2",
        f"""
        1. CN1 (VCPU) + NIC1 ({BANDWIDTH}) {{''=CN1 1=NIC1}}
        2. CN1 (VCPU) + NIC2 ({BANDWIDTH}) {{''=CN1 1=NIC2}}
        """,
        trees="CN1",
        since="1.39",
    )


def test_rest_api_impact_one_provider_of_the_candidate_must_have_a_listed_trait(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, PHYSNETS)
    seed.check(
        f"{ONE_GROUP}&required=in:CUSTOM_PHYSNET1,CUSTOM_PHYSNET2",
        f"""
        1. CN1 (VCPU) + NIC1 ({BANDWIDTH})
        2. CN1 (VCPU) + NIC2 ({BANDWIDTH})
        """,
        trees="CN1",
        since="1.39",
    )
    # The trait of the host is enough for every card.
    seed.check(
        f"{ONE_GROUP}&required=in:CUSTOM_FAST,CUSTOM_PHYSNET1",
        f"""
        1. CN1 (VCPU) + NIC1 ({BANDWIDTH})
        2. CN1 (VCPU) + NIC2 ({BANDWIDTH})
        3. CN1 (VCPU) + NIC3 ({BANDWIDTH})
        """,
        trees="CN1",
        since="1.39",
    )
    seed.check(
        f"{ONE_GROUP}&required=in:CUSTOM_FAST,CUSTOM_PHYSNET3",
        f"""
        1. CN1 (VCPU) + NIC1 ({BANDWIDTH})
        2. CN1 (VCPU) + NIC2 ({BANDWIDTH})
        3. CN1 (VCPU) + NIC3 ({BANDWIDTH})
        4. CN2 (VCPU) + NIC4 ({BANDWIDTH})
        """,
        trees="CN1 CN2",
        since="1.39",
    )


def test_rest_api_impact_the_provider_of_a_granular_group_must_have_a_listed_trait(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, PHYSNETS)
    seed.check(
        f"{TWO_GROUPS}&required1=in:CUSTOM_FAST,CUSTOM_PHYSNET1",
        f"1. CN1 (VCPU) + NIC1 ({BANDWIDTH}) {{''=CN1 1=NIC1}}",
        trees="CN1",
        since="1.39",
    )


def test_rest_api_impact_the_old_format_stays_valid(database: Database, api: ApiClient) -> None:
    seed = load_seed(database, api, PHYSNETS)
    request = f"{ONE_GROUP}&required=CUSTOM_FAST,CUSTOM_PHYSNET1,!CUSTOM_PHYSNET3"
    seed.check(request, f"1. CN1 (VCPU) + NIC1 ({BANDWIDTH})", trees="CN1", since="1.29")


def test_rest_api_impact_both_formats_can_be_mixed(database: Database, api: ApiClient) -> None:
    # The document leaves this to another document. 1.39 added both.
    seed = load_seed(database, api, PHYSNETS)
    any_of = "in:CUSTOM_PHYSNET1,CUSTOM_PHYSNET2,CUSTOM_PHYSNET3"
    seed.check(
        f"{ONE_GROUP}&required={any_of}&required=CUSTOM_FAST,!CUSTOM_PHYSNET2",
        f"""
        1. CN1 (VCPU) + NIC1 ({BANDWIDTH})
        2. CN1 (VCPU) + NIC3 ({BANDWIDTH})
        """,
        trees="CN1",
        since="1.39",
    )
    seed.check(
        f"{TWO_GROUPS}&required1={any_of}&required1=in:CUSTOM_PHYSNET3,CUSTOM_FAST",
        f"""
        1. CN1 (VCPU) + NIC3 ({BANDWIDTH}) {{''=CN1 1=NIC3}}
        2. CN2 (VCPU) + NIC4 ({BANDWIDTH}) {{''=CN2 1=NIC4}}
        """,
        trees="CN1 CN2",
        since="1.39",
    )


def test_rest_api_impact_forbidden_traits_among_any_are_refused(
    database: Database, api: ApiClient
) -> None:
    seed = load_seed(database, api, PHYSNETS)
    mixed = "in:CUSTOM_PHYSNET1,!CUSTOM_PHYSNET2"
    assert NOT_FORBIDDEN in seed.refusal(f"{ONE_GROUP}&required={mixed}")
    assert NOT_FORBIDDEN in seed.refusal(f"{TWO_GROUPS}&required1={mixed}")


@pytest.mark.parametrize("version", ["1.17", "1.22", "1.25", "1.29", "1.38"])
def test_rest_api_impact_the_new_format_needs_the_new_microversion(
    database: Database, api: ApiClient, version: str
) -> None:
    seed = load_seed(database, api, PHYSNETS)
    assert TOO_EARLY in seed.refusal(f"{ONE_GROUP}&required=in:CUSTOM_PHYSNET1", version)


def test_rest_api_impact_the_list_of_providers_takes_the_new_format(
    database: Database, api: ApiClient
) -> None:
    load_seed(database, api, PHYSNETS)
    path = "/resource_providers?required=in:CUSTOM_PHYSNET1,CUSTOM_PHYSNET2"
    found = api.get(path).json["resource_providers"]
    assert {provider["name"] for provider in found} == {"physnets/NIC1", "physnets/NIC2"}
    assert TOO_EARLY in api.at("1.38").get(path).detail
    assert NOT_FORBIDDEN in api.get(path.replace(",", ",!")).detail
