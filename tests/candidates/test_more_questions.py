"""`GET /roost/candidates`: questions that no version of the Placement API has."""

from __future__ import annotations

from typing import Any

import pytest

from support.worlds.case_tables import Case, table
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import World, Worlds

HOSTS = (
    "H(MEM 9, T1), N1<H(VCPU 4), F1<N1(GOLD 2), G1<N1(GOLD 2), N2<H(VCPU 4), F2<N2(GOLD 2), "
    "K(VCPU 4, MEM 9, GOLD 2, T2)"
)


def hold(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world).extended())


@table(
    f"""
    World: {HOSTS}

    VCPU:1&in_subtree=N1                        | N1
    VCPU:1&in_subtree=<N1>                      | N1
    VCPU:1&in_subtree=H                         | N1; N2
    VCPU:1&in_subtree=F1                        | none
    VCPU:1,GOLD:1&in_subtree=N1                 | N1+F1; N1+G1
    VCPU:1,MEM:1&in_subtree=N1                  | none
    resources_A=GOLD:1&in_subtree_A=N1          | F1; G1
    resources_A=GOLD:1&in_subtree_A=F1          | F1
    MEM:1&resources_A=GOLD:1&in_subtree_A=N2    | H+F2
    VCPU:1&in_subtree=N1&in_tree=H              | N1
    VCPU:1&in_subtree=N1&in_tree=K              | none
    resources_A=VCPU:1&in_subtree_A=N1&in_tree_A=K  | none
    VCPU:1&in_tree=K                            | K
    VCPU:1&in_tree=<K>                          | K
    VCPU:1&in_tree=<nothing>                    | none
    resources_A=VCPU:1&in_subtree_B=N1&same_subtree=_A,_B&group_policy=none
        | {{_A=N1 _B=N1}}; {{_A=N1 _B=F1}}; {{_A=N1 _B=G1}}
    """
)
def test_a_group_is_bound_to_a_provider_and_what_is_below_it(worlds: Worlds, case: Case) -> None:
    hold(worlds, case)


@table(
    """
    World: *S(DISK 9, agg A), D<S(GOLD 9, agg A), H(VCPU 4, agg A)

    VCPU:1&resources_A=DISK:1&in_subtree_A=S    | H+S
    VCPU:1,DISK:1&in_subtree=H                  | none
    DISK:1&in_subtree=S                         | S
    GOLD:1&in_subtree=S                         | D
    DISK:1&in_subtree=S&resources_A=VCPU:1      | none
    DISK:1&in_tree=S&resources_A=VCPU:1         | none
    resources_A=VCPU:1&resources_B=DISK:1&in_subtree_B=S&group_policy=none      | H+S
    """
)
def test_a_subtree_has_no_provider_of_another_tree(worlds: Worlds, case: Case) -> None:
    hold(worlds, case)


@table(
    """
    World: A(VCPU 4, T1), B(VCPU 4, T2), C(VCPU 4, T1, T3), D(VCPU 4)

    VCPU:1&root_required=in:T1,T2                           | A; B; C
    VCPU:1&root_required=in:T1,T2&root_required=T3          | C
    VCPU:1&root_required=in:T1,T2&root_required=!T3         | A; B
    VCPU:1&root_required=T1&root_required=T2                | none
    VCPU:1&root_required=in:T1,T2&root_required=in:T2,T3    | B; C
    VCPU:1&root_required=in:T1&root_required=!T1
        | 400 Conflicting required and forbidden traits found in root_required: CUSTOM_T1
    VCPU:1&root_required=in:                                | 400 Got an empty trait
    """
)
def test_root_required_may_repeat_and_have_alternatives(worlds: Worlds, case: Case) -> None:
    hold(worlds, case)


THREE = "resources_A=GOLD:1&resources_B=GOLD:1&resources_C=GOLD:1"


