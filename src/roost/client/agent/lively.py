"""Signs of life while a report is under way."""

from __future__ import annotations

from collections.abc import Callable

from roost.client.transport import Request, Response, Transport


class LivelyTransport:
    """Gives a sign of life with each request: a large tree behind a slow server takes a while."""

    def __init__(self, inner: Transport, alive: Callable[[], None]) -> None:
        self._inner = inner
        self._alive = alive

    def send(self, request: Request) -> Response:
        """Carry one request there and its answer back."""
        self._alive()
        return self._inner.send(request)

    def close(self) -> None:
        """Let go of the connections."""
        self._inner.close()
