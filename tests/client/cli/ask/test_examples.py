"""The examples in the help and on the page docs/ask.md are commands that work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.roost_command import roost
from support.stubs.question_stub import Serving

PAGE = Path(__file__).parents[4] / "docs" / "ask.md"
COMMANDS = ("candidates", "explain", "why", "capacity", "whatif", "fragmentation", "resilience")


def page_examples() -> list[str]:
    text = PAGE.read_text()
    blocks = re.findall(r"^    (roost .+)$", text, re.MULTILINE)
    cells = re.findall(r"^\| `(roost [^`]+)` \|", text, re.MULTILINE)
    return [*blocks, *cells]


def help_examples(command: str) -> list[str]:
    text = roost(command, "--help").out.replace("\\\n", "")
    return re.findall(r"^    (roost .+)$", text, re.MULTILINE)


def assert_accepted(example: str) -> None:
    words = shlex.split(example)[1:]
    only_parse = ["--help"] if words[0] == "resilience" else ["--query"]
    outcome = roost(*words, *only_parse)
    assert outcome.status == 0, f"{example}: {outcome.err}"
    assert "resources" in outcome.out or only_parse == ["--help"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_the_help_are_accepted(serving: Serving, command: str) -> None:
    serving({})
    examples = help_examples(command)
    assert len(examples) >= 2
    for example in examples:
        assert_accepted(example)


def test_the_examples_of_the_page_are_accepted(serving: Serving) -> None:
    serving({})
    examples = page_examples()
    assert {shlex.split(example)[1] for example in examples} == set(COMMANDS)
    for example in examples:
        assert_accepted(example)


def test_the_page_has_every_option_of_a_request() -> None:
    page = PAGE.read_text()
    for command in ("candidates", "whatif"):
        options = re.findall(
            r"^  (?:-\w, )?(--[a-z-]+)", roost(command, "--help").out, re.MULTILINE
        )
        asking = options[: options.index("--output")]
        assert [option for option in asking if option not in page] == []
