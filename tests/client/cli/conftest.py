"""What the tests of commands share: an environment in which nothing of the user's counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.counting import CountingTransport
from support.live_server import LiveServer
from support.remote_world import RemoteWorld
from support.small_server import SmallServer


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where owners remember, and the directory in which commands run."""
    for name in os.environ:
        if name.startswith(("OS_", "ROOST_")):
            monkeypatch.delenv(name)
    for name in ("FORCE_COLOR", "COLUMNS", "NOTIFY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


@pytest.fixture
def world(
    server: LiveServer, transport: CountingTransport, monkeypatch: pytest.MonkeyPatch
) -> RemoteWorld:
    """Somebody else's view of the server that commands talk to."""
    monkeypatch.setenv("ROOST_URL", server.url)
    return RemoteWorld(transport)


@pytest.fixture
def small_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallServer]:
    """For commands that look at all there is, which on a shared server is anything."""
    with SmallServer() as small:
        monkeypatch.setenv("ROOST_URL", small.url)
        yield small
