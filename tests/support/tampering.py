"""A transport that interferes with chosen requests: other answers, other writers, lost answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from roost.client.errors import AnswerLost
from roost.client.transport import Request, Response, Transport

one_server = pytest.mark.parametrize("server", ["roost"], indirect=True)
"""For a test whose answers that matter are its own: it shows nothing more on another server."""

REQUEST_ID = "req-f0000000-0000-4000-8000-000000000001"

Pass = Callable[[Request], Response]
Interference = Callable[[Request, Pass], Response]


@dataclass(slots=True)
class _Rule:
    pattern: str
    times: int
    interfere: Interference


class TamperingTransport:
    """Passes requests on, but for those that a test has plans with.

    A pattern such as `PUT */traits` is meant for the next request that fits, or the next few;
    of several patterns that fit the oldest counts.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def send(self, request: Request) -> Response:
        interfere = self._interference(str(request))
        return interfere(request, self._inner.send) if interfere else self._inner.send(request)

    def close(self) -> None:
        self._inner.close()

    # -- plans

    def answer(self, pattern: str, response: Response, times: int = 1) -> None:
        """Answer instead of the server, which never hears of the request."""
        self._plan(pattern, times, lambda request, go_on: response)

    def before(self, pattern: str, act: Callable[[], object], times: int = 1) -> None:
        """Do something between the moment the request was made and the server's answer."""

        def interfere(request: Request, go_on: Pass) -> Response:
            act()
            return go_on(request)

        self._plan(pattern, times, interfere)

    def fail(self, pattern: str, error: Exception, times: int = 1) -> None:
        """Raise instead of passing the request on."""

        def interfere(request: Request, go_on: Pass) -> Response:
            raise error

        self._plan(pattern, times, interfere)

    def lose_answer(self, pattern: str, times: int = 1) -> None:
        """Pass the request on and lose the answer."""

        def interfere(request: Request, go_on: Pass) -> Response:
            go_on(request)
            raise AnswerLost(f"{request}: the answer got lost")

        self._plan(pattern, times, interfere)

    @property
    def left(self) -> list[str]:
        """The plans for requests that did not come."""
        return [rule.pattern for rule in self._rules if rule.times]

    def _plan(self, pattern: str, times: int, interfere: Interference) -> None:
        self._rules.append(_Rule(pattern, times, interfere))

    def _interference(self, request: str) -> Interference | None:
        with self._lock:
            for rule in self._rules:
                if rule.times and fnmatchcase(request, rule.pattern):
                    rule.times -= 1
                    return rule.interfere
        return None


def refusal(status: int, detail: str = "no", code: str = "placement.undefined_code") -> Response:
    """An error as placement servers word it."""
    body = {"errors": [{"status": status, "detail": detail, "code": code}]}
    return Response(status, {"x-openstack-request-id": REQUEST_ID}, json.dumps(body).encode())