@table(
    f"""
    World: H(VCPU 1), F<H(GOLD 4), G<H(GOLD 4)

    {THREE}&isolate=_A,_B                       | {{_A=F _B=G _C=F}}; {{_A=F _B=G _C=G}};
        {{_A=G _B=F _C=F}}; {{_A=G _B=F _C=G}}
    {THREE}&isolate=_A,_B&isolate=_B,_C         | {{_A=F _B=G _C=F}}; {{_A=G _B=F _C=G}}
    {THREE}&isolate=_A,_B&isolate=_B,_C&isolate=_A,_C       | none
    {THREE}&isolate=_A,_B,_C                    | none
    {THREE}&isolate=_A,_B&group_policy=isolate  | none
    {THREE}&isolate=_A,_B&group_policy=none&same_subtree=_B,_C
        | {{_A=F _B=G _C=G}}; {{_A=G _B=F _C=F}}
    resources_A=GOLD:1&isolate=_A               | F; G
    {THREE}                                     | 400 The "group_policy" parameter is required
    {THREE}&isolate=_A,_X                       | 400 ['_X'] not found in ['_A', '_B', '_C']
    {THREE}&isolate=_A,                         | 400 can not be specified in `isolate`
    """
)
def test_each_set_of_groups_is_isolated_for_itself(worlds: Worlds, case: Case) -> None:
    hold(worlds, case)


@table(
    """
    World: H(VCPU 1), F<H(GOLD 3), G<H(GOLD 1)

    resources_A=GOLD:2&resources_B=GOLD:1&resources_C=GOLD:1&isolate=_A,_B      | {_A=F _B=G _C=F}
    resources_A=GOLD:2&resources_B=GOLD:2&resources_C=GOLD:1&isolate=_A,_C      | none
    """
)
def test_groups_that_are_not_isolated_share_the_room_of_a_provider(
    worlds: Worlds, case: Case
) -> None:
    hold(worlds, case)


# Alternatives.

MIXED = "A(VCPU 8, GOLD 1), B(VCPU 8), C(VCPU 2, DISK 9), D(DISK 9)"


def listed(world: World, query: str) -> list[tuple[str, Any]]:
    """The candidates in their order: the givers, and the alternatives that they take."""
    body = world.extended().send(query).json
    names = world.names()
    return [
        ("+".join(sorted(names[uuid] for uuid in entry["allocations"])), entry.get("alternatives"))
        for entry in body["allocation_requests"]
    ]


def test_a_later_alternative_is_for_trees_in_which_no_earlier_one_works(worlds: Worlds) -> None:
    world = worlds(MIXED)
    query = "resources_X=GOLD:1&or_resources_X=VCPU:4&or_resources_X=DISK:1"
    assert listed(world, query) == [
        ("A", {"_X": 0}),
        ("B", {"_X": 1}),
        ("C", {"_X": 2}),
        ("D", {"_X": 2}),
    ]
    assert listed(world, f"{query}&limit=2") == [("A", {"_X": 0}), ("B", {"_X": 1})]
    assert listed(world, "GOLD:1&or_resources=VCPU:4&limit=1") == [("A", {"": 0})]


def test_alternatives_of_several_groups_prefer_the_fewest_steps(worlds: Worlds) -> None:
    world = worlds(
        "A(VCPU 8, GOLD 1), B(VCPU 2, DISK 9), C(VCPU 2, GOLD 1), E(VCPU 8, DISK 2), "
        "F(VCPU 8, MEM 1)"
    )
    query = (
        "VCPU:4&or_resources=VCPU:1&resources_X=GOLD:1&or_resources_X=DISK:1&or_resources_X=MEM:1"
    )
    assert listed(world, query) == [
        ("A", {"": 0, "_X": 0}),
        ("E", {"": 0, "_X": 1}),
        ("C", {"": 1, "_X": 0}),
        ("F", {"": 0, "_X": 2}),
        ("B", {"": 1, "_X": 1}),
    ]


