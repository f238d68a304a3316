"""A transport that remembers what was sent through it."""

from __future__ import annotations

from roost.client.transport import Request, Response, Transport


class CountingTransport:
    """Passes requests on and lists them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests: list[Request] = []

    def send(self, request: Request) -> Response:
        self.requests.append(request)
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()

    @property
    def writes(self) -> list[str]:
        """What was sent that could change something, in order."""
        return [str(request) for request in self.requests if request.method != "GET"]

    def forget(self) -> None:
        self.requests.clear()
