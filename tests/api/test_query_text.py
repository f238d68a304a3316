"""A query as text: the API reads what the model writes."""

from __future__ import annotations

import pytest

from roost.service.questions.candidate_query_text import write_candidate_query
from support.properties import many
from support.scenarios.scenario import Scenario, tell
from support.worlds.queries import query_of, sent_query
from support.worlds.requested_worlds import latest_requests


@pytest.mark.parametrize(
    "text",
    [
        "resources_a-b=VCPU:1&required_a-b=T1,!T2&required_a-b=in:T1,T3&limit=3",
        "VCPU:1,MEM:2&member_of=in:{A},{B}&member_of={A}&member_of=!in:{A},{B}&in_tree=<R>",
        "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
        "resources1=VCPU:1&required2=T1&same_subtree=1,2&same_subtree=2&group_policy=none",
        "VCPU:1&root_required=T1,!T2",
    ],
)
def test_the_api_reads_the_query_that_was_written(text: str) -> None:
    query = query_of(text)
    assert sent_query(write_candidate_query(query)) == query


@pytest.mark.hypothesis
def test_the_api_reads_any_query_that_was_written() -> None:
    def check(scenario: Scenario) -> None:
        for _, _, query in latest_requests(scenario):
            assert sent_query(write_candidate_query(query)) == query

    tell(many(10), check)
