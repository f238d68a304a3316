"""`same_subtree`: one provider of the named groups is the ancestor of all their providers."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: R(T1), A1<R(VCPU 4, T2), A1x<A1(GOLD 2), A2<R(VCPU 4, T2), A2x<A2(GOLD 2)

    resources_1=VCPU:1&resources_2=GOLD:1&group_policy=none
        | A1[VCPU:1] A1x[GOLD:1] {_1=A1 _2=A1x}; A1[VCPU:1] A2x[GOLD:1] {_1=A1 _2=A2x};
        A2[VCPU:1] A1x[GOLD:1] {_1=A2 _2=A1x}; A2[VCPU:1] A2x[GOLD:1] {_1=A2 _2=A2x}
    ... same_subtree=_1,_2
        | A1[VCPU:1] A1x[GOLD:1] {_1=A1 _2=A1x}; A2[VCPU:1] A2x[GOLD:1] {_1=A2 _2=A2x}
    resources_1=GOLD:1&resources_2=GOLD:1&group_policy=none&same_subtree=_1,_2
        | A1x[GOLD:2] {_1=A1x _2=A1x}; A2x[GOLD:2] {_1=A2x _2=A2x}
    """
)
def test_one_provider_of_the_groups_must_be_the_ancestor(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(T1), A1<R(VCPU 4, T2), A1x<A1(GOLD 2), A2<R(VCPU 4, T2), A2x<A2(GOLD 2)

    resources_1=GOLD:1&resources_2=GOLD:1&required_3=T2&same_subtree=_1,_2,_3&group_policy=none
        | A1x[GOLD:2] {_1=A1x _2=A1x _3=A1}; A2x[GOLD:2] {_1=A2x _2=A2x _3=A2}
    resources_1=GOLD:1&resources_2=GOLD:1&required_3=T2&same_subtree=_1,_2,_3&group_policy=isolate
        | none
    resources_1=GOLD:1&resources_2=GOLD:1&required_3=T1&same_subtree=_1,_2,_3&group_policy=isolate
        | A1x[GOLD:1] A2x[GOLD:1] {_1=A1x _2=A2x _3=R};
        A1x[GOLD:1] A2x[GOLD:1] {_1=A2x _2=A1x _3=R}
    resources_1=VCPU:1&required_2=T2&same_subtree=_1,_2&group_policy=none
        | A1[VCPU:1] {_1=A1 _2=A1}; A2[VCPU:1] {_1=A2 _2=A2}
    resources_1=VCPU:1&required_2=T2&same_subtree=_1,_2&group_policy=isolate
        | none
    """
)
def test_a_group_without_resources_can_be_the_ancestor(worlds: Worlds, case: Case) -> None:
    # The policy isolate keeps a group without resources apart as well.
    case.hold(worlds(case.world))


@table(
    """
    World: R(T1), A1<R(VCPU 4, T2), A1x<A1(GOLD 2), A2<R(VCPU 4, T2), A2x<A2(GOLD 2)

    resources_1=VCPU:1&required_2=T2&same_subtree=_2&group_policy=isolate
        | A1[VCPU:1] {_1=A1 _2=A2}; A2[VCPU:1] {_1=A2 _2=A1}
    resources=VCPU:1&required_2=T1&same_subtree=_2
        | A1[VCPU:1] {''=A1 _2=R}; A2[VCPU:1] {''=A2 _2=R}
    resources=VCPU:1&resources_2=GOLD:1&same_subtree=_2
        | {''=A1 _2=A1x}; {''=A1 _2=A2x}; {''=A2 _2=A1x}; {''=A2 _2=A2x}
    """
)
def test_groups_outside_same_subtree_are_not_bound(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(T1), A1<R(VCPU 4, T2), A1x<A1(GOLD 2), A2<R(VCPU 4, T2), A2x<A2(GOLD 2)

    resources_1=VCPU:1&resources_2=GOLD:1&resources_3=GOLD:2&group_policy=none
        &same_subtree=_1,_2&same_subtree=_1,_3
        | none
    resources_1=VCPU:1&resources_2=GOLD:1&resources_3=GOLD:1&group_policy=none
        &same_subtree=_1,_2&same_subtree=_1,_3
        | {_1=A1 _2=A1x _3=A1x}; {_1=A2 _2=A2x _3=A2x}
    resources_1=VCPU:1&resources_2=GOLD:1&resources_3=VCPU:1&resources_4=GOLD:1
        &group_policy=isolate&same_subtree=_1,_2&same_subtree=_3,_4
        | {_1=A1 _2=A1x _3=A2 _4=A2x}; {_1=A2 _2=A2x _3=A1 _4=A1x}
    """
)
def test_each_same_subtree_holds_by_itself(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4, agg A, T1), N<H(MEM 4), *SS(DISK 10, GOLD 1, agg A, T2)

    resources_1=VCPU:1&resources_2=DISK:1&group_policy=none&same_subtree=_1,_2    | none
    resources_1=VCPU:1&resources_2=DISK:1&group_policy=none&same_subtree=_2
        | H[VCPU:1] SS[DISK:1] {_1=H _2=SS}
    resources_1=GOLD:1&resources_2=DISK:1&group_policy=none&same_subtree=_1,_2
        | SS[DISK:1,GOLD:1] {_1=SS _2=SS}
    resources_1=VCPU:1&required_2=T2&group_policy=none&same_subtree=_2
        | H[VCPU:1] {_1=H _2=SS}          | H, N
    resources_1=VCPU:1&required_2=T2&group_policy=none&same_subtree=_1,_2         | none

    World: *SS(DISK 5, agg A), K<SS(VCPU 5, agg A)

    resources_1=VCPU:1&resources_2=DISK:1&group_policy=isolate&same_subtree=_1,_2
        | K[VCPU:1] SS[DISK:1] {_1=K _2=SS}
    """
)
def test_a_sharing_provider_is_an_ancestor_in_its_own_tree_only(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
