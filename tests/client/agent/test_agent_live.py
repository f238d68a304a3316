"""The agent as systemd runs it: in a process, before the server has started."""

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
from support.servers.live_server import LiveServer, clean_environment
from support.waiting import SECONDS_MAX


class Service:
    """`roost agent`, started as systemd starts a service of type `notify`."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._systemd.bind(f"{directory}/notify")
        self._systemd.settimeout(SECONDS_MAX)
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
        self._systemd.close()
        self._process.kill()
        self._process.communicate()

    def wait_for_state(self, wanted: str) -> str:
        """The next state that begins like this; earlier states are skipped."""
        while True:
            state = self._systemd.recv(65536).decode()
            if state.startswith(wanted):
                return state

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> tuple[int, list[str], list[str]]:
        """Stop the agent as systemd does; returns its exit status and the printed lines."""
        os.kill(self._process.pid, signal.SIGTERM)
        out, err = self._process.communicate(timeout=SECONDS_MAX)
        return self._process.returncode, out.splitlines(), err.splitlines()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    """A server that has not started."""
    server = LiveServer(f"sqlite:///{tmp_path}/roost.sqlite", tmp_path, workers=1)
    with ExitStack() as stack:
        server.port = stack.enter_context(reserved_port())
        stack.push(server)
        yield server


def test_the_agent_waits_for_the_server_and_reports_changes(
    tmp_path: Path, short_directory: Path, server: LiveServer
) -> None:
    tree = tmp_path / "tree.yaml"
    tree.write_text("providers: [{name: host-1, inventories: {VCPU: 8}}]")
    service = Service(
        short_directory,
        *("--driver", "file", "--option", f"path={tree}", "--name", "host-1"),
        *("--interval", "1", "--url", server.url),
    )
    with ExitStack() as stack:
        stack.callback(service.close)
        service.wait_for_state("READY=1")
        assert "Connection refused" in service.wait_for_state("STATUS=report failed")
        assert service.running

        server.start()
        service.wait_for_state("STATUS=reported, 3 changes")
        service.wait_for_state("STATUS=reported, 0 changes")
        tree.write_text("providers: [{name: host-1, inventories: {VCPU: 9}}]")
        service.wait_for_state("STATUS=reported, 1 change")

        status, out, err = service.stop()
        service.wait_for_state("STOPPING=1")
    assert status == 0
    assert out == [
        "host-1: created",
        "host-1: inventory VCPU added (total 8)",
        "host-1: traits added: CUSTOM_ROOST_OWNER_AGENT",
        "host-1: inventory VCPU total 8 -> 9",
    ]
    assert len([line for line in err if "Connection refused" in line]) == 1
    assert err[-1].startswith("roost: reporting again after ")
