"""Sharing providers: the trees that they reach, and their own tree."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: H(), N<H(VCPU 4), M<H(agg A), G(VCPU 4), *SS(DISK 10, agg A), *S0(DISK 10)

    resources=VCPU:1&resources_X=DISK:1   | N[VCPU:1] SS[DISK:1] {''=N _X=SS}
    VCPU:1,DISK:1                         | N[VCPU:1] SS[DISK:1] {''=N+SS}  | H, M, N, SS
    DISK:1                                | SS; S0

    World: O(agg A), *SC<O(DISK 5), H(VCPU 2, agg A)
    resources=VCPU:1&resources_X=DISK:1   | none

    World: H(VCPU 8, agg A), *SS(DISK 5), K<SS(GOLD 5, agg A)
    VCPU:1,DISK:1                         | none
    """
)
def test_a_sharing_provider_reaches_every_tree_with_a_member_in_one_of_its_aggregates(
    worlds: Worlds, case: Case
) -> None:
    # The aggregates of its root or its children do not count. Without aggregates, the provider
    # reaches only its own tree.
    case.hold(worlds(case.world))


@table(
    """
    World: *SS(VCPU 2, DISK 10, agg A), H(VCPU 8, agg A)
    VCPU:1,DISK:1           | SS[DISK:1,VCPU:1] {''=SS}; H[VCPU:1] SS[DISK:1] {''=H+SS}
    VCPU:1                  | H; SS
    """
)
def test_a_sharing_provider_is_an_ordinary_host_as_well(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8, DISK 5, agg A), *SS(DISK 5, agg A), *S2(DISK 5, GOLD 2, agg A, T1)
    DISK:8                                                  | none
    VCPU:1,DISK:5                                           | H; H+S2; H+SS
    DISK:5                                                  | H; S2; SS
    VCPU:1,DISK:1&required=T1                               | H+S2
    VCPU:1,DISK:1&required=!T1                              | H; H+SS
    VCPU:1,DISK:1&required=!MISC_SHARES_VIA_AGGREGATE       | H
    DISK:1,GOLD:1
        | H[DISK:1] S2[GOLD:1]; S2[DISK:1,GOLD:1]; SS[DISK:1] S2[GOLD:1]

    World: H(VCPU 4, MEM 4, agg A), K(VCPU 4, agg A), *S1(DISK 5, agg A), *S2(GOLD 5, DISK 5, agg A)
    VCPU:1,DISK:1,GOLD:1
        | H[VCPU:1] S1[DISK:1] S2[GOLD:1]; H[VCPU:1] S2[DISK:1,GOLD:1];
        K[VCPU:1] S1[DISK:1] S2[GOLD:1]; K[VCPU:1] S2[DISK:1,GOLD:1]
    VCPU:1,MEM:1,DISK:1
        | H[MEM:1,VCPU:1] S1[DISK:1]; H[MEM:1,VCPU:1] S2[DISK:1]
    """
)
def test_several_sharing_providers_serve_one_host(worlds: Worlds, case: Case) -> None:
    # Each class comes from one provider: 8 are not 5 + 3. A candidate never mixes two hosts.
    case.hold(worlds(case.world))


@table(
    """
    World: *SA(DISK 5, agg A), *SB(GOLD 5, agg A)
    DISK:1,GOLD:1           | SA[DISK:1] SB[GOLD:1] {''=SA+SB}

    World: H(VCPU 8, agg A B), *SA(DISK 5, agg A), *SB(GOLD 5, agg B)

    DISK:1,GOLD:1           | SA[DISK:1] SB[GOLD:1] {''=SA+SB}    | SA, SB
    VCPU:1,DISK:1,GOLD:1    | H[VCPU:1] SA[DISK:1] SB[GOLD:1]     | H, SA, SB
    """
)
def test_sharing_providers_need_no_host_that_gives_something(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8, agg A), *SS(DISK 5, agg A), K<SS(GOLD 5, DISK 5)
    VCPU:1,DISK:1           | H[VCPU:1] SS[DISK:1] {''=H+SS}      | H, K, SS
    VCPU:1,GOLD:1           | none
    DISK:1,GOLD:1           | K[DISK:1,GOLD:1]; SS[DISK:1] K[GOLD:1]
    """
)
def test_the_children_of_a_sharing_provider_are_not_shared(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8, agg A), O(MEM 8), *SC<O(DISK 5, agg A)

    DISK:1                                | SC                            | O, SC
    MEM:1,DISK:1                          | O[MEM:1] SC[DISK:1]
    resources=VCPU:1&resources_X=DISK:1   | H[VCPU:1] SC[DISK:1] {''=H _X=SC}   | H, O, SC

    World: H(VCPU 8, agg A), O(VCPU 8), *SC<O(DISK 5, agg A)
    VCPU:1,DISK:1                         | H+SC; O+SC
    ... in_tree=<H>                       | none
    ... in_tree=<O>                       | O+SC

    World: H(VCPU 8, agg A), O(VCPU 8, agg B), *SC<O(DISK 5, agg A)
    VCPU:1,DISK:1&member_of={B}           | O+SC
    resources=DISK:1&resources_X=VCPU:1   | {''=SC _X=H}; {''=SC _X=O}
    ... member_of={B}                     | {''=SC _X=O}

    World: R(VCPU 2), *SC<R(DISK 5)
    VCPU:1,DISK:1                         | R[VCPU:1] SC[DISK:1] {''=R+SC}

    World: *SS(DISK 5, agg A), K<SS(VCPU 5, agg A)
    VCPU:1,DISK:1                         | K[VCPU:1] SS[DISK:1] {''=K+SS}
    """
)
def test_a_sharing_child_shares_and_belongs_to_its_own_tree(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 2, agg A), D(DISK 5, agg A)
    VCPU:1,DISK:1           | none

    World: H(VCPU 2, DISK 2, agg A), *S(MEM 5, agg A)
    VCPU:1,DISK:1           | H[DISK:1,VCPU:1] {''=H}             | H
    """
)
def test_a_provider_without_the_sharing_trait_or_the_class_is_not_shared(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))
