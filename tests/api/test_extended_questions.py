"""Explain, capacity, fragmentation and what-if take the queries of `GET /roost/candidates`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from support.api_client import ApiClient
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import build_world

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

WORLD = "H1(MEM 9, T1)  N1<H1(VCPU 4)  F1<N1(GOLD 2)  N2<H1(VCPU 8)  H2(VCPU 8, T2)"


def explained(api: ApiClient, query: str, further: str = "") -> Any:
    answer = api.get(f"/roost/explain?{write_query(query)}{further}")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize(
    ("query", "stage", "text"),
    [
        (
            "resources_A=VCPU:6&in_subtree_A=N1",
            "in_tree",
            f"Group _A: no provider that passes the stages before is {provider_uuid('N1')} "
            "or below it.",
        ),
        (
            "VCPU:6&in_subtree=H2&root_required=T1",
            "root",
            f"No tree has a root that has CUSTOM_T1 and is the root of {provider_uuid('H2')}.",
        ),
        (
            "VCPU:1&root_required=in:T1,T2&root_required=in:T3",
            "root",
            "No tree has a root that has CUSTOM_T1 or CUSTOM_T2 and has CUSTOM_T3.",
        ),
        (
            "resources_A=GOLD:1&resources_B=GOLD:1&isolate=_A,_B",
            "together",
            "Each group by itself has a provider, but no tree has another provider for each of "
            "the groups _A and _B (isolate=_A,_B).",
        ),
        (
            "resources_A=VCPU:1&resources_B=VCPU:1&resources_C=VCPU:1"
            "&isolate=_A,_C&isolate=_B,_C&isolate=_A,_B",
            "together",
            "Each group by itself has a provider, but no tree meets all of these at once: "
            "isolate=_A,_C, isolate=_B,_C and isolate=_A,_B.",
        ),
    ],
)
def test_the_reason_names_what_only_the_extended_grammar_has(
    api: ApiClient, query: str, stage: str, text: str
) -> None:
    build_world(api, WORLD)
    api.put("/traits/CUSTOM_T3")
    reason = explained(api, query)["reason"]
    assert (reason["stage"], reason["text"]) == (stage, text)


def test_a_provider_outside_the_subtree_lacks_it_and_a_hint_leaves_it_out(api: ApiClient) -> None:
    build_world(api, WORLD)
    query = "resources_A=VCPU:6&in_subtree_A=N1"
    found = explained(api, query, "&provider=H1")
    (miss,) = found["misses"]
    assert [lack["text"] for lack in miss["lacks"]] == ["N1 has 4 VCPU free, 6 are wanted."]
    assert [hint["text"] for hint in found["hints"]] == ["Ask for 4 VCPU instead of 6 in group _A."]
    (miss,) = explained(api, query, "&provider=H2")["misses"]
    assert [(lack["stage"], lack["rule"], lack["text"]) for lack in miss["lacks"]] == [
        (
            "in_tree",
            "in_subtree",
            "H2 is neither the provider that in_subtree names nor below it.",
        )
    ]
    (miss,) = explained(api, "VCPU:6&in_subtree=N2", "&provider=H2")["misses"]
    assert [lack["text"] for lack in miss["lacks"]] == [
        "H2 is not the root of the provider that in_subtree names.",
        "H2 is neither the provider that in_subtree names nor below it.",
    ]


def test_two_bindings_that_contradict_each_other_have_two_hints(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = explained(api, "VCPU:1&in_subtree=N1&in_tree=H2")
    assert (found["feasible"], found["misses"]) == (False, [])
    assert [hint["text"] for hint in found["hints"]] == [
        "Leave in_subtree out.",
        "Leave in_tree out.",
    ]


def test_hints_keep_or_drop_what_only_the_extended_grammar_has(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = explained(
        api,
        "resources_A=GOLD:1&resources_B=GOLD:1&isolate=_A,_B&root_required=in:T1,T2",
    )
    root = "&root_required=in:CUSTOM_T1,CUSTOM_T2"
    assert found["hints"] == [
        {
            "text": "Leave isolate=_A,_B out.",
            "query": f"resources_A=CUSTOM_GOLD:1&resources_B=CUSTOM_GOLD:1{root}&group_policy=none",
        },
        {"text": "Leave group _A out.", "query": f"resources_B=CUSTOM_GOLD:1{root}"},
    ]
    hints = explained(api, "VCPU:8&in_subtree=N2&root_required=in:T2")["hints"]
    assert [hint["text"] for hint in hints] == [
        "Do not require CUSTOM_T2 of the root (root_required).",
        "Leave in_subtree out.",
    ]


# Alternatives.

CHOICE = "resources_X=GOLD:3&or_resources_X=VCPU:9"


def test_each_alternative_has_a_funnel_and_the_reason_is_of_the_one_that_comes_furthest(
    api: ApiClient,
) -> None:
    build_world(api, WORLD)
    found = explained(api, f"{CHOICE}&or_resources_X=DISK:1")
    assert [(group["group"], group["alternative"]) for group in found["groups"]] == [
        ("_X", 0),
        ("_X", 1),
        ("_X", 2),
    ]
    first, second, third = ([row["trees"] for row in group["funnel"]] for group in found["groups"])
    assert (first, second, third) == ([1, 1, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0], [0] * 6)
    assert found["reason"] == {
        "stage": "room",
        "group": "_X",
        "resource_class": "CUSTOM_GOLD",
        "text": "Group _X: no provider has room for CUSTOM_GOLD:3; "
        "the most that one has left is 2.",
        "alternatives": {"_X": 0},
    }
    reason = explained(api, "resources_X=DISK:1&or_resources_X=GOLD:3")["reason"]
    assert (reason["stage"], reason["alternatives"]) == ("room", {"_X": 1})


def test_a_miss_takes_the_alternative_that_brings_it_nearest_and_hints_keep_the_rest(
    api: ApiClient,
) -> None:
    build_world(api, WORLD)
    found = explained(api, CHOICE)
    assert sorted(
        (miss["root"]["name"], miss["alternatives"], [lack["text"] for lack in miss["lacks"]])
        for miss in found["misses"]
    ) == [
        ("H1", {"_X": 1}, ["N2 has 8 VCPU free, 9 are wanted."]),
        ("H2", {"_X": 1}, ["H2 has 8 VCPU free, 9 are wanted."]),
    ]
    assert [(hint["text"], hint["query"]) for hint in found["hints"]] == [
        (
            "Ask for 8 VCPU instead of 9 in group _X.",
            "resources_X=CUSTOM_GOLD:3&or_resources_X=VCPU:8",
        ),
        (
            "Ask for 2 CUSTOM_GOLD instead of 3 in group _X.",
            "resources_X=CUSTOM_GOLD:2&or_resources_X=VCPU:9",
        ),
    ]
    assert explained(api, "resources_X=GOLD:3&or_resources_X=VCPU:8")["feasible"]


def test_a_query_without_alternatives_does_not_mention_them(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = explained(api, "VCPU:9")
    assert "alternatives" not in found["reason"]
    assert "alternatives" not in found["misses"][0]
    assert "alternative" not in found["groups"][0]


# Questions beside explain.


def test_capacity_counts_what_the_extended_grammar_asks_for(api: ApiClient) -> None:
    build_world(api, WORLD)

    def fits(query: str) -> Any:
        answer = api.get(f"/roost/capacity?{write_query(query)}&by=root")
        assert answer.status == 200, answer.body
        return answer.json

    assert fits("VCPU:1&in_subtree=N1")["fits"] == 4
    assert fits("VCPU:1&root_required=in:T1,T2")["fits"] == 20
    assert fits("resources_A=VCPU:1&resources_B=VCPU:1&isolate=_A,_B")["fits"] == 4
    found = fits("resources_X=GOLD:1&or_resources_X=MEM:9")
    assert (found["fits"], found["exact"], found["at_most"]) == (2, False, 3)
    assert found["roots"] == [
        {"root": {"uuid": provider_uuid("H1"), "name": "H1"}, "fits": 2, "at_most": 3}
    ]


def test_fragmentation_uses_trees_where_any_alternative_fits(api: ApiClient) -> None:
    build_world(api, WORLD)
    asks = ["VCPU:1&in_subtree=N1", "resources_X=GOLD:3&or_resources_X=VCPU:8&in_subtree_X=H2"]
    sent = "&".join(f"ask={quote(write_query(ask), safe='')}" for ask in asks)
    answer = api.get(f"/roost/fragmentation?{sent}")
    assert answer.status == 200, answer.body
    assert answer.json["resource_classes"]["VCPU"] == {"free": 20, "usable": [12, 8]}


def test_whatif_asks_and_claims_in_the_extended_grammar(api: ApiClient) -> None:
    build_world(api, WORLD)
    query = "resources_X=CUSTOM_GOLD:2&or_resources_X=VCPU:8"
    answer = api.post(
        "/roost/whatif",
        {
            "changes": [{"claim": {"query": query}}, {"remove": "N1"}],
            "ask": [
                {"candidates": query},
                {"explain": "resources=VCPU:1&in_subtree=N1"},
                {"capacity": "resources=VCPU:1&in_subtree=N1"},
            ],
        },
    )
    assert answer.status == 200, answer.body
    claimed, _ = answer.json["changes"]
    assert claimed["allocations"] == {provider_uuid("F1"): {"resources": {"CUSTOM_GOLD": 2}}}
    candidates, explanation, capacity = answer.json["answers"]
    assert [entry["alternatives"] for entry in candidates["before"]["allocation_requests"]] == [
        {"_X": 0},
        {"_X": 1},
    ]
    assert {
        entry["alternatives"]["_X"] for entry in candidates["after"]["allocation_requests"]
    } == {1}
    assert explanation["before"]["feasible"]
    # The provider is gone.
    assert not explanation["after"]["feasible"]
    assert [hint["text"] for hint in explanation["after"]["hints"]] == ["Leave in_subtree out."]
    assert (capacity["before"]["fits"], capacity["after"]["fits"]) == (4, 0)


@pytest.mark.parametrize(
    "path",
    [
        "/roost/explain?resources=VCPU:1&in_subtree=nobody",
        "/roost/explain?resources=VCPU:1&in_tree=nobody",
        "/roost/capacity?resources=VCPU:1&in_subtree=nobody",
        "/roost/fragmentation?ask=resources%3DVCPU:1%26in_subtree%3Dnobody",
    ],
)
def test_an_unknown_provider_is_not_found(api: ApiClient, path: str) -> None:
    build_world(api, WORLD)
    answer = api.get(path)
    assert (answer.status, answer.error["code"]) == (404, "roost.no_such_provider")
