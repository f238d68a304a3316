"""Corner cases: the last free amount, empty worlds, repeated values."""

from __future__ import annotations

import pytest

from support.worlds.case_tables import Case, table
from support.worlds.world import LATEST, Worlds


@table(
    """
    World: H(MEM 4, agg A), K(VCPU 4, agg A)
    VCPU:1,MEM:1                | none
    resources=VCPU:1&resources_1=MEM:1    | none
    """
)
def test_a_candidate_never_mixes_two_trees(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(MEM 4, agg A), N<R(VCPU 4)
    resources_X=VCPU:1&member_of_X={A}    | none
    resources_X=VCPU:1&member_of_X=!{A}   | N
    resources=VCPU:1&member_of={A}        | N
    resources=VCPU:1&member_of=!{A}       | none
    """
)
def test_the_aggregate_of_a_root_counts_for_the_unsuffixed_group_only(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 4 used 3)
    VCPU:1          | P
    VCPU:2          | none

    World: P(VCPU 4 used 4)
    VCPU:1          | none

    World: P(VCPU 2 used 3), Q(VCPU 2)
    VCPU:1          | Q
    """
)
def test_a_request_for_the_last_free_amount_fits(worlds: Worlds, case: Case) -> None:
    # The inventory of the last P shrank after the claim.
    case.hold(worlds(case.world))


@pytest.mark.parametrize("version", ["1.10", LATEST])
@pytest.mark.parametrize("world", ["", "H(), N<H(T1, agg A)", "*S(agg A)"])
def test_a_world_without_inventories_has_no_candidates(
    worlds: Worlds, world: str, version: str
) -> None:
    worlds(world).expect("VCPU:1", "none", version=version)


@table(
    """
    World: H(VCPU 4, T1), K(VCPU 4, T1, T2), L(VCPU 4, T2)
    VCPU:1&required=T1,T1                             | H; K
    VCPU:1&required=T1&required=T1                    | H; K
    VCPU:1&required=T1&required=in:T1,T2              | H; K
    VCPU:1&required=in:T1,T2&required=in:T2,T1        | H; K; L
    VCPU:1&required=in:T1,T1                          | H; K
    VCPU:1&required=!T2,!T2&required=!T2              | H
    VCPU:1&root_required=T1,T1                        | H; K
    resources_X=VCPU:1&required_X=T1,T1&required_X=in:T1,T2    | H; K
    resources_X=VCPU:1&same_subtree=_X,_X             | H; K; L
    """
)
def test_a_repeated_value_changes_nothing(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 9), N<R(VCPU 9, MEM 3)
    resources=VCPU:1,MEM:1&resources_1=MEM:1&resources_2=VCPU:2&group_policy=isolate
        | N[MEM:2,VCPU:1] R[VCPU:2] {''=N _1=N _2=R}; N[MEM:2] R[VCPU:3] {''=N+R _1=N _2=R}
    """
)
def test_isolate_does_not_bind_a_class_of_the_unsuffixed_group(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8, agg A), *SS(DISK 5, agg A), *S0(DISK 5)
    VCPU:1,DISK:1&member_of={Z}         | none
    VCPU:1,DISK:1&member_of=!{Z}        | H+SS
    VCPU:1&member_of={A}&member_of=!{A} | none
    VCPU:1,VCPU:2                       | H[VCPU:2]
    resources=DISK:9&resources=VCPU:1   | H[VCPU:1]
    """
)
def test_a_well_formed_query_is_answered(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
