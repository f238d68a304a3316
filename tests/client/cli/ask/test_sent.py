"""A question shows the request that it sends, and its hints ask the same question again."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from support.roost_command import roost
from support.stubs.question_stub import HOST, Serving, capacity, explanation

ANSWERS: dict[str, Any] = {
    "/allocation_candidates": {"allocation_requests": [], "provider_summaries": {}},
    "/roost/candidates": {"allocation_requests": [], "provider_summaries": {}},
    "/roost/explain": explanation(),
    "/roost/capacity": capacity(),
    "/roost/fragmentation": {"resource_classes": {}, "empty_roots": 0},
    "/roost/resilience": {"survives": 1, "roots": [], "exact": True},
    "/roost/whatif": {
        "changes": [],
        "answers": [{"before": explanation(feasible=True), "after": explanation()}],
    },
}


@pytest.mark.parametrize(
    "command",
    [
        "candidates VCPU=4",
        "candidates VCPU=4 --order random --seed 7 --limit 0",
        "candidates VCPU=4 --or VCPU=2",
        "explain VCPU=4",
        "explain VCPU=4 --misses 2",
        "why compute-1 VCPU=4",
        f"why {HOST['uuid']} VCPU=4 --require CUSTOM_GOLD",
        "why 'rack 1/&' VCPU=4",
        "capacity VCPU=4",
        "capacity VCPU=4 --by-root",
        "fragmentation",
        "fragmentation VCPU=2 --ask VCPU=16",
        "resilience",
        "resilience --lose 2",
        "whatif --drain compute-1 explain VCPU=4",
    ],
)
def test_the_request_that_is_shown_is_the_one_that_is_sent(serving: Serving, command: str) -> None:
    stub = serving(ANSWERS)
    outcome = roost(*shlex.split(command))
    assert outcome.status in (0, 3), outcome.err
    shown = outcome.err.splitlines()[0]
    (question,) = stub.questions
    sent = f"{question.method} {question.path}"
    if question.body:
        head, _, body = shown.partition(" {")
        assert json.loads("{" + body) == question.json
        shown = head
    assert shown == sent


@pytest.mark.parametrize(
    ("command", "following"),
    [
        ("explain VCPU=4", "roost candidates --from-query 'resources_cpu=PCPU:28&limit=1'"),
        ("why 'rack 1' VCPU=4", "roost why 'rack 1' --from-query 'resources_cpu=PCPU:28&limit=1'"),
        (
            "whatif --drain compute-1 --claim '2*VCPU=1' explain VCPU=4",
            "roost whatif --drain compute-1 --claim '2*VCPU=1' candidates --from-query "
            "'resources_cpu=PCPU:28&limit=1'",
        ),
    ],
)
def test_a_hint_asks_the_same_question(serving: Serving, command: str, following: str) -> None:
    serving(ANSWERS)
    outcome = roost(*shlex.split(command))
    assert outcome.lines[-1] == f"  {following}"
    # The command can be typed as it is.
    again = roost(*shlex.split(f"{following} --query")[1:])
    assert (again.status, again.out) == (0, "resources_cpu=PCPU:28&limit=1\n")
