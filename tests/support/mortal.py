"""Processes that die, as their transport sees it."""

from __future__ import annotations

from roost.client.transport import Request, Response, Transport


class Death(BaseException):
    """The end of a process: nothing that anybody catches."""


class MortalTransport:
    """Dies instead of the write after so many; never, if that is None."""

    def __init__(self, inner: Transport, writes_left: int | None = None) -> None:
        self._inner = inner
        self.writes_left = writes_left

    def send(self, request: Request) -> Response:
        if request.method != "GET" and self.writes_left is not None:
            if self.writes_left == 0:
                raise Death
            self.writes_left -= 1
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()
