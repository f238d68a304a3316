"""The watchdog of systemd during a report: each request resets it."""

from __future__ import annotations

from collections.abc import Callable

from roost.client.transport import (
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
    Transport,
    address_of,
)


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
