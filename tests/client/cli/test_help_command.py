"""`roost help`: the words of docs/concepts.md, and the help of commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from roost.cli.help import find_section
from roost.cli.main import cli
from support.roost_command import roost

PAGE = Path(__file__).parents[3] / "docs" / "concepts.md"
# The page has at least these.
WORDS = [
    *("provider", "tree", "root", "resource class", "inventory", "capacity", "usage", "trait"),
    *("total", "reserved", "allocation ratio", "min unit", "max unit", "step size"),
    *("aggregate", "sharing provider", "consumer", "consumer type", "project", "user"),
    *("allocation", "claim", "orphan", "candidate", "request group", "generation"),
    *("microversion", "owner", "declaration", "change", "cursor"),
]


@pytest.mark.parametrize("word", WORDS)
def test_each_word_has_its_section(word: str) -> None:
    shown = roost("help", *word.split())
    assert shown.status == 0, shown.err
    assert shown.lines[0].lower() == word
    assert len(shown.lines) > 3
    assert max(map(len, shown.lines)) <= 80
    assert re.search(rf"^#+ {word}$", PAGE.read_text(), re.MULTILINE | re.IGNORECASE)


def test_the_list_has_every_word_of_the_page_with_its_first_sentence() -> None:
    listed = roost("help").out
    titles = re.findall(r"^###+ (.+)$", PAGE.read_text(), re.MULTILINE)
    assert len(titles) >= len(WORDS)
    for title in titles:
        assert re.search(rf"^ +{title.lower()} +[A-Z]", listed, re.MULTILINE), title
    assert "  provider            A provider is a thing that has something to give.\n" in listed


@pytest.mark.parametrize(
    "words",
    [
        ("Sharing", "Providers"),
        ("sharing-provider",),
        ("SHARING_PROVIDER",),
        ("sharing providers",),
    ],
)
def test_a_word_may_be_written_in_several_ways(words: tuple[str, ...]) -> None:
    assert roost("help", *words).out == roost("help", "sharing", "provider").out


@pytest.mark.parametrize(
    ("plural", "singular"),
    [("inventories", "inventory"), ("classes", None), ("traits", "trait"), ("s", None)],
)
def test_a_plural_finds_its_word(plural: str, singular: str | None) -> None:
    found = find_section([plural])
    assert (found.word if found else None) == singular


def test_a_section_is_plain_text_with_its_drawing() -> None:
    shown = roost("help", "aggregate").out
    assert "[" not in shown.replace("[rack", "")
    assert "`" not in shown
    assert "|  | host-1 |   | host-2 |  |" in shown


def test_the_fields_of_an_inventory_stand_below_it_and_alone() -> None:
    whole = roost("help", "inventory").out
    alone = roost("help", "step", "size").out
    assert "\nStep size\n---------\n" in whole
    assert alone.partition("\n\n")[2].strip() in whole
    assert "Reserved" not in alone


def test_a_word_that_is_also_a_command_names_the_command() -> None:
    shown = roost("help", "provider")
    assert shown.lines[0] == "Provider"
    assert shown.lines[-1] == "The command of this name: roost provider --help"
    assert roost("help", "Providers").out == shown.out
    for words in (("root",), ("consumer", "type")):
        assert "The command" not in roost("help", *words).out


@pytest.mark.parametrize("words", [("provider", "list"), ("serve",), ("man",)])
def test_a_command_has_its_help(words: tuple[str, ...]) -> None:
    assert roost("help", *words).out == roost(*words, "--help").out


@pytest.mark.parametrize(
    ("words", "near", "following"),
    [
        (("agregate",), "Near it: aggregate", "roost help"),
        (("srve",), "Near it: serve", "roost help"),
        (("zzzzzz",), "has the name zzzzzz.", "roost help"),
        (("provider", "lst"), "has no command lst. Near it: list", "roost provider --help"),
    ],
)
def test_an_unknown_word_is_answered_with_near_ones(
    words: tuple[str, ...], near: str, following: str
) -> None:
    outcome = roost("help", *words)
    assert outcome.status == 1
    assert near in outcome.err
    assert outcome.err.endswith(f"Next: {following}\n")


def test_a_shell_completes_words_and_commands() -> None:
    completer = ShellComplete(cli, {}, "roost", "_ROOST_COMPLETE")
    found = {item.value for item in completer.get_completions(["help"], "con")}
    assert found >= {"consumer", "consumer-type"}
    assert "check-config" in {item.value for item in completer.get_completions(["help"], "check")}
