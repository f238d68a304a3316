"""What systemd receives from a service, through a socket like its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.agent.request_log import WatchdogTransport
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.systemd import SystemdNotifier

Listen = Callable[[str], socket.socket]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Opens sockets that receive what is sent to an address, without waiting."""
    with ExitStack() as stack:

        def make(address: str) -> socket.socket:
            systemd = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            systemd.bind(address)
            systemd.setblocking(False)
            return systemd

        yield make


def received(systemd: socket.socket) -> list[str]:
    messages = []
    try:
        while True:
            messages.append(systemd.recv(65536).decode())
    except BlockingIOError:
        return messages


def test_systemd_receives_each_state(short_directory: Path, listen: Listen) -> None:
    systemd = listen(f"{short_directory}/n")
    notifier = SystemdNotifier({"NOTIFY_SOCKET": f"{short_directory}/n"})
    notifier.ready()
    notifier.status("reported, 2 changes")
    notifier.alive()
    notifier.stopping()
    assert received(systemd) == [
        "READY=1",
        "STATUS=reported, 2 changes",
        "WATCHDOG=1",
        "STOPPING=1",
    ]


def test_a_reload_is_told_with_the_time_of_its_begin(short_directory: Path, listen: Listen) -> None:
    systemd = listen(f"{short_directory}/n")
    SystemdNotifier({"NOTIFY_SOCKET": f"{short_directory}/n"}).reloading()
    (told,) = received(systemd)
    state, time = told.split("\n")
    assert state == "RELOADING=1"
    assert time.removeprefix("MONOTONIC_USEC=").isdigit()


def test_an_address_with_an_at_sign_is_an_abstract_socket(listen: Listen) -> None:
    name = f"roost-test-{uuid4()}"
    systemd = listen(f"\0{name}")
    SystemdNotifier({"NOTIFY_SOCKET": f"@{name}"}).ready()
    assert received(systemd) == ["READY=1"]


def test_a_status_is_one_printable_line(short_directory: Path, listen: Listen) -> None:
    systemd = listen(f"{short_directory}/n")
    notifier = SystemdNotifier({"NOTIFY_SOCKET": f"{short_directory}/n"})
    notifier.status("tree.yaml:1:1: no\ntree.yaml:2:1: neither")
    notifier.status("cannot open Gehäuse-\udcff")
    assert received(systemd) == ["STATUS=tree.yaml:1:1: no", "STATUS=cannot open Gehäuse-\\udcff"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}], ids=["none", "empty"])
def test_the_notifier_opens_no_socket_without_an_address(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the notifier opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    SystemdNotifier(environ).ready()


def test_an_address_without_listener_is_no_error(short_directory: Path, listen: Listen) -> None:
    listen(f"{short_directory}/n").close()
    for address in (
        f"{short_directory}/n",
        f"{short_directory}/never",
        "@never",
        "/" + "x" * 200,
        "nonsense",
    ):
        SystemdNotifier({"NOTIFY_SOCKET": address}).ready()


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
def test_the_watchdog_interval_comes_from_the_environment(
    environ: dict[str, str], seconds: float | None
) -> None:
    assert SystemdNotifier(environ).watchdog_seconds == seconds


def test_each_request_resets_the_watchdog_before_it_is_sent() -> None:
    events: list[str] = []

    class Inner:
        def send(self, request: PlacementRequest) -> PlacementResponse:
            events.append(request.path)
            return PlacementResponse(204)

        def close(self) -> None:
            events.append("closed")

    transport = WatchdogTransport(Inner(), lambda: events.append("alive"))
    assert transport.send(PlacementRequest("GET", "/traits")) == PlacementResponse(204)
    transport.close()
    assert events == ["alive", "/traits", "closed"]
