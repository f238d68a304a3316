"""The requests of the agent: each has a line in the log, and resets the watchdog of systemd."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

from roost.client.transport import (
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
    Transport,
    address_of,
)

LOG = logging.getLogger(__name__)


class LoggedTransport:
    """Counts requests, and logs each with its status and its time. Headers are not logged."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests = 0
        """How many requests were sent; repeats within the transport count once."""
        # A reporter reads a tree with several threads.
        self._lock = Lock()

    def send(self, request: PlacementRequest) -> PlacementResponse:
        """Send one request; returns the server's answer."""
        with self._lock:
            self.requests += 1
        began = time.monotonic()
        try:
            answer = self._inner.send(request)
        except Exception as error:
            LOG.debug("%s failed after %.3f s: %s", request.shown, time.monotonic() - began, error)
            raise
        LOG.debug("%s: %d in %.3f s", request.shown, answer.status, time.monotonic() - began)
        return answer

    def address(self) -> ServerAddress | None:
        """Where the server is."""
        return address_of(self._inner)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class WatchdogTransport:
    """Resets the watchdog before each request: a report of a large tree may take minutes."""

    def __init__(self, inner: Transport, alive: Callable[[], None]) -> None:
        self._inner = inner
        self._alive = alive

    def send(self, request: PlacementRequest) -> PlacementResponse:
        """Send one request; returns the server's answer."""
        self._alive()
        return self._inner.send(request)

    def address(self) -> ServerAddress | None:
        """Where the server is."""
        return address_of(self._inner)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()
