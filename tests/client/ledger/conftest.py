"""Fixtures of the tests of the typed library."""

from __future__ import annotations

import pytest

from roost.client import Roost
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport


@pytest.fixture
def faults(transport: CountingTransport) -> TamperingTransport:
    """A connection to the server that disturbs chosen requests."""
    return TamperingTransport(transport)


@pytest.fixture
def roost(faults: TamperingTransport) -> Roost:
    """The library at each server; no retry waits."""
    return Roost(faults, project="project", user="user", sleep=lambda _seconds: None)


@pytest.fixture
def own(transport: CountingTransport) -> LiveProviders:
    """Names that no other test uses, and a look at the server beside the library."""
    return LiveProviders(transport)
