"""A transport that simulates the death of its process."""

from __future__ import annotations

from roost.client.transport import PlacementRequest, PlacementResponse, Transport


class ProcessDeath(BaseException):
    """The death of a process. No `except Exception` catches it."""


class DyingTransport:
    """Dies instead of a write once `writes_left` writes were sent; never if that is `None`."""

    def __init__(self, inner: Transport, writes_left: int | None = None) -> None:
        self._inner = inner
        self.writes_left = writes_left

    def send(self, request: PlacementRequest) -> PlacementResponse:
        if request.method != "GET" and self.writes_left is not None:
            if self.writes_left == 0:
                raise ProcessDeath
            self.writes_left -= 1
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()
