"""Odd names and sizes in the answers of a server harm no terminal."""

from __future__ import annotations

from typing import Any

import pytest

from support.roost_command import roost
from support.stubs.question_stub import HOST, Serving, capacity, explanation

EVIL = "x\x1b]0;owned\x07\x9b31m\u202egnp\u2028[bold]\nroost: ok"
SHOWN = r"x\x1b]0;owned\x07\x9b31m\u202egnp\u2028[bold]\nroost: ok"
NAMED = {"uuid": HOST["uuid"], "name": EVIL}


def evil_explanation() -> dict[str, Any]:
    answer = explanation()
    answer["reason"]["text"] = EVIL
    answer["groups"][1]["group"] = EVIL
    answer["misses"] = [{"root": NAMED, "lacks": [{"text": EVIL}]}]
    answer["hints"] = [{"text": EVIL, "query": EVIL}]
    return answer


ANSWERS: dict[str, Any] = {
    "/allocation_candidates": {
        "allocation_requests": [
            {"allocations": {EVIL: {"resources": {EVIL: 1}}}, "mappings": {EVIL: [EVIL]}}
        ],
        "provider_summaries": {},
    },
    "/roost/explain": evil_explanation(),
    "/roost/capacity": capacity()
    | {"limited_by": {"text": EVIL}, "roots": [{"root": NAMED, "fits": 1}]},
    "/roost/fragmentation": {"resource_classes": {EVIL: {"free": 3, "usable": [2]}}},
    "/roost/resilience": {"survives": 1, "roots": [{"root": NAMED, "fits": False, "text": EVIL}]},
    "/roost/whatif": {
        "changes": [{"text": EVIL, "applied": False}],
        "answers": [{"before": explanation(), "after": evil_explanation()}],
    },
}
COMMANDS = [
    ["candidates", "VCPU=1"],
    ["explain", "VCPU=1"],
    ["why", "compute-1", "VCPU=1"],
    ["capacity", "VCPU=1", "--by-root"],
    ["fragmentation", "VCPU=1"],
    ["resilience"],
    ["whatif", "--drain", "compute-1", "explain", "VCPU=1"],
]


@pytest.mark.parametrize("form", ["table", "csv", "json", "yaml"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_control_characters_of_a_server_are_spelt_out(
    serving: Serving, command: list[str], form: str
) -> None:
    serving(ANSWERS)
    outcome = roost(*command, "--output", form)
    assert outcome.status in (0, 3), outcome.err
    for text in (outcome.out, outcome.err):
        assert all(character.isprintable() for character in text.replace("\n", ""))
        assert not [line for line in text.splitlines() if line.startswith("roost: ok")]
    if form == "table":
        assert SHOWN in outcome.out


def test_words_with_control_characters_are_spelt_out_in_errors() -> None:
    outcome = roost("explain", EVIL)
    assert outcome.status == 2
    assert all(character.isprintable() for character in outcome.err.replace("\n", ""))


def test_a_cloud_without_trees_is_drawn(serving: Serving) -> None:
    answer = explanation() | {"groups": [], "trees": [], "misses": [], "hints": []}
    serving({"/roost/explain": answer, "/roost/fragmentation": {"resource_classes": {}}})
    assert roost("explain", "VCPU=1").lines[0].startswith("There are no candidates.")
    assert roost("fragmentation").status == 0
