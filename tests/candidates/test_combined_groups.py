"""Several request groups together: group policy, sums of amounts, equal candidates."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds

TWO_PROVIDERS = "R(VCPU 6 max 4), N<R(VCPU 2)"


@table(
    """
    World: R(VCPU 6 max 4), N<R(VCPU 2)

    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=none
        | N[VCPU:2] {_1=N _2=N}; R[VCPU:2] {_1=R _2=R};
        N[VCPU:1] R[VCPU:1] {_1=N _2=R}; N[VCPU:1] R[VCPU:1] {_1=R _2=N}
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=isolate
        | N[VCPU:1] R[VCPU:1] {_1=N _2=R}; N[VCPU:1] R[VCPU:1] {_1=R _2=N}
    resources_1=VCPU:2&resources_2=VCPU:2&group_policy=none
        | R[VCPU:4] {_1=R _2=R};
        N[VCPU:2] R[VCPU:2] {_1=N _2=R}; N[VCPU:2] R[VCPU:2] {_1=R _2=N}
    resources_1=VCPU:3&resources_2=VCPU:3&group_policy=none
        | none

    World: H(VCPU 4, agg A), *S1(DISK 4, agg A), *S2(DISK 4, agg A)

    resources=VCPU:1&resources_1=DISK:1&resources_2=DISK:2&group_policy=isolate
        | H[VCPU:1] S1[DISK:1] S2[DISK:2] {''=H _1=S1 _2=S2};
        H[VCPU:1] S1[DISK:2] S2[DISK:1] {''=H _1=S2 _2=S1}
    """
)
def test_isolate_keeps_suffixed_groups_apart(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 6 max 4), N<R(VCPU 2)

    resources=VCPU:1&resources_1=VCPU:1&group_policy=none
        | N[VCPU:2] {''=N _1=N}; R[VCPU:2] {''=R _1=R};
        N[VCPU:1] R[VCPU:1] {''=N _1=R}; N[VCPU:1] R[VCPU:1] {''=R _1=N}
    resources_1=VCPU:1&group_policy=isolate
        | N[VCPU:1] {_1=N}; R[VCPU:1] {_1=R}

    World: R(VCPU 4), N<R(VCPU 4)

    resources=VCPU:1&resources_X=VCPU:2&group_policy=none
        | N[VCPU:1] R[VCPU:2] {''=N _X=R}; N[VCPU:2] R[VCPU:1] {''=R _X=N};
        N[VCPU:3] {''=N _X=N}; R[VCPU:3] {''=R _X=R}
    """
)
def test_the_unsuffixed_group_is_never_kept_apart(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 9 max 5)
    resources_1=VCPU:2&resources_2=VCPU:3&group_policy=none     | P[VCPU:5] {_1=P _2=P}
    resources_1=VCPU:3&resources_2=VCPU:3&group_policy=none     | none

    World: P(MEM 12 min 2 step 2 max 8)
    resources_1=MEM:2&resources_2=MEM:6&group_policy=none       | P[MEM:8] {_1=P _2=P}
    resources_1=MEM:4&resources_2=MEM:6&group_policy=none       | none
    resources_1=MEM:1&resources_2=MEM:1&group_policy=none       | none

    World: P(MEM 12 min 2)
    resources_1=MEM:1&resources_2=MEM:1&group_policy=none       | none
    resources_1=MEM:2&resources_2=MEM:3&group_policy=none       | P[MEM:5] {_1=P _2=P}

    World: P(VCPU 4 used 1)
    resources_1=VCPU:2&resources_2=VCPU:1&group_policy=none     | P[VCPU:3] {_1=P _2=P}
    resources_1=VCPU:2&resources_2=VCPU:2&group_policy=none     | none
    """
)
def test_the_sum_has_to_fit_and_each_amount_by_itself(worlds: Worlds, case: Case) -> None:
    # The sum keeps to the capacity and to max_unit. Each amount keeps to all units as well.
    case.hold(worlds(case.world))


@table(
    """
    World: P(MEM 12 min 4 step 4 max 8)
    resources_1=MEM:4&resources_2=MEM:4&group_policy=none       | P[MEM:8] {_1=P _2=P}

    World: P(MEM 12 step 3), Q(MEM 12 step 2)
    resources_1=MEM:3&resources_2=MEM:6&group_policy=none       | P[MEM:9] {_1=P _2=P}

    World: P(VCPU 9 max 5, MEM 5)
    resources_1=VCPU:2,MEM:3&resources_2=VCPU:3&group_policy=none
        | P[MEM:3,VCPU:5] {_1=P _2=P}
    resources=VCPU:1,MEM:1&resources_1=VCPU:2,MEM:3&resources_2=VCPU:2&group_policy=none
        | P[MEM:4,VCPU:5] {''=P _1=P _2=P}
    resources=VCPU:1,MEM:1&resources_1=VCPU:2,MEM:5&resources_2=VCPU:2&group_policy=none
        | none
    """
)
def test_amounts_add_up_class_by_class(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4), K(MEM 4, agg A), *S(DISK 4, agg A)
    resources_1=VCPU:1&resources_2=MEM:1&group_policy=none      | none
    resources_1=VCPU:1&resources_2=DISK:1&group_policy=none     | none
    resources_1=MEM:1&resources_2=DISK:1&group_policy=none      | {_1=K _2=S}
    resources=VCPU:1&resources_2=DISK:1                         | none
    resources=MEM:1&resources_2=DISK:1                          | {''=K _2=S}
    """
)
def test_all_groups_are_solved_for_the_same_tree(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H1(agg A), H2(agg A), *S1(DISK 5, agg A), *S2(GOLD 5, agg A)
    resources_1=DISK:1&resources_2=GOLD:1&group_policy=isolate
        | S1[DISK:1] S2[GOLD:1] {_1=S1 _2=S2}                   | S1, S2

    resources=DISK:1&resources_2=GOLD:1
        | S1[DISK:1] S2[GOLD:1] {''=S1 _2=S2}                   | S1, S2
    DISK:1,GOLD:1
        | S1[DISK:1] S2[GOLD:1] {''=S1+S2}                      | S1, S2
    """
)
def test_a_candidate_is_listed_once_however_many_anchors_it_has(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


def test_candidates_that_differ_only_in_mappings_are_listed_where_mappings_are_shown(
    worlds: Worlds,
) -> None:
    query = "resources1=VCPU:1&resources2=VCPU:1&group_policy=none"
    world = worlds(TWO_PROVIDERS)
    world.expect(
        query,
        "N[VCPU:2] {1=N 2=N}; R[VCPU:2] {1=R 2=R};"
        "N[VCPU:1] R[VCPU:1] {1=N 2=R}; N[VCPU:1] R[VCPU:1] {1=R 2=N}",
        version="1.34",
    )
