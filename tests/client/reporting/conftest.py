"""Fixtures for the reporter: providers on the server, and a transport that interferes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport
from support.client.live_providers import LiveProviders
from support.servers.live_server import LiveServer
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport


@pytest.fixture
def live_providers(server: LiveServer) -> Iterator[LiveProviders]:
    """The providers as another client sees them, over its own connections."""
    transport = HttpTransport(server.url, "admin")
    yield LiveProviders(transport)
    transport.close()


@pytest.fixture
def tampering(transport: CountingTransport) -> Iterator[TamperingTransport]:
    """The transport of the reporter, which interferes as planned; a test uses all plans."""
    tampering = TamperingTransport(transport)
    yield tampering
    assert not tampering.left, f"these requests did not come: {tampering.left}"


@pytest.fixture
def reporter(tampering: TamperingTransport) -> Reporter:
    return Reporter(tampering)
