"""Fixtures of the tests of commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client.live_providers import LiveProviders
from support.servers.live_server import LiveServer
from support.stubs.four_provider_stub import FourProviderStub
from support.transports.counting import CountingTransport


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the records. Commands run beside it, without variables of the user."""
    for name in os.environ:
        if name.startswith(("OS_", "ROOST_")):
            monkeypatch.delenv(name)
    for name in ("FORCE_COLOR", "COLUMNS", "NOTIFY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands repeat a write without the random pause that keeps writers apart."""
    monkeypatch.setattr("random.uniform", lambda low, _high: low)


@pytest.fixture
def live_providers(
    server: LiveServer, transport: CountingTransport, monkeypatch: pytest.MonkeyPatch
) -> LiveProviders:
    """The server that commands talk to, as another client sees it."""
    monkeypatch.setenv("ROOST_URL", server.url)
    return LiveProviders(transport)


@pytest.fixture
def small_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FourProviderStub]:
    """A server with a few known providers, for commands that read all providers."""
    with FourProviderStub() as small:
        monkeypatch.setenv("ROOST_URL", small.url)
        yield small
