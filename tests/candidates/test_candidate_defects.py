"""Defects of the reference service in its answers to `GET /allocation_candidates`.

The numbers D1 to D12 are those of the list of defects of this route. The rest of the API has a
list of its own. Roost corrects most of these defects and imitates some.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from support.worlds.case_tables import Case, table
from support.worlds.world import LATEST, Configured, Worlds

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@table(
    """
    World: R(VCPU 6 max 4), N<R(VCPU 2)
    resources=VCPU:1&resources_1=VCPU:1
        | N[VCPU:2] {''=N _1=N}; R[VCPU:2] {''=R _1=R};
        N[VCPU:1] R[VCPU:1] {''=N _1=R}; N[VCPU:1] R[VCPU:1] {''=R _1=N}
    resources=VCPU:1&resources_1=VCPU:1&group_policy=isolate
        | N[VCPU:2] {''=N _1=N}; R[VCPU:2] {''=R _1=R};
        N[VCPU:1] R[VCPU:1] {''=N _1=R}; N[VCPU:1] R[VCPU:1] {''=R _1=N}

    World: H(VCPU 4, agg A), *S1(GOLD 1, agg A), *S2(GOLD 1, agg A)
    resources=GOLD:1,VCPU:1&resources_1=VCPU:2
        | H[VCPU:3] S1[GOLD:1] {''=H+S1 _1=H}; H[VCPU:3] S2[GOLD:1] {''=H+S2 _1=H}
    resources=GOLD:1,VCPU:1&resources_1=VCPU:2&group_policy=isolate
        | H[VCPU:3] S1[GOLD:1] {''=H+S1 _1=H}; H[VCPU:3] S2[GOLD:1] {''=H+S2 _1=H}
    """
)
def test_d1_amounts_of_one_candidate_do_not_leak_into_another(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_d2_a_shared_solution_counts_for_every_tree(worlds: Worlds, order: tuple[int, ...]) -> None:
    providers = ["H1(VCPU 4, agg A)", "H2(VCPU 4, agg A)", "*SS(DISK 10, agg A)"]
    world = worlds(", ".join(providers[number] for number in order))
    world.expect(
        "resources=DISK:1&resources_1=VCPU:1",
        "H1[VCPU:1] SS[DISK:1] {''=SS _1=H1}; H2[VCPU:1] SS[DISK:1] {''=SS _1=H2}",
    )
    world.expect(
        "resources_2=DISK:1&resources_1=VCPU:1&group_policy=none",
        "H1[VCPU:1] SS[DISK:1] {_1=H1 _2=SS}; H2[VCPU:1] SS[DISK:1] {_1=H2 _2=SS}",
    )


@table(
    """
    World: H(VCPU 4, agg A, T1), N<H(MEM 4), *SS(DISK 10, GOLD 1, agg A, T2)
    resources=DISK:1&required_2=T1&same_subtree=_2      | SS[DISK:1] {''=SS _2=H}

    World: H(agg A, T1), *SS(DISK 1, agg A)
    resources=DISK:1&required_2=T1&same_subtree=_2      | SS[DISK:1] {''=SS _2=H}
    """
)
def test_d2_a_shared_solution_counts_with_a_group_without_resources(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8, agg A), O(MEM 8), *SC<O(DISK 5, agg A)
    VCPU:1,DISK:1                     | H[VCPU:1] SC[DISK:1] {''=H+SC}    | H, O, SC

    World: H(VCPU 8, agg A), O(VCPU 8, agg B), *SC<O(DISK 5, agg A)
    VCPU:1,DISK:1&member_of=!{B}      | H[VCPU:1] SC[DISK:1] {''=H+SC}    | H, O, SC

    World: H(VCPU 8, agg A), O(VCPU 8, T1), *SC<O(DISK 5, agg A)
    VCPU:1,DISK:1&root_required=!T1   | H[VCPU:1] SC[DISK:1] {''=H+SC}    | H, O, SC
    """
)
def test_d3_a_sharing_child_serves_other_trees_where_its_own_tree_cannot(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 4, agg A, T1), N<R(agg B, T2), Q(VCPU 4)
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=!T1      | none
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&member_of_2=!{B}    | none
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&in_tree_2=<N>       | none
    """
)
def test_d4_a_group_without_required_traits_or_aggregates_is_satisfied_by_no_provider(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: R(VCPU 4, agg A, T1), N<R(agg B, T2), Q(VCPU 4)
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=T2&in_tree_2=<Q>
        | R[VCPU:1] {_1=R _2=N}
    resources_1=VCPU:1&group_policy=none&same_subtree=_1,_2&required_2=T2&in_tree_2=<unknown>
        | none
    """
)
def test_d5_in_tree_of_a_group_without_resources_must_exist_and_binds_nothing(
    worlds: Worlds, case: Case
) -> None:
    case.hold(worlds(case.world))


