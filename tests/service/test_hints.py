"""Hints: each is a query close to one without candidates, and has a candidate."""

from __future__ import annotations

import re

import pytest

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import find_candidates
from roost.search.forest.forest import Forest
from roost.service.questions.hints import HINTS_MAX, Hint, find_hints
from support.properties import many
from support.scenarios.scenario import Scenario, tell
from support.worlds.found_misses import found_misses
from support.worlds.notation import aggregate_uuid, provider_uuid, short_name
from support.worlds.oracle_forests import forest_of_world
from support.worlds.oracle_worlds import oracle_world
from support.worlds.queries import query_of, sent_query
from support.worlds.requested_worlds import latest_requests


def hints_of(forest: Forest, query: CandidateQuery) -> tuple[Hint, ...]:
    return find_hints(forest, query, found_misses(forest, query, 5).kinds)


def has_candidates(forest: Forest, query: CandidateQuery) -> bool:
    return any(True for _ in find_candidates(forest, query, CandidateOrder()).batches)


def notes(hints: tuple[Hint, ...]) -> list[tuple[str, str]]:
    """Text and query of each hint, with short names."""
    return [(shortened(hint.text), shortened(hint.query)) for hint in hints]


def shortened(text: str) -> str:
    for name in "AB":
        text = text.replace(aggregate_uuid(name), f"{{{name}}}")
    text = text.replace(provider_uuid("H1"), "<H1>")
    return re.sub(r"\w+", lambda match: short_name(match[0]), text)


@pytest.mark.parametrize(
    ("world", "query", "expected"),
    [
        # The largest amount that works, whatever the tree.
        (
            "H1(VCPU 8 used 6) H2(VCPU 8 used 5)",
            "VCPU:4&limit=7",
            [("Ask for 3 VCPU instead of 4.", "resources=VCPU:3&limit=7")],
        ),
        (
            "H1(VCPU 64 used 36 step 8)",
            "VCPU:64",
            [("Ask for 24 VCPU instead of 64.", "resources=VCPU:24")],
        ),
        (
            "H1(VCPU 8 min 4 step 4, MEM 9)",
            "VCPU:2,MEM:1",
            [("Ask for 4 VCPU instead of 2.", "resources=VCPU:4,MEM:1")],
        ),
        # The root has the trait, the provider of the group has not.
        (
            "H1(MEM 8, T1) N1<H1(VCPU 8)",
            "resources_cpu=VCPU:1&required_cpu=T1",
            [
                (
                    "Require T1 of the root (root_required), not in group _cpu.",
                    "resources_cpu=VCPU:1&root_required=T1",
                )
            ],
        ),
        # Three changes are no hint.
        ("H1(VCPU 8)", "VCPU:1&required=T1,T2&required=in:T1,T3", []),
        (
            "H1(VCPU 8, T1)",
            "VCPU:1&required=!T1",
            [("Allow T1.", "resources=VCPU:1")],
        ),
        (
            "H1(VCPU 8, T2)",
            "VCPU:1&root_required=T1,!T3",
            [
                (
                    "Do not require T1 of the root (root_required).",
                    "resources=VCPU:1&root_required=!T3",
                )
            ],
        ),
        (
            "H1(VCPU 8, agg A)",
            "VCPU:1&member_of={A}&member_of={B}",
            [
                (
                    "Do not require aggregate {B} (member_of).",
                    "resources=VCPU:1&member_of={A}",
                )
            ],
        ),
        (
            "H1(VCPU 8, agg A)",
            "VCPU:1&member_of=!{A}",
            [("Allow aggregate {A} (member_of).", "resources=VCPU:1")],
        ),
        (
            "H1(VCPU 8 used 8) H2(VCPU 8)",
            "VCPU:1&in_tree=<H1>",
            [("Leave in_tree out.", "resources=VCPU:1")],
        ),
        # The tree does not exist.
        (
            "H2(VCPU 8)",
            "VCPU:1&in_tree=<H1>",
            [("Leave in_tree out.", "resources=VCPU:1")],
        ),
        (
            "H1() N1<H1(VCPU 8) N2<H1(VCPU 8)",
            "resources_A=VCPU:1&resources_B=VCPU:2&resources_C=VCPU:3&group_policy=isolate",
            [
                (
                    "Let groups share a provider (group_policy=none).",
                    "resources_A=VCPU:1&resources_B=VCPU:2&resources_C=VCPU:3&group_policy=none",
                ),
                (
                    "Leave group _A out.",
                    "resources_B=VCPU:2&resources_C=VCPU:3&group_policy=isolate",
                ),
                (
                    "Leave group _B out.",
                    "resources_A=VCPU:1&resources_C=VCPU:3&group_policy=isolate",
                ),
                (
                    "Leave group _C out.",
                    "resources_A=VCPU:1&resources_B=VCPU:2&group_policy=isolate",
                ),
            ],
        ),
        (
            "H1() N1<H1(VCPU 8) N2<H1(MEM 8)",
            "resources_A=VCPU:1&resources_B=MEM:1&same_subtree=_A,_B&group_policy=none",
            [
                (
                    "Leave same_subtree=_A,_B out.",
                    "resources_A=VCPU:1&resources_B=MEM:1&group_policy=none",
                ),
                ("Leave group _A out.", "resources_B=MEM:1&same_subtree=_B"),
                ("Leave group _B out.", "resources_A=VCPU:1&same_subtree=_A"),
            ],
        ),
        (
            "H1(VCPU 6)",
            "resources_A=VCPU:4&resources_B=VCPU:4&group_policy=none",
            [
                (
                    "Ask for 2 VCPU instead of 4 in group _B.",
                    "resources_A=VCPU:4&resources_B=VCPU:2&group_policy=none",
                ),
                # One of the equal groups stands for both.
                ("Leave group _A out.", "resources_B=VCPU:4"),
            ],
        ),
        # No single change suffices.
        (
            "H1(VCPU 4, T1)",
            "VCPU:8&required=!T1",
            [("Ask for 4 VCPU instead of 8, and allow T1.", "resources=VCPU:4")],
        ),
        ("", "VCPU:1", []),
    ],
)
def test_the_smallest_changes_come_first(
    world: str, query: str, expected: list[tuple[str, str]]
) -> None:
    forest = forest_of_world(oracle_world(world))
    assert notes(hints_of(forest, query_of(query))) == expected


def test_a_hint_for_one_tree_works_on_that_tree() -> None:
    forest = forest_of_world(oracle_world("H1(VCPU 8 used 7) H2(VCPU 8 used 5)"))
    query = query_of("VCPU:4")
    tree = forest.find_tree(provider_uuid("H1"))
    misses = found_misses(forest, query, 5, tree).kinds
    assert notes(find_hints(forest, query, misses, tree)) == [
        ("Ask for 1 VCPU instead of 4.", "resources=VCPU:1")
    ]


@pytest.mark.hypothesis
def test_every_hint_has_candidates() -> None:
    given = []

    def check(scenario: Scenario) -> None:
        for world, _, query in latest_requests(scenario):
            forest = forest_of_world(world)
            if has_candidates(forest, query):
                continue
            hints = hints_of(forest, query)
            assert len(hints) <= HINTS_MAX
            assert len({hint.query for hint in hints}) == len(hints)
            for hint in hints:
                assert has_candidates(forest, sent_query(hint.query)), hint
                assert sent_query(hint.query).limit == query.limit
            given.append(bool(hints))

    tell(many(30), check)
    assert sum(given) > 0.5 * len(given)
