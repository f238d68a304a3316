"""Ctrl-C ends a command at once, however long its server is silent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.client.server_commands import (
    CALLS,
    arguments_of,
    commands_without_a_call,
    write_files,
)
from support.roost_command import Outcome, roost
from support.stubs.placement_stub import Received, Silence, Step
from support.stubs.word_stub import WordStub
from support.waiting import SECONDS_MAX, wait_until_process_blocked

LONG = ("--timeout", "3600")


class SilentStub(WordStub):
    """A server that answers all requests but those of one kind."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, None] = {}
        """The kinds of the requests so far, in their order."""
        self.silent_kind = ""
        self.was_asked = threading.Event()
        self.over = threading.Event()

    def answer(self, request: Received) -> Step:
        path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", request.path.partition("?")[0])
        kind = f"{request.method} {path}"
        self.kinds[kind] = None
        if kind != self.silent_kind:
            return super().answer(request)
        self.was_asked.set()
        return Silence(self.over)


def test_every_command_that_talks_to_a_server_is_tested_here() -> None:
    assert commands_without_a_call() == set()


@contextmanager
def operator(stub: SilentStub, *, twice: bool) -> Iterator[list[str]]:
    """Presses Ctrl-C once the server is silent; the list has a text if that was in vain.

    With `twice`, a command may wait for its writes after the first Ctrl-C.
    """
    problems: list[str] = []
    has_ended = threading.Event()

    def act() -> None:
        stub.was_asked.wait(SECONDS_MAX)
        if has_ended.is_set() or not stub.was_asked.is_set():
            problems.append("the server was not asked")
            return
        press()
        if not has_ended.wait(SECONDS_MAX):
            problems.append("the command went on")
        stub.over.set()

    def press() -> None:
        wait_until_process_blocked(os.getpid(), threading.main_thread().native_id)
        waits = twice and signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + SECONDS_MAX
        while waits and time.monotonic() < deadline:
            time.sleep(0.005)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                wait_until_process_blocked(os.getpid(), threading.main_thread().native_id)
                os.kill(os.getpid(), signal.SIGINT)
                return

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield problems
    finally:
        signal.signal(signal.SIGINT, before)
        has_ended.set()
        # A command that ends before it asks the server leaves nothing to wait for.
        stub.was_asked.set()
        thread.join()


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=str)
def test_ctrl_c_ends_a_command_while_the_server_is_silent(
    name: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SilentStub() as stub:
        write_files(stub)
        stub.kinds.clear()
        assert roost(*arguments_of(name, arguments, stub)).status != 130
    assert stub.kinds
    for number, kind in enumerate(stub.kinds):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / str(number) / "state"))
        outcome = interrupted(name, arguments, kind)
        assert outcome.status == 130, (kind, outcome)
        assert "roost: Interrupted" in outcome.err, kind


def interrupted(name: str, arguments: str, kind: str) -> Outcome:
    """The outcome of a command that the operator interrupts while such a request waits."""
    with SilentStub() as stub:
        write_files(stub)
        stub.silent_kind = kind
        # `tree apply` ends the trees under way, and says so.
        with operator(stub, twice=name == "tree apply") as problems:
            outcome = roost(*arguments_of(name, arguments, stub), *LONG)
        stub.over.set()
        assert problems == [], (kind, outcome)
        return outcome


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["tree", "show"], "GET /resource_providers/UUID/inventories"),
        (["tree", "show"], "GET /resource_providers/UUID/usages"),
        (["tree", "export"], "GET /resource_providers/UUID/traits"),
        (["usage"], "GET /resource_providers/UUID/usages"),
        (["doctor"], "GET /resource_providers/UUID/allocations"),
        (["candidates", "VCPU=4"], "GET /resource_providers"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_process_of_a_command_waits_for_no_thread(words: list[str], kind: str) -> None:
    with SilentStub() as stub:
        stub.silent_kind = kind
        # Threads walk where a server has no whole trees.
        stub.has_ledger = False
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", "from roost.cli.main import main; main()"),
                *(*words, "--url", stub.url, *LONG),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert stub.was_asked.wait(SECONDS_MAX)
            wait_until_process_blocked(process.pid)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
            is_silent = not stub.over.is_set()
            stub.over.set()
    assert is_silent
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "roost: Interrupted."
