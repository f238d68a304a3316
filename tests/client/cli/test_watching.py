"""`--watch` prints a result again after each interval, until the operator ends it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time

import pytest
import yaml

from support.roost_command import Outcome, roost
from support.stubs.four_provider_stub import FourProviderStub


@pytest.fixture
def watched(small_server: FourProviderStub, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of a command; the operator presses Ctrl-C in the second one."""
    del small_server
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("roost.cli.watching.sleep", pause)
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


def test_a_terminal_shows_one_picture_until_q_is_pressed(small_server: FourProviderStub) -> None:
    mine, its = pty.openpty()
    program = "from roost.cli.main import main; main()"
    environment = {**os.environ, "TERM": "xterm", "ROOST_URL": small_server.url}
    command = subprocess.Popen(
        [sys.executable, "-c", program, "tree", "show", "--limit", "1", "--watch", "0.1"],
        stdin=its,
        stdout=its,
        stderr=its,
        env=environment,
    )
    os.close(its)
    deadline = time.monotonic() + 30
    shown = b""
    # Every picture asks for the tree again.
    while len(small_server.asked) < 12 and time.monotonic() < deadline:
        shown += os.read(mine, 65536)
    os.write(mine, b"q")
    try:
        while os.read(mine, 65536):
            pass
    except OSError:
        pass  # The terminal has no more readers.
    assert command.wait(30) == 0
    os.close(mine)
    assert small_server.uuid("a").encode() in shown
