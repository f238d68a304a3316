"""`--watch` prints a result again after each interval, until the operator ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from roost.cli.shared import connection
from roost.client.transport.retrying import RetryPolicy
from support.pty_command import PtyCommand
from support.roost_command import Outcome, roost
from support.stubs.four_provider_stub import FourProviderStub
from support.stubs.placement_stub import HangUp, Reply, Step


@pytest.fixture
def watched(small_server: FourProviderStub, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of a command; the operator presses Ctrl-C in the second one."""
    del small_server
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("roost.cli.shared.watching.sleep", pause)
    return pauses


def _watch(*arguments: str) -> Outcome:
    outcome = roost("tree", "show", "--limit", "1", *arguments)
    assert outcome.status == 130
    return outcome


def test_json_has_one_line_for_each_result(watched: list[float]) -> None:
    lines = _watch("--json", "--watch", "5").lines
    assert [json.loads(line)[0]["name"] for line in lines] == ["a", "a"]
    assert watched == [5.0, 5.0]


def test_yaml_has_one_document_for_each_result(watched: list[float]) -> None:
    documents = list(yaml.safe_load_all(_watch("--output", "yaml", "--watch").out))
    assert [document[0]["name"] for document in documents] == ["a", "a"]
    assert watched == [2.0, 2.0]


def test_csv_has_its_titles_once(watched: list[float]) -> None:
    lines = _watch("--output", "csv", "--watch=1").lines
    assert [line.split(",")[0] for line in lines] == ["tree", "a", "a"]
    assert watched == [1.0, 1.0]


# A server that asks for a long wait is not asked again at once.
BUSY = Reply(503, body={"errors": [{"detail": "busy"}]}, headers={"Retry-After": "3600"})


@pytest.mark.parametrize("step", [BUSY, HangUp()], ids=["busy", "gone"])
def test_a_server_that_is_lost_for_a_while_is_told_and_asked_again(
    small_server: FourProviderStub, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    monkeypatch.setattr(connection, "CommandRetryPolicy", lambda _: RetryPolicy(repeats=0))
    asked, pauses = len(small_server.asked), 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses in (1, 2):
            small_server.script.append(step)
        elif pauses == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("roost.cli.shared.watching.sleep", pause)
    outcome = _watch("--json", "--watch", "5")
    assert len(outcome.lines) == 2
    assert len(small_server.asked) > asked
    first, second, last = outcome.err.splitlines()
    assert first.startswith("roost: warning: ")
    assert first.endswith("The command goes on.")
    assert (second, last) == ("roost: The server answers again.", "roost: Interrupted.")


def test_a_refusal_while_watching_ends_the_command(
    small_server: FourProviderStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Reply(401, body={"errors": [{"detail": "no"}]})
    monkeypatch.setattr(
        "roost.cli.shared.watching.sleep", lambda _: small_server.script.append(refusal)
    )
    outcome = roost("tree", "show", "--limit", "1", "--json", "--watch")
    assert (outcome.status, len(outcome.lines)) == (1, 1)
    assert "(HTTP 401)" in outcome.err


def test_a_terminal_keeps_its_picture_while_the_server_is_lost(
    small_server: FourProviderStub,
) -> None:
    with watching_terminal(small_server) as terminal:
        terminal.read_until(lambda shown: small_server.uuid("a").encode() in shown)
        small_server.script.append(BUSY)
        terminal.read_until(lambda shown: b"The command goes on." in shown)
        lost = len(small_server.asked)
        terminal.read_until(lambda _: len(small_server.asked) > lost + 8)
        terminal.press("q")
        assert terminal.ended() == 0


def test_a_terminal_shows_one_picture_until_q_is_pressed(small_server: FourProviderStub) -> None:
    with watching_terminal(small_server) as terminal:
        # Every picture asks for the tree again.
        shown = terminal.read_until(lambda _: len(small_server.asked) >= 12)
        terminal.press("q")
        assert terminal.ended() == 0
    assert small_server.uuid("a").encode() in shown


@contextmanager
def watching_terminal(server: FourProviderStub) -> Iterator[PtyCommand]:
    """`roost tree show --watch` of this server, before a terminal."""
    words = ("tree", "show", "--limit", "1", "--watch", "0.1")
    with PtyCommand(*words, ROOST_URL=server.url) as terminal:
        yield terminal
