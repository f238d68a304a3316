"""Fixtures: the name of a host, and its operator."""

from __future__ import annotations

from uuid import uuid4

import pytest

from support.client.operator_edits import Operator
from support.servers.live_server import LiveServer


@pytest.fixture
def operator(server: LiveServer) -> Operator:
    return Operator(server.client())


@pytest.fixture
def host() -> str:
    """The name of a host that only one test uses: tests share the servers."""
    return f"host-{uuid4()}"
