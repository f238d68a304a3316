"""`root_required`: the traits of the root of the anchor."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: H(VCPU 4, agg A, T1), N<H(MEM 4, T2), G(VCPU 4, agg A), *SS(DISK 10, agg A, T3)

    VCPU:1,DISK:1&root_required=T1                              | H+SS
    VCPU:1,DISK:1&root_required=T2                              | none
    VCPU:1,DISK:1&root_required=T3                              | none
    VCPU:1,DISK:1&root_required=!T1                             | G+SS
    VCPU:1,DISK:1&root_required=!MISC_SHARES_VIA_AGGREGATE      | G+SS; H+SS
    MEM:1&root_required=T1                                      | N
    MEM:1&root_required=!T2                                     | N
    MEM:1&root_required=T1,T2                                   | none
    """
)
def test_root_required_binds_a_root_that_gives_nothing(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4, agg A, T1), N<H(MEM 4, T2), G(VCPU 4, agg A), *SS(DISK 10, agg A, T3)

    DISK:1&root_required=T1                     | SS    | SS
    resources_X=DISK:1&root_required=T1         | SS    | SS
    DISK:1&root_required=T3                     | SS
    DISK:1&root_required=!T3                    | SS
    DISK:1&root_required=T1,T3                  | none
    """
)
def test_one_root_that_the_sharing_providers_reach_is_enough(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