def test_d6_candidates_that_differ_only_in_mappings_may_be_shown_once(worlds: Worlds) -> None:
    query = "resources_1=VCPU:1&resources_2=VCPU:1&group_policy=none"
    reply = worlds("R(VCPU 6 max 4), N<R(VCPU 2)").ask(query, "1.33")
    shown = sorted(map(str, reply.candidates))
    assert sorted(set(shown)) == ["N[VCPU:1] R[VCPU:1]", "N[VCPU:2]", "R[VCPU:2]"]
    assert len(shown) in (3, 4)


@pytest.mark.parametrize("amount", [2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**40])
@pytest.mark.parametrize("version", ["1.10", LATEST])
def test_d7_an_amount_of_any_size_is_accepted(worlds: Worlds, amount: int, version: str) -> None:
    world = worlds("H(VCPU 8), N<H(VCPU 8 ratio 9999)")
    world.expect(f"VCPU:{amount}", "none", version=version)
    if version == LATEST:
        world.expect(f"resources_1=VCPU:{amount}", "none")
        world.expect(f"resources=VCPU:1&resources_1=VCPU:{amount}", "none")
        world.expect(f"resources_1=VCPU:{amount}&resources_2=VCPU:1&group_policy=none", "none")


@table(
    """
    World: R(VCPU 4), N<R(VCPU 4)
    VCPU:1&limit=abc&limit=3    | 400 Invalid query string parameters:
    VCPU:1&limit=3&limit=abc    | 400 Invalid query string parameters:
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=foo&group_policy=none
        | 400 'foo' is not one of ['none', 'isolate']
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=&group_policy=none
        | 400 Invalid query string parameters:
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=isolate&group_policy=none
        | {_1=N _2=R}; {_1=R _2=N}
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=none&group_policy=isolate
        | {_1=N _2=R}; {_1=R _2=N}; {_1=N _2=N}; {_1=R _2=R}
    """
)
def test_d8_every_value_is_checked_and_the_first_value_is_used(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


def test_d8_the_first_limit_is_used(worlds: Worlds) -> None:
    world = worlds("H(VCPU 4), K(VCPU 4), L(VCPU 4)")
    assert len(world.ask("VCPU:1&limit=1&limit=3").candidates) == 1
    assert len(world.ask("VCPU:1&limit=3&limit=1").candidates) == 3


@on_sqlite
def test_d9_usages_count_with_the_option_for_wide_trees(configured: Configured) -> None:
    world = configured(
        "P(VCPU 4 used 1)", "[workarounds]", "optimize_for_wide_provider_trees = true"
    )
    world.expect("resources_1=VCPU:2&resources_2=VCPU:2&group_policy=none", "none")
    world.expect("resources_1=VCPU:2&resources_2=VCPU:1&group_policy=none", "P[VCPU:3]")


@on_sqlite
def test_d10_the_maximum_counts_the_returned_candidates(configured: Configured) -> None:
    # At 1.28, only the candidates on R alone and on L alone may be shown.
    text = "R(VCPU 4, MEM 4), N<R(VCPU 4), M<R(VCPU 4), L<R(VCPU 4, MEM 4), K<R(MEM 4)"
    world = configured(text, "[placement]", "max_allocation_candidates = 2")
    world.expect("VCPU:1,MEM:1", "R; L", version="1.28")
    assert len(world.ask("VCPU:1,MEM:1", "1.29").candidates) == 2


@table(
    """
    World: H(VCPU 8)
    resources=VCPU:100&resources1=NOPE:1      | 400 No such resource class NOPE.
    resources=VCPU:100&required1=NOPE&resources1=VCPU:1     | 400 No such trait(s): NOPE.
    """
)
def test_d11_unknown_names_are_always_refused(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 4, agg A, T1), N<H(MEM 4), *SS(DISK 10, GOLD 1, agg A, T2)
    resources_1=VCPU:1&required_2=T2&group_policy=none&same_subtree=_2
        | H[VCPU:1] {_1=H _2=SS}    | H, N
    """
)
def test_d12_a_tree_that_gives_nothing_has_no_summaries(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
