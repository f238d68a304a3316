"""What a service manager hears, through a socket like its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.agent.notifying import Notifier

Listen = Callable[[str], socket.socket]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Makes sockets that hear what is sent to an address, and never wait."""
    with ExitStack() as stack:

        def make(address: str) -> socket.socket:
            manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            manager.bind(address)
            manager.setblocking(False)
            return manager

        yield make


def heard(manager: socket.socket) -> list[str]:
    messages = []
    try:
        while True:
            messages.append(manager.recv(65536).decode())
    except BlockingIOError:
        return messages


def test_the_manager_hears_how_the_service_is_doing(tmp_path: Path, listen: Listen) -> None:
    manager = listen(f"{tmp_path}/n")
    notifier = Notifier({"NOTIFY_SOCKET": f"{tmp_path}/n"})
    notifier.ready()
    notifier.status("reported, 2 changes")
    notifier.alive()
    notifier.stopping()
    assert heard(manager) == ["READY=1", "STATUS=reported, 2 changes", "WATCHDOG=1", "STOPPING=1"]


def test_an_address_with_an_at_sign_is_an_abstract_one(listen: Listen) -> None:
    name = f"roost-test-{uuid4()}"
    manager = listen(f"\0{name}")
    Notifier({"NOTIFY_SOCKET": f"@{name}"}).ready()
    assert heard(manager) == ["READY=1"]


def test_a_status_is_one_line_whatever_is_in_it(tmp_path: Path, listen: Listen) -> None:
    manager = listen(f"{tmp_path}/n")
    notifier = Notifier({"NOTIFY_SOCKET": f"{tmp_path}/n"})
    notifier.status("tree.yaml:1:1: no\ntree.yaml:2:1: neither")
    notifier.status("cannot open Gehäuse-\udcff")
    assert heard(manager) == ["STATUS=tree.yaml:1:1: no", "STATUS=cannot open Gehäuse-\\udcff"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}], ids=["none", "empty"])
def test_without_a_manager_nothing_is_said(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("nobody asked for a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    Notifier(environ).ready()


def test_a_manager_that_is_gone_does_not_hurt(tmp_path: Path, listen: Listen) -> None:
    listen(f"{tmp_path}/n").close()
    for address in (f"{tmp_path}/n", f"{tmp_path}/never", "@never", "/" + "x" * 200, "nonsense"):
        Notifier({"NOTIFY_SOCKET": address}).ready()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getppid())}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_how_often_the_manager_wants_to_hear(
    environ: dict[str, str], seconds: float | None
) -> None:
    assert Notifier(environ).watchdog_seconds == seconds
