"""What the tests of the reporter share: a world on the server, and somebody who interferes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport
from support.counting import CountingTransport
from support.live_server import LiveServer
from support.remote_world import RemoteWorld
from support.tampering import TamperingTransport


@pytest.fixture
def world(server: LiveServer) -> Iterator[RemoteWorld]:
    """Somebody else's view of the server, over connections of his own."""
    transport = HttpTransport(server.url, "admin")
    yield RemoteWorld(transport)
    transport.close()


@pytest.fixture
def tampering(transport: CountingTransport) -> Iterator[TamperingTransport]:
    """What the reporter sends passes here, and is then counted; all plans must be used."""
    tampering = TamperingTransport(transport)
    yield tampering
    assert not tampering.left, f"these requests did not come: {tampering.left}"


@pytest.fixture
def reporter(tampering: TamperingTransport) -> Reporter:
    return Reporter(tampering)
