"""A host, and somebody who edits it by hand."""

from __future__ import annotations

from uuid import uuid4

import pytest

from support.by_hand import Operator
from support.live_server import LiveServer


@pytest.fixture
def operator(server: LiveServer) -> Operator:
    return Operator(server.client())


@pytest.fixture
def host() -> str:
    """The name of a host of one's own: the servers are shared."""
    return f"host-{uuid4()}"
