"""Completion in the shell: commands, options, and the names on the server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from roost.cli.shared import completers
from roost.client.placement import Placement
from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.four_provider_stub import FourProviderStub
from support.stubs.placement_stub import closed_port_url
from support.transports.tampering import one_server
from support.waiting import SECONDS_MAX

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Completes a line as the script for bash does, and has time on a busy machine."""
    monkeypatch.setattr(completers, "SECONDS_IN_ALL", 120.0)

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_ROOST_COMPLETE", "bash_complete")
        monkeypatch.setenv("ROOST_COMP_LINE", line)
        monkeypatch.setenv("ROOST_COMP_WORDBREAKS", " \t\n\"'><=;|&(:")
        outcome = roost()
        assert (outcome.status, outcome.err) == (0, "")
        return [answer.partition(",")[2] for answer in outcome.lines if answer]

    return ask


def test_commands_and_options_are_completed_without_a_server(complete: Complete) -> None:
    assert complete("roost prov") == ["provider"]
    assert complete("roost provider s") == ["set", "show"]
    assert "--member-of" in complete("roost provider list --m")
    assert complete("roost doctor -o y") == ["yaml"]


def test_names_of_the_server_are_completed(
    live_providers: LiveProviders, complete: Complete
) -> None:
    trait, resource_class = live_providers.custom("GOLD"), live_providers.custom("FPGA")
    roost("trait", "create", trait)
    roost("class", "create", resource_class)
    uuid = live_providers.add("host")
    name = live_providers.name("host")
    assert complete(f"roost provider show {name[:-2]}") == [name]
    assert complete(f"roost provider show {uuid[:-2]}") == [uuid]
    assert complete(f"roost provider list --in-tree {name[:-2]}") == [name]
    assert complete(f"roost trait show {trait[:-2]}") == [trait]
    assert complete(f"roost provider set x --add-trait {trait[:-2]}") == [trait]
    assert complete(f"roost class show {resource_class[:-2]}") == [resource_class]


@one_server
def test_roost_is_asked_for_names_by_their_beginning(
    live_providers: LiveProviders, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = live_providers.name("host")
    parent = live_providers.add("host")
    below = [f"{host}_numa0", f"{host}_numa0_0000.17.1"]
    for name in below:
        body = {"name": name, "uuid": live_providers.uuid(name), "parent_provider_uuid": parent}
        live_providers.send("POST", "/resource_providers", body)
    # A list of all providers may have a million.
    monkeypatch.delattr(Placement, "providers")
    assert complete(f"roost provider show {host[:-2]}") == [host]
    assert complete(f"roost provider show {host}_n") == below
    assert complete(f"roost provider show {below[0]}_0000.1") == below[1:]
    assert complete(f"roost provider show {host}x") == []


def test_owners_are_completed_from_the_records(complete: Complete, state: Path) -> None:
    for owner in ("agent", "rack-1", "rack-2"):
        (state / owner).mkdir(parents=True)
        (state / f"{owner}.lock").touch()
    assert complete("roost owner show ra") == ["rack-1", "rack-2"]
    assert complete("roost tree apply --owner ag") == ["agent"]
    assert complete(f"roost owner show --records {state / 'nowhere'} ra") == []


@one_server
def test_bash_gets_what_follows_its_last_word_break(
    live_providers: LiveProviders, complete: Complete
) -> None:
    name = live_providers.name("host 0000:17:00")
    live_providers.add("host 0000:17:00")
    quoted = name.replace(" ", "\\ ")
    assert complete("roost provider show 'host 0000:17:") == [name.rpartition(":")[2]]
    assert complete("roost provider show 'host 0") == [quoted]


def test_a_server_that_is_down_completes_nothing(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        assert complete("roost provider show comp") == []


def test_a_shell_waits_one_second_in_all() -> None:
    assert completers.SECONDS_IN_ALL == 1.0


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"])
def test_a_server_that_never_ends_its_answer_completes_nothing(
    complete: Complete, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(completers, "SECONDS_IN_ALL", 0.2)
    with SlowServer(beginning) as slow:
        monkeypatch.setenv("ROOST_URL", slow.url)
        assert complete("roost provider show comp") == []
        # The server still sends, so the shell did not wait for it.
        assert slow.sends()


class SlowServer:
    """Begins an answer, and then sends one byte after another without end."""

    def __init__(self, beginning: bytes) -> None:
        self._beginning = beginning
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> SlowServer:
        self._thread.start()
        # A shell that waits for the server has the deadline of the test.
        self._deadline = threading.Timer(SECONDS_MAX, self._over.set)
        self._deadline.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._deadline.cancel()
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def sends(self) -> bool:
        return not self._over.is_set()

    def _serve(self) -> None:
        with suppress(OSError), self._listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(self._beginning)
            while not self._over.wait(0.01):
                connection.sendall(b"H")


def test_the_options_of_the_line_name_the_server(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FourProviderStub() as small, closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        assert complete(f"roost provider show --url {small.url} ") == ["d", "c", "a", "b"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    outcome = roost("completion", shell)
    assert outcome.status == 0
    assert f"_ROOST_COMPLETE={shell}_complete" in outcome.out
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run(
            [program, "-n"], input=outcome.out, text=True, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes_with_the_script() -> None:
    script = f"""
    roost() {{ {sys.executable} -c 'from roost.cli.main import main; main()' "$@"; }}
    {roost("completion", "bash").out.replace("env ROOST", "ROOST")}
    COMP_LINE="roost provider s"; COMP_POINT=${{#COMP_LINE}}
    _roost_completion roost
    echo "${{COMPREPLY[@]}}"
    """
    outcome = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=False)
    assert outcome.stdout.split() == ["set", "show"]
