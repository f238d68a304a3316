"""Each of the three ways of docs/ledger.md, executed from its first block to its last."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.code_blocks import all_code_blocks, code_blocks, conversation
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.waiting import SECONDS_MAX, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "ledger.md"
_EXPECTED = re.compile(r"# -> (.*)")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """An empty ledger, as the page begins with."""
    with LiveServer(f"sqlite:///{tmp_path}/ledger.db", tmp_path, workers=1) as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        yield server


def texts(language: str) -> list[str]:
    return [block.text for block in code_blocks(PAGE, language)]


def test_the_way_of_curl(ledger: LiveServer) -> None:
    script = "".join(texts("bash"))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "ROOST_URL": ledger.url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"errors"' not in done.stdout
    expected = _EXPECTED.findall(script)
    assert len(expected) > 7
    assert [text for text in expected if text not in done.stdout] == []


def test_the_way_of_the_command(ledger: LiveServer, tmp_path: Path) -> None:
    commands = [each for block in code_blocks(PAGE, "console") for each in conversation(block)]
    assert len(commands) > 9
    told = tmp_path / "told.txt"
    with following(ledger, told):
        for command, printed in commands:
            assert roost(*shlex.split(command)[1:]).shown == printed, command
        wait_until(lambda: re.search(r"usage +box-2", told.read_text()) is not None)
    titles = texts("text")[-1].splitlines()[0]
    assert told.read_text().splitlines()[0].split() == titles.split()


@contextmanager
def following(ledger: LiveServer, told: Path) -> Iterator[None]:
    """The third terminal of the page, which follows while the reader goes on."""
    words = shlex.split(texts("sh")[1])
    with told.open("w") as file:
        program = [sys.executable, "-c", "from roost.cli.main import main; main()"]
        process = subprocess.Popen([*program, *words[1:]], stdout=file)
    try:
        wait_until(lambda: b"\nroost_followers 1" in ledger.client().get("/metrics").body)
        yield
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS_MAX) == 130
    finally:
        process.kill()
        process.wait()


def test_the_way_of_python(ledger: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    program = "".join(texts("python"))
    exec(program, {})
    expected = _EXPECTED.findall(program)
    assert len(expected) > 6
    assert capsys.readouterr().out.splitlines() == expected


def test_the_page_has_no_further_blocks() -> None:
    blocks = list(all_code_blocks(PAGE.read_text()))
    assert {block.language for block in blocks} == {"bash", "console", "python", "sh", "text"}
    assert [block.text.split()[:2] for block in blocks if block.language == "sh"] == [
        ["roost", "serve"],
        ["roost", "changes"],
    ]
