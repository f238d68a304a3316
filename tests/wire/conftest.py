"""Live servers for tests of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.live_server import LiveServer, Serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with one worker and the usual limits, for all tests of a module."""
    directory = tmp_path_factory.mktemp("server")
    with LiveServer(f"sqlite:///{directory}/placement.db", directory, workers=1) as live:
        yield live


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server with one worker and the options of `[roost]` that a test gives."""
    with ExitStack() as stack:

        def start(limits: str, *options: str) -> LiveServer:
            live = LiveServer(
                f"sqlite:///{tmp_path}/placement.db",
                tmp_path,
                workers=1,
                configuration=f"[roost]\n{limits}\n",
                options=options,
            )
            return stack.enter_context(live)

        yield start
