"""A transport that keeps a list of its requests."""

from __future__ import annotations

from roost.client.transport import PlacementRequest, PlacementResponse, Transport


class CountingTransport:
    """Passes requests on and lists them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests: list[PlacementRequest] = []

    def send(self, request: PlacementRequest) -> PlacementResponse:
        self.requests.append(request)
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()

    @property
    def writes(self) -> list[str]:
        """The requests that are not reads, in order."""
        return [str(request) for request in self.requests if request.method != "GET"]

    def forget(self) -> None:
        self.requests.clear()
