"""The unsuffixed group: a whole tree and its sharing providers give together."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: R(MEM 100, T1), N1<R(VCPU 4, T2), N2<R(VCPU 4), X<R(T3)

    VCPU:1,MEM:1                | N1[VCPU:1] R[MEM:1] {''=N1+R}; N2[VCPU:1] R[MEM:1] {''=N2+R}
    VCPU:5                      | none

    World: R(VCPU 4, MEM 4), N<R(VCPU 4, MEM 4)

    VCPU:1,MEM:1                | R[MEM:1,VCPU:1] {''=R}; N[MEM:1,VCPU:1] {''=N};
        R[VCPU:1] N[MEM:1] {''=N+R}; R[MEM:1] N[VCPU:1] {''=N+R}
    """
)
def test_each_class_comes_from_one_provider(worlds: Worlds, case: Case) -> None:
    # The classes may come from several providers even where one provider could give them all.
    # The amount of one class never does: 5 are not 4 + 1.
    case.hold(worlds(case.world))


@table(
    """
    World: R(MEM 100, T1), N1<R(VCPU 4, T2), N2<R(VCPU 4), X<R(T3)

    VCPU:1,MEM:1&required=T1,T2                   | N1+R
    VCPU:1&required=T1                            | none
    VCPU:1,MEM:1&required=T3                      | none
    VCPU:1,MEM:1&required=in:T1,T2                | N1+R; N2+R
    VCPU:1,MEM:1&required=in:T2,T3                | N1+R
    VCPU:1,MEM:1&required=!T2                     | N2+R
    VCPU:1,MEM:1&required=!T3                     | N1+R; N2+R
    VCPU:1&required=!T1                           | N1; N2
    VCPU:1,MEM:1&required=in:T1,T2&required=!T1   | none

    World: H(VCPU 4, DISK 1, agg A, T1), *SS(DISK 4, agg A, T2)

    VCPU:1,DISK:1&required=in:T1,T2&required=in:T2,T3   | H+SS
    VCPU:1,DISK:1&required=T1&required=T2               | H+SS
    """
)
def test_the_traits_of_all_providers_of_a_candidate_count_together(
    worlds: Worlds, case: Case
) -> None:
    # The traits of a provider that gives nothing do not count, even those of the root.
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4, DISK 1, agg A, T1), *SS(DISK 4, agg A, T2)

    VCPU:1,DISK:1&required=T2&required=T1               | H; H+SS
    """
)
def test_the_last_required_counts_before_1_39(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world), version="1.38")


@table(
    """
    World: R(MEM 9, agg A), N1<R(VCPU 4), N2<R(VCPU 4, agg B), L<N2(GOLD 4)

    VCPU:1&member_of={A}                    | N1; N2
    VCPU:1&member_of=in:{A},{B}             | N1; N2
    VCPU:1&member_of={B}                    | N2
    VCPU:1&member_of={A}&member_of={B}      | none

    VCPU:1&member_of=!{B}                   | N1
    VCPU:1&member_of={A}&member_of=!{B}     | N1
    VCPU:1&member_of=!{B}&member_of=!{Z}    | N1
    VCPU:1&member_of=!{A}                   | none

    VCPU:1,MEM:1&member_of={B}              | none
    GOLD:1&member_of={A}                    | L
    GOLD:1&member_of=!{B}                   | L
    GOLD:1&member_of={B}                    | none
    resources_X=VCPU:1&member_of_X={A}      | none

    World: R(VCPU 4, agg A B), N<R(MEM 4, agg C)

    MEM:1&member_of={A}&member_of={B}       | N
    MEM:1&member_of={A}&member_of={C}       | none
    VCPU:1,MEM:1&member_of=in:{C},{B}       | R[VCPU:1] N[MEM:1] {''=N+R}
    """
)
def test_the_aggregates_of_the_root_count_for_its_tree(worlds: Worlds, case: Case) -> None:
    # The aggregates of N2 do not count for L. The aggregates of the root and of the provider are
    # not combined.
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4, agg A B), G(VCPU 4, agg B), *SS(DISK 4, agg B), *ST(DISK 4, agg A B)

    VCPU:1,DISK:1                           | H+SS; H+ST; G+SS; G+ST
    ... member_of={B}                       | H+SS; H+ST; G+SS; G+ST
    ... member_of={A}                       | H+ST
    ... member_of=!{A}                      | G+SS
    DISK:1&member_of={A}                    | ST
    resources=VCPU:1&resources_X=DISK:1     | H+SS; H+ST; G+SS; G+ST
    ... member_of={A}                       | H+SS; H+ST
    ... member_of_X=!{A}                    | G+SS; H+SS

    World: H(VCPU 4, agg A B), *SS(DISK 4, agg A)

    DISK:1&member_of=!{B}                   | SS
    DISK:1,VCPU:1&member_of=!{B}            | none
    resources=DISK:1&resources_X=VCPU:1&member_of=!{B}    | none
    """
)
def test_the_aggregates_of_sharing_providers_are_their_own(worlds: Worlds, case: Case) -> None:
    # A root in a forbidden aggregate rules out its whole tree, and all candidates with this anchor.
    case.hold(worlds(case.world))


@table(
    """
    World: H1(VCPU 8, DISK 3, agg A), N<H1(GOLD 1), H2(VCPU 8, agg A), *SS(DISK 10, agg A)

    VCPU:1,DISK:1&in_tree=<H1>              | H1[DISK:1,VCPU:1] {''=H1}
    VCPU:1,DISK:1&in_tree=<N>               | H1[DISK:1,VCPU:1] {''=H1}
    VCPU:1,DISK:1&in_tree=<H2>              | none
    VCPU:1,DISK:1&in_tree=<SS>              | none
    VCPU:1,DISK:1&in_tree=<unknown>         | none
    DISK:1&in_tree=<SS>                     | SS
    resources=DISK:1&in_tree=<SS>&resources_X=VCPU:1      | none
    resources=VCPU:1&in_tree=<H2>&resources_X=DISK:1      | H2[VCPU:1] SS[DISK:1] {''=H2 _X=SS}
    """
)
def test_in_tree_binds_every_provider_of_the_group(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(), N<H(VCPU 2)
    VCPU:1                  | N    | H, N

    World: H(T3, agg B), N<H(VCPU 2), M<H(MEM 9, T1)
    VCPU:1                  | N    | H, M, N
    VCPU:1&required=!T1     | N
    VCPU:1&required=!T3     | N
    VCPU:1&required=T1      | none
    """
)
def test_members_of_a_tree_that_give_nothing_are_not_bound(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 2, MEM 2, agg A), R(DISK 1), N<R(GOLD 1), *S(GOLD 1, agg B), G(agg B)
    VCPU:1,MEM:1            | H[MEM:1,VCPU:1] {''=H}   | H
    VCPU:1&member_of={A}    | H
    """
)
def test_nesting_and_sharing_in_other_trees_change_nothing(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
