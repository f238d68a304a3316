"""No command prints a control character or a forged line out of what a server or a file sends."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from support.client.server_commands import CALLS, arguments_of, write_files
from support.roost_command import Outcome, all_commands, roost
from support.stubs.placement_stub import PlacementStub, Reply
from support.stubs.word_stub import ROOT, WordStub

FORGED = "roost: all is well"
# A line feed, a window title, an 8-bit colour, text from right to left, separators of lines.
EVIL = (
    f"\nNext: rm -rf\r\n{FORGED}\x1b]0;owned\x07\x9b31m\u202egnp\u2066\u2028x\u2029\x85\x0b\x0c{{}}"
)


def assert_harmless(outcome: Outcome) -> None:
    for text in (outcome.out, outcome.err):
        odd = {character for character in text if not character.isprintable()} - {"\n"}
        assert not odd, (odd, text)
        for line in text.split("\n"):
            assert not line.startswith((FORGED, "Next: rm")), text


@pytest.fixture(params=[False, True], ids=["writes", "refuses"])
def evil(request: pytest.FixtureRequest) -> WordStub:
    return WordStub(EVIL, refuses=request.param)


def forms_of(name: str) -> list[tuple[str, ...]]:
    """The options for each form of output that a command has."""
    options = [one for one in all_commands()[name].params if isinstance(one, click.Option)]
    forms: list[tuple[str, ...]] = [()]
    for option in options:
        if "--json" in option.opts:
            forms.append(("--json",))
        if isinstance(option.type, click.Choice) and "csv" in option.type.choices:
            forms += [("--output", "yaml"), ("--output", "csv")]
    return forms


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=str)
def test_names_and_texts_of_a_server_are_harmless(
    evil: WordStub, name: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with evil as stub:
        for number, form in enumerate(forms_of(name)):
            (tmp_path / str(number)).mkdir()
            monkeypatch.chdir(tmp_path / str(number))
            monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / str(number) / "state"))
            write_files(stub)
            asked = len(stub.received)
            outcome = roost(*arguments_of(name, arguments, stub), *form)
            assert len(stub.received) > asked, outcome
            assert_harmless(outcome)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 503])
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=str)
def test_a_refusal_is_harmless(name: str, arguments: str, status: int) -> None:
    with WordStub(EVIL) as stub:
        write_files(stub)
        answer = stub.error(status)
        # The client does not repeat what it must wait for.
        stub.script.extend([Reply(status, answer.body, {"Retry-After": "3600"})] * 100)
        outcome = roost(*arguments_of(name, arguments, stub))
    assert stub.received
    assert_harmless(outcome)


@pytest.mark.parametrize(
    "words",
    [
        ["provider", "show", EVIL],
        ["provider", "list", "--name", EVIL],
        ["provider", f"--{EVIL}"],
        ["provider", "set", ROOT, "--inventory", EVIL],
        ["provider", "set", ROOT, "--rename", EVIL, "--dry-run"],
        ["provider", "set", ROOT, "--remove-trait", EVIL],
        ["consumer", "show", EVIL],
        ["trait", "delete", EVIL],
        ["class", "show", EVIL],
        ["candidates", f"VCPU=4{EVIL}"],
        ["candidates", "VCPU=4", "--require", EVIL],
        ["candidates", "--from-query", f"resources={EVIL}"],
        ["why", EVIL, "VCPU=4"],
        ["whatif", "--drain", EVIL, "explain", "VCPU=4"],
        ["owner", "show", EVIL],
        ["driver", "show", EVIL],
        ["tree", "diff", "-f", EVIL],
        ["agent", "--driver", EVIL, "--once"],
        ["doctor", "--url", f"http://{EVIL}"],
        ["doctor", "--cacert", EVIL],
        [EVIL],
    ],
    ids=lambda words: " ".join(words).replace(EVIL, "EVIL"),
)
def test_words_of_the_command_line_are_harmless(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with WordStub() as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        assert_harmless(roost(*words))


def test_a_redirect_to_a_hostile_address_is_harmless() -> None:
    location = "http://x\x1b]0;owned\x07\x9b\u00ad"
    with PlacementStub(otherwise=lambda _: Reply(302, None, {"Location": location})) as stub:
        outcome = roost("provider", "list", "--url", stub.url)
    assert outcome.status == 1
    assert_harmless(outcome)
