"""What the client's tests share: live servers, of Roost and of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from roost.client.transport.http import HttpTransport
from support.requirements import reference_environment
from support.servers.live_server import LiveServer, ReferenceServer
from support.transports.counting import CountingTransport


@pytest.fixture(scope="session")
def _running() -> Iterator[tuple[ExitStack, dict[str, LiveServer]]]:
    """The servers that run so far; each is started for the first test that wants it."""
    with ExitStack() as stack:
        yield stack, {}


@pytest.fixture(params=["roost", "reference"])
def server(
    request: pytest.FixtureRequest,
    _running: tuple[ExitStack, dict[str, LiveServer]],
    tmp_path_factory: pytest.TempPathFactory,
) -> LiveServer:
    """Each server in turn; all tests share it, so they use names and uuids of their own."""
    name: str = request.param
    stack, servers = _running
    if name not in servers:
        directory = tmp_path_factory.mktemp(name)
        made = (
            LiveServer(f"sqlite:///{directory}/roost.sqlite", directory, workers=1)
            if name == "roost"
            else ReferenceServer(reference_environment(), directory)
        )
        servers[name] = stack.enter_context(made)
    return servers[name]


@pytest.fixture
def transport(server: LiveServer) -> Iterator[CountingTransport]:
    """A connection to the server that counts what is sent."""
    inner = HttpTransport(server.url, "admin")
    yield CountingTransport(inner)
    inner.close()
