"""The exit status has one meaning for all commands: help and page tell it, and commands keep it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from roost.cli.shared.exit_status import ExitStatus
from support.roost_command import all_commands, roost
from support.stubs.placement_stub import closed_port_url
from support.stubs.question_stub import HOST, QuestionStub, capacity, explanation

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
SERVICES = ("serve", "agent")

NOTHING = capacity() | {"fits": 0}
FULL: dict[str, Any] = {
    "/allocation_candidates": {"allocation_requests": [], "provider_summaries": {}},
    "/roost/explain": explanation(),
    "/roost/capacity": NOTHING,
    "/roost/resilience": {"survives": 0, "roots": [{"root": HOST, "fits": False, "text": "x"}]},
    "/roost/whatif": {"changes": [], "answers": [{"before": capacity(), "after": NOTHING}]},
}
ROOMY: dict[str, Any] = {
    "/allocation_candidates": {
        "allocation_requests": [
            {"allocations": {HOST["uuid"]: {"resources": {"VCPU": 1}}}, "mappings": {}}
        ],
        "provider_summaries": {},
    },
    "/roost/explain": explanation(feasible=True),
    "/roost/capacity": capacity(),
    "/roost/resilience": {"survives": 1, "roots": []},
    "/roost/whatif": {"changes": [], "answers": [{"before": NOTHING, "after": capacity()}]},
}
QUESTIONS = [
    "candidates VCPU=1",
    "explain VCPU=1",
    "why compute-1 VCPU=1",
    "capacity VCPU=1",
    "resilience",
    "whatif --remove compute-1 capacity VCPU=1",
]


@pytest.mark.parametrize("command", QUESTIONS)
@pytest.mark.parametrize(("answers", "status"), [(ROOMY, 0), (FULL, 3)], ids=["yes", "no"])
def test_a_question_ends_with_0_for_yes_and_3_for_no(
    command: str, answers: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with QuestionStub(answers) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost(*shlex.split(command))
        as_json = roost(*shlex.split(command), "--json")
    assert (outcome.status, as_json.status) == (status, status), outcome.err


@pytest.mark.parametrize(
    ("command", "status"),
    [
        *((question, 1) for question in QUESTIONS),
        ("provider list", 1),
        ("audit", 1),
        ("changes", 1),
        ("changes --follow", 1),
        ("changes --follow --limit 3", 2),
        ("changes --follow --sort at", 2),
        ("changes --kind usages", 2),
        ("tree diff -f missing.yaml", 1),
        ("db check --db sqlite:///missing.sqlite", 1),
        ("doctor", 3),
        ("check-config --config-file missing.conf", 3),
        ("candidates VCPU", 2),
        ("candidates VCPU=1 --from-query resources=VCPU:1", 2),
        ("capacity VCPU=1 --watch x", 2),
        ("tree diff", 2),
        ("tree apply", 2),
        ("consumer show vm-1", 2),
        ("provider list --resources VCPU", 2),
        ("provider set compute-1", 2),
        ("provider set compute-1 --aggregate rack", 2),
        ("provider adopt compute-1 --uuid host", 2),
        ("provider lis", 2),
        ("no-such-command", 2),
        ("agent", 78),
        ("agent --driver linux --once --records", 78),
    ],
)
def test_a_command_without_a_server_ends_with_the_status_of_the_scheme(
    command: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost(*shlex.split(command))
    assert outcome.status == status, outcome.err


@pytest.mark.parametrize("name", all_commands())
def test_an_unknown_option_is_wrong_usage_of_every_command(name: str) -> None:
    outcome = roost(*name.split(), "--no-such-option")
    assert (outcome.status, outcome.out) == (78 if name in SERVICES else 2, "")


def test_the_help_and_the_page_list_every_status() -> None:
    _, _, listed = roost("--help").out.partition("Exit status of every command:\n")
    scheme = [(str(status.value), status.meaning) for status in ExitStatus]
    assert re.findall(r"^ +(\d+) +(.+)$", listed, re.MULTILINE) == scheme
    _, _, table = PAGE.read_text().partition("| exit status | |\n|---|---|\n")
    assert re.findall(r"\| (\d+) \| (.+) \|", table.partition("\n\n")[0]) == scheme


@pytest.mark.parametrize(("name", "command"), all_commands().items(), ids=lambda value: "")
def test_the_help_of_a_command_names_no_other_status(name: str, command: click.Command) -> None:
    text = f"{command.help or ''}\n\n{command.epilog or ''}"
    for paragraph in re.findall(r"Exit status:?(.+?)(?:\n\n|\Z)", text, re.DOTALL):
        told = {int(number) for number in re.findall(r"\b\d+\b", paragraph)}
        assert told, name
        assert told <= {status.value for status in ExitStatus}, name
