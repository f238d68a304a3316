"""A transport that disturbs chosen requests: false answers, concurrent writers, lost answers."""

from __future__ import annotations

import pytest

from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.testing.faults import FAULT_REQUEST_ID as REQUEST_ID
from roost.testing.faults import Faults
from roost.testing.faults import error_answer as refusal

__all__ = ["REQUEST_ID", "TamperingTransport", "one_server", "refusal"]

one_server = pytest.mark.parametrize("server", ["roost"], indirect=True)
"""For a test that itself gives the answers that matter. A second server would show no more."""

reference_in_the_long_run = pytest.mark.parametrize(
    "server", ["roost", pytest.param("reference", marks=pytest.mark.slow)], indirect=True
)
"""For a property that takes long on the reference. `make test-long` asks both servers."""


class TamperingTransport(Faults):
    """Passes requests on to another transport, except those that match a rule of the test."""

    def __init__(self, inner: Transport) -> None:
        super().__init__()
        self._inner = inner

    def send(self, request: PlacementRequest) -> PlacementResponse:
        return self.disturb(request, self._inner.send)

    def close(self) -> None:
        self._inner.close()
