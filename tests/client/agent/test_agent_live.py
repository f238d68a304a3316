"""The agent as a service manager runs it: in a process, while the server comes up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ports import reserved_port
from support.live_server import LiveServer, clean_environment

SECONDS = 60


class Service:
    """`roost agent`, started as systemd starts a service of type `notify`."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(f"{directory}/notify")
        self._manager.settimeout(SECONDS)
        self._process = subprocess.Popen(
            [str(Path(sys.executable).with_name("roost")), "agent", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=clean_environment(
                {"NOTIFY_SOCKET": f"{directory}/notify", "STATE_DIRECTORY": f"{directory}/state"}
            ),
        )

    def close(self) -> None:
        self._manager.close()
        self._process.kill()
        self._process.communicate()

    def hears(self, wanted: str) -> str:
        """The next state that begins like this; others are passed over."""
        while True:
            state = self._manager.recv(65536).decode()
            if state.startswith(wanted):
                return state

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> tuple[int, list[str], list[str]]:
        """End it as systemd does: its exit status, and the lines that it printed."""
        os.kill(self._process.pid, signal.SIGTERM)
        out, err = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, out.splitlines(), err.splitlines()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    """A server that is not up yet."""
    server = LiveServer(f"sqlite:///{tmp_path}/roost.sqlite", tmp_path, workers=1)
    with ExitStack() as stack:
        server.port = stack.enter_context(reserved_port())
        stack.push(server)
        yield server


def test_the_agent_outlasts_a_server_that_is_down_and_reports_what_changes(
    tmp_path: Path, server: LiveServer
) -> None:
    tree = tmp_path / "tree.yaml"
    tree.write_text("providers: [{name: host-1, inventories: {VCPU: 8}}]")
    service = Service(
        tmp_path,
        *("--driver", "file", "--option", f"path={tree}", "--name", "host-1"),
        *("--interval", "1", "--url", server.url),
    )
    with ExitStack() as stack:
        stack.callback(service.close)
        service.hears("READY=1")
        assert "Connection refused" in service.hears("STATUS=report failed")
        assert service.running

        server.start()
        service.hears("STATUS=reported, 3 changes")
        service.hears("STATUS=reported, 0 changes")
        tree.write_text("providers: [{name: host-1, inventories: {VCPU: 9}}]")
        service.hears("STATUS=reported, 1 change")

        status, out, err = service.stop()
        service.hears("STOPPING=1")
    assert status == 0
    assert out == [
        "host-1: created",
        "host-1: inventory VCPU added (total 8)",
        "host-1: traits added: CUSTOM_OWNER_AGENT",
        "host-1: inventory VCPU total 8 -> 9",
    ]
    assert len([line for line in err if "Connection refused" in line]) == 1
    assert err[-1].startswith("roost: reporting again after ")
