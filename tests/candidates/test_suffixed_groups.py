"""Suffixed groups: one provider gives everything, and only its own properties count."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: R(VCPU 8, agg A, T1), C1<R(VCPU 8, DISK 10, T2), C2<R(DISK 10, agg B)

    resources_X=VCPU:1                        | C1[VCPU:1] {_X=C1}; R[VCPU:1] {_X=R}
    resources_X=VCPU:1,DISK:1                 | C1[DISK:1,VCPU:1] {_X=C1}
    resources_X=VCPU:1&required_X=T2          | C1
    resources_X=VCPU:1&required_X=T1,T2       | none
    resources_X=VCPU:1&required_X=!T1         | C1
    resources_X=VCPU:1&required_X=in:T1,T2    | C1; R
    ... required_X=!T1                        | C1
    ... required_X=T1                         | R
    resources_X=VCPU:1&member_of_X={B}        | none
    """
)
def test_one_provider_gives_everything_and_has_the_traits(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 8, agg A, T1), C1<R(VCPU 8, DISK 10, T2), C2<R(DISK 10, agg B)

    resources_X=DISK:1                        | C1; C2
    ... member_of_X={A}                       | none
    ... member_of_X={B}                       | C2
    ... member_of_X=in:{A},{B}                | C2
    ... member_of_X=in:{B},{Z}                | C2
    ... member_of_X={A}&member_of_X={B}       | none
    ... member_of_X=!{A}                      | C1; C2
    ... member_of_X=!{B}                      | C1
    ... member_of_X=!in:{A},{B}               | C1
    ... member_of_X=!{B}&member_of_X=!{A}     | C1
    ... member_of_X={B}&member_of_X=!{A}      | C2
    ... member_of_X={Z}                       | none
    ... member_of_X=!{Z}                      | C1; C2
    """
)
def test_only_the_aggregates_of_the_provider_itself_count(worlds: Worlds, case: Case) -> None:
    # The root is in A. No provider is in Z.
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 8, agg A, T1), C1<R(VCPU 8, DISK 10, T2), C2<R(DISK 10, agg B), Q(DISK 10)

    resources_X=DISK:1                        | C1; C2; Q
    ... in_tree_X=<C1>                        | C1; C2
    ... in_tree_X=<R>                         | C1; C2
    ... in_tree_X=<Q>                         | Q
    ... in_tree_X=<unknown>                   | none
    """
)
def test_in_tree_may_name_any_member_of_the_tree(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H1(VCPU 8, agg A), H2(VCPU 8), *SS(DISK 10, agg A)

    resources_X=DISK:1                   | SS[DISK:1] {_X=SS}                     | SS
    resources=VCPU:1&resources_X=DISK:1  | H1[VCPU:1] SS[DISK:1] {''=H1 _X=SS}    | H1, SS
    resources_X=DISK:1&resources_Y=VCPU:1&group_policy=none
        | H1[VCPU:1] SS[DISK:1] {_X=SS _Y=H1}
    resources_X=VCPU:1,DISK:1            | none
    """
)
def test_a_sharing_provider_satisfies_a_group_for_the_trees_that_it_reaches(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H1(VCPU 8, agg A), H2(VCPU 8), *SS(DISK 10, agg A)

    resources=VCPU:1&resources_X=DISK:1  | H1+SS
    ... in_tree_X=<SS>                   | H1+SS
    ... in_tree_X=<H1>                   | none
    ... member_of_X={A}                  | H1+SS
    ... member_of_X=!{A}                 | none
    """
)
def test_in_tree_of_a_sharing_provider_is_its_own_tree(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 4, agg A, T1), N<R(agg B, T2), Q(VCPU 4)

    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=in:T1,T2
        | R[VCPU:1] {_1=R _2=R}; R[VCPU:1] {_1=R _2=N}
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&member_of_2={B}
        | R[VCPU:1] {_1=R _2=N}
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&member_of_2={A}
        | R[VCPU:1] {_1=R _2=R}
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=T2,!T1
        | {_1=R _2=N}
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=in:T1,T2&member_of_2=!{A}
        | {_1=R _2=N}
    """
)
def test_a_group_without_resources_is_satisfied_by_a_provider_with_the_traits(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: *S(DISK 4, agg A, T2), H(VCPU 4, agg A), G(VCPU 4)

    resources_1=VCPU:1&group_policy=none&same_subtree=_2&required_2=T2
        | H[VCPU:1] {_1=H _2=S}    | H
    resources_1=VCPU:1&group_policy=none&same_subtree=_2&member_of_2={A}
        | H[VCPU:1] {_1=H _2=H}; H[VCPU:1] {_1=H _2=S}
    """
)
def test_a_sharing_provider_satisfies_a_group_without_resources(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
