"""`roost capacity`, `roost whatif`, `roost fragmentation` and `roost resilience`."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from roost.cli.ask.capacity import FragmentationPicture
from support.roost_command import roost
from support.stubs.placement_stub import Reply
from support.stubs.question_stub import HOST, NUMA, Serving, capacity, explanation

CAPACITY, WHATIF = "/roost/capacity", "/roost/whatif"
FRAGMENTATION, RESILIENCE = "/roost/fragmentation", "/roost/resilience"
CONSUMER = "c0ffee00-0000-0000-0000-0000000000aa"


# Capacity.


def test_a_number_that_is_exact_stands_alone(serving: Serving) -> None:
    serving({CAPACITY: capacity()})
    outcome = roost("capacity", "PCPU=4")
    assert (outcome.status, outcome.lines) == (0, ["1,234 fit.", "PCPU runs out first."])


def test_a_number_that_is_not_exact_has_two_bounds(serving: Serving) -> None:
    serving({CAPACITY: capacity(5, at_most=9)})
    assert roost("capacity", "PCPU=4").lines[0].startswith("5 to 9 fit")
    csv = roost("capacity", "PCPU=4", "-o", "csv").lines
    assert csv == [
        "fits,exact,at_most,limited_by,text",
        "5,no,9,PCPU,PCPU runs out first.",
    ]


def test_roots_of_all_pages_are_listed(serving: Serving) -> None:
    first = capacity() | {"roots": [{"root": HOST, "fits": 3}], "next": "bQ"}
    last = capacity() | {"roots": [{"root": NUMA, "fits": 6, "at_most": 8}]}
    stub = serving({})
    versions = {"versions": [{"max_version": "1.39"}]}
    stub.script.extend([Reply(body=body) for body in (versions, first, last)] * 2)
    outcome = roost("capacity", "PCPU=4", "--by-root")
    assert outcome.status == 0, outcome.err
    assert [line.split("  ")[0] for line in outcome.lines[-2:]] == ["compute-1_numa0", "compute-1"]
    assert "  6 to 8  " in outcome.lines[-2]
    csv = roost("capacity", "PCPU=4", "--by-root", "-o", "csv").lines
    assert csv == [
        "root,fits,at_most,uuid",
        f"compute-1,3,3,{HOST['uuid']}",
        f"compute-1_numa0,6,8,{NUMA['uuid']}",
    ]
    asked = [path for path in stub.asked if CAPACITY in path]
    assert "by=root" in asked[0]
    assert "marker=bQ" in asked[1]


# What-if.


def whatif(before: Any, after: Any) -> dict[str, Any]:
    changes = [{"change": "drain", "applied": True, "text": "compute-1 is drained."}]
    return {"changes": changes, "answers": [{"before": before, "after": after}]}


def test_changes_are_sent_in_their_order(serving: Serving) -> None:
    stub = serving({WHATIF: whatif(capacity(10), capacity(7))})
    outcome = roost(
        *("whatif", "--set", "compute-1:VCPU=64", "--drain", "compute-1"),
        *("--claim", "2*VCPU=4 --require CUSTOM_GOLD --in-tree compute-1", "--remove", "a:b"),
        *("--set", "a:b:VCPU.allocation_ratio=1.5", "--add-host", "10*compute-1"),
        *("--add-trait", "x:custom_a", "--drop-trait", "x:CUSTOM_B", "--release", CONSUMER),
        *("capacity", "VCPU=1", "--require", "CUSTOM_GOLD"),
    )
    assert outcome.status == 0, outcome.err
    claim = {
        "query": f"resources=VCPU:4&required=CUSTOM_GOLD&in_tree={HOST['uuid']}",
        "order": "first",
    }
    assert stub.questions[0].json == {
        "changes": [
            {"inventory": {"provider": "compute-1", "resource_class": "VCPU", "total": 64}},
            {"drain": "compute-1"},
            {"claim": claim},
            {"claim": claim},
            {"remove": "a:b"},
            {"inventory": {"provider": "a:b", "resource_class": "VCPU", "allocation_ratio": 1.5}},
            {"add": {"like": "compute-1", "count": 10}},
            {"traits": {"provider": "x", "add": ["CUSTOM_A"]}},
            {"traits": {"provider": "x", "remove": ["CUSTOM_B"]}},
            {"release": CONSUMER},
        ],
        "ask": [{"capacity": "resources=VCPU:1&required=CUSTOM_GOLD"}],
    }


def test_both_sides_stand_beside_their_difference(serving: Serving) -> None:
    serving({WHATIF: whatif(capacity(9000), capacity(7996))})
    outcome = roost("whatif", "--drain", "compute-1", "capacity", "VCPU=1")
    assert outcome.lines == [
        "compute-1 is drained.",
        "",
        "QUESTION  BEFORE  AFTER  DIFFERENCE",
        "capacity  9,000   7,996  -1,004",
        "After: PCPU runs out first.",
    ]


def test_changes_with_one_outcome_have_one_line(serving: Serving) -> None:
    answer = whatif(capacity(1000), capacity(990))
    serving({WHATIF: answer | {"changes": answer["changes"] * 3}})
    outcome = roost("whatif", "--claim", "3*VCPU=1", "capacity", "VCPU=1")
    assert outcome.lines[:2] == ["compute-1 is drained. (3 times)", ""]


def test_an_explanation_after_the_changes_is_drawn(serving: Serving) -> None:
    serving({WHATIF: whatif(explanation(feasible=True), explanation())})
    outcome = roost("whatif", "--drain", "compute-1", "explain", "VCPU=1")
    assert "explain   candidates  no candidates  -" in outcome.lines
    assert "There are no candidates. No provider has 64 PCPU free." in outcome.lines


def test_candidates_are_counted(serving: Serving) -> None:
    sides = [
        {
            "allocation_requests": [{"allocations": {}}] * count,
            "provider_summaries": {},
            "truncated": False,
        }
        for count in (3, 5)
    ]
    serving({WHATIF: whatif(*sides)})
    outcome = roost("whatif", "--add-host", "compute-1", "candidates", "VCPU=1", "-o", "csv")
    assert outcome.lines[1] == "candidates,3,5,+2"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ([], "no change to imagine"),
        (["--set", "compute-1"], "--set compute-1:VCPU=64"),
        (["--set", "compute-1:VCPU.size=3"], "Fields: total, reserved"),
        (["--set", "compute-1:VCPU=1.5"], "whole number"),
        (["--add-trait", "CUSTOM_A"], "--add-trait compute-1:CUSTOM_GOLD"),
        (["--release", "instance-1"], "roost consumer list"),
        (["--drain", "a", "--claim", "100*VCPU=1"], "101 changes"),
        (["--claim", "VCPU"], "'VCPU' asks for nothing"),
        (["--claim", ""], "no resources"),
        (["--claim", "0*VCPU=1"], "'0*VCPU=1' asks for nothing"),
    ],
)
def test_an_error_about_a_change_names_the_fix(
    serving: Serving, options: list[str], part: str
) -> None:
    stub = serving({WHATIF: whatif(capacity(), capacity())})
    outcome = roost("whatif", *options, "capacity", "VCPU=1")
    assert (outcome.status, stub.questions) == (2, [])
    assert part in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost whatif --help"
    assert outcome.err.count("Next:") == 1


# Fragmentation and resilience.


def test_usable_amounts_stand_beside_the_free_ones(serving: Serving) -> None:
    amounts = {"VCPU": {"free": 1000, "usable": [640, 0]}, "PCPU": {"free": 0, "usable": [0, 0]}}
    stub = serving({FRAGMENTATION: {"resource_classes": amounts, "empty_roots": 12}})
    words = ["fragmentation", "VCPU=2", "--ask", "VCPU=16 --require CUSTOM_GOLD"]
    outcome = roost(*words)
    assert outcome.status == 0, outcome.err
    assert stub.questions[0].path.partition("?")[2] == (
        "ask=resources%3DVCPU:2&ask=resources%3DVCPU:16%26required%3DCUSTOM_GOLD"
    )
    assert "12 roots are empty." in outcome.lines
    (row,) = [line for line in outcome.lines if line.startswith("VCPU")]
    assert row.split() == ["VCPU", "1,000", "640", "64", "█" * 13 + "░" * 7, "0", "0", "░" * 20]
    assert roost(*words, "-o", "csv").lines == [
        "resource_class,free,usable_1,usable_2",
        "PCPU,0,0,0",
        "VCPU,1000,640,0",
    ]


def test_a_narrow_terminal_shows_numbers_without_bars() -> None:
    amounts = {"VCPU": {"free": 10**12, "usable": [10**12, 10**11]}}
    picture = FragmentationPicture({"resource_classes": amounts}, ["resources=VCPU:1"] * 2)
    console = Console(width=80, force_terminal=True, no_color=True, highlight=False)
    with console.capture() as captured:
        console.print(picture)
    (row,) = [line for line in captured.get().splitlines() if line.startswith("VCPU")]
    assert row.split() == [
        "VCPU",
        "1,000,000,000,000",
        "1,000,000,000,000",
        "100",
        "100,000,000,000",
        "10",
    ]
    assert "narrow" not in captured.get()


def test_fragmentation_needs_no_request(serving: Serving) -> None:
    serving(
        {FRAGMENTATION: {"resource_classes": {"VCPU": {"free": 5, "usable": []}}, "empty_roots": 0}}
    )
    outcome = roost("fragmentation")
    assert outcome.status == 0, outcome.err
    assert outcome.lines[-1].split() == ["VCPU", "5"]


def test_roots_that_may_not_be_lost_are_listed(serving: Serving) -> None:
    lost = {"root": HOST, "fits": False, "text": "4 consumers would not fit."}
    serving({RESILIENCE: {"survives": 998, "roots": [lost], "exact": True}})
    outcome = roost("resilience")
    assert outcome.status == 3
    assert outcome.lines[0] == "1 root may not be lost; 998 may."
    assert outcome.lines[-1].startswith("compute-1  4 consumers would not fit.")


def test_a_cloud_that_survives_every_loss_says_so(serving: Serving) -> None:
    stub = serving({RESILIENCE: {"survives": 998, "roots": [], "exact": True}})
    outcome = roost("resilience")
    assert (outcome.status, outcome.lines) == (0, ["Each of the 998 roots may be lost."])
    assert stub.queries == [{"lose": "1", "page_limit": "10000"}]