def test_an_answer_without_alternatives_has_the_shape_of_the_newest_version(worlds: Worlds) -> None:
    world = worlds(HOSTS)
    query = "VCPU:1&resources_A=GOLD:1"
    assert world.extended().send(query, "1.0").body == world.send(query).body


@table(
    f"""
    World: {MIXED}

    resources_X=GOLD:1&or_resources_X=     | 400 Badly formed resources parameter
    VCPU:1&or_resources_X=GOLD:1           | 400 or_resources_X is an alternative to resources_X
    VCPU:1&or_resources=NOTHING:1          | 400 No such resource class
    VCPU:1&in_subtree=A&in_subtree=B       | 400 in_subtree may be sent once
    VCPU:1&in_subtree=                     | 400 in_subtree needs the uuid or the name
    VCPU:1&order=best                      | 400 Send one of these: first, random, pack, spread.
    VCPU:1&order=fragmentation             | 400 Send one of these: first, random, pack, spread.
    VCPU:1&order=pack&order=pack           | 400 order may be sent once
    VCPU:1&seed=1                          | 400 seed belongs to order=random
    VCPU:1&order=random&seed=x             | 400 Send a number from 0 to 4294967295
    VCPU:1&foo=1                           | 400 'foo' does not match
    """
)
def test_a_bad_question_is_refused_with_the_reason(worlds: Worlds, case: Case) -> None:
    hold(worlds, case)


def test_combinations_of_alternatives_are_bounded(worlds: Worlds) -> None:
    query = "VCPU:1" + "&or_resources=VCPU:1" * 32
    answer = worlds(MIXED).extended().send(query)
    assert answer.status == 400
    assert "33 combinations; 32 are allowed" in answer.detail


@pytest.mark.parametrize("reference", ["nothing", provider_uuid("nothing")])
def test_an_unknown_provider_of_in_subtree_is_not_found(worlds: Worlds, reference: str) -> None:
    answer = worlds(MIXED).extended().send(f"VCPU:1&in_subtree={reference}")
    assert answer.status == 404
    assert answer.json["errors"][0]["code"] == "roost.no_such_provider"


def test_an_unknown_name_of_in_tree_is_not_found(worlds: Worlds) -> None:
    answer = worlds(MIXED).extended().send("VCPU:1&in_tree=nothing")
    assert answer.status == 404


@pytest.mark.parametrize("version", ["1.10", "1.29", "1.39"])
@pytest.mark.parametrize(
    "parameter",
    [
        *("in_subtree=A", "in_subtree_X=A", "isolate=_X", "or_resources=VCPU:1"),
        *("or_resources_X=VCPU:1", "order=pack", "seed=1"),
    ],
)
def test_no_version_of_the_api_has_the_new_parameters(
    worlds: Worlds, parameter: str, version: str
) -> None:
    answer = worlds(MIXED).send(f"VCPU:1&{parameter}", version)
    assert answer.status == 400
    assert "Invalid query string parameters" in answer.detail


@table(
    f"""
    World: {MIXED}

    VCPU:1&root_required=T1&root_required=T2    | 400 may be specified only once
    VCPU:1&root_required=in:T1,T2               | 400 only supported since microversion 1.39
    VCPU:1&in_tree=A                            | 400 Expected 'in_tree' parameter to be a format
    resources_X=VCPU:1&resources_Y=VCPU:1       | 400 The "group_policy" parameter is required
    """
)
def test_the_newest_version_is_as_strict_as_before(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


def test_both_grammars_keep_their_own_answers(worlds: Worlds) -> None:
    """A text may be a question of one grammar and a mistake of the second one."""
    world = worlds(MIXED)
    query = write_query("VCPU:1&root_required=!T1&root_required=!T2")
    asked = world.api.get(f"/roost/candidates?{query}")
    assert asked.status == 200
    assert world.api.get(f"/allocation_candidates?{query}").status == 400
    assert world.api.get(f"/roost/candidates?{query}").body == asked.body
