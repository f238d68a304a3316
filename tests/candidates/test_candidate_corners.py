"""Corner cases: what is left over, what nobody has, what is said twice."""

from __future__ import annotations

import pytest

from support.tables import Case, table
from support.worlds import LATEST, Worlds


@table(
    """
    World: H(MEM 4, agg A), K(VCPU 4, agg A)
    VCPU:1,MEM:1                | none
    resources=VCPU:1&resources_1=MEM:1    | none
    """
)
def test_two_trees_never_mix(worlds: Worlds, case: Case) -> None:
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
def test_a_root_in_an_aggregate_and_a_child_asked_for(worlds: Worlds, case: Case) -> None:
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
def test_exactly_what_is_left_fits(worlds: Worlds, case: Case) -> None:
    # The last one had more when it was claimed.
    case.hold(worlds(case.world))


@pytest.mark.parametrize("version", ["1.10", LATEST])
@pytest.mark.parametrize("world", ["", "H(), N<H(T1, agg A)", "*S(agg A)"])
def test_where_there_is_nothing_nothing_is_found(worlds: Worlds, world: str, version: str) -> None:
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
def test_saying_it_twice_means_nothing_more(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 9), N<R(VCPU 9, MEM 3)
    resources=VCPU:1,MEM:1&resources_1=MEM:1&resources_2=VCPU:2&group_policy=isolate
        | N[MEM:2,VCPU:1] R[VCPU:2] {''=N _1=N _2=R}; N[MEM:2] R[VCPU:3] {''=N+R _1=N _2=R}
    """
)
def test_isolate_with_a_class_in_both_kinds_of_group(worlds: Worlds, case: Case) -> None:
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
def test_what_is_well_formed_is_answered(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
