"""A transport that disturbs chosen requests: false answers, concurrent writers, lost answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from roost.client.errors import AnswerLost
from roost.client.transport import PlacementRequest, PlacementResponse, Transport

one_server = pytest.mark.parametrize("server", ["roost"], indirect=True)
"""For a test that itself gives the answers that matter. A second server would show no more."""

reference_in_the_long_run = pytest.mark.parametrize(
    "server", ["roost", pytest.param("reference", marks=pytest.mark.slow)], indirect=True
)
"""For a property that takes long on the reference. `make test-long` asks both servers."""

REQUEST_ID = "req-f0000000-0000-4000-8000-000000000001"

Pass = Callable[[PlacementRequest], PlacementResponse]
Interference = Callable[[PlacementRequest, Pass], PlacementResponse]


@dataclass(slots=True)
class _Rule:
    pattern: str
    times: int
    interfere: Interference


class TamperingTransport:
    """Passes requests on, except those that match a rule of the test.

    A pattern such as `PUT */traits` holds for the next `times` requests that match it. If several
    patterns match, the oldest holds.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def send(self, request: PlacementRequest) -> PlacementResponse:
        interfere = self._interference(str(request))
        return interfere(request, self._inner.send) if interfere else self._inner.send(request)

    def close(self) -> None:
        self._inner.close()

    # -- rules

    def answer(self, pattern: str, response: PlacementResponse, times: int = 1) -> None:
        """Answer instead of the server. The request does not reach the server."""
        self._plan(pattern, times, lambda request, go_on: response)

    def before(self, pattern: str, act: Callable[[], object], times: int = 1) -> None:
        """Call `act` just before the request is passed on."""

        def interfere(request: PlacementRequest, go_on: Pass) -> PlacementResponse:
            act()
            return go_on(request)

        self._plan(pattern, times, interfere)

    def fail(self, pattern: str, error: Exception, times: int = 1) -> None:
        """Raise instead of passing the request on."""

        def interfere(request: PlacementRequest, go_on: Pass) -> PlacementResponse:
            raise error

        self._plan(pattern, times, interfere)

    def lose_answer(self, pattern: str, times: int = 1) -> None:
        """Pass the request on and lose the answer."""

        def interfere(request: PlacementRequest, go_on: Pass) -> PlacementResponse:
            go_on(request)
            raise AnswerLost(f"{request}: the answer got lost")

        self._plan(pattern, times, interfere)

    @property
    def left(self) -> list[str]:
        """The patterns that still wait for a request."""
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


def refusal(
    status: int, detail: str = "no", code: str = "placement.undefined_code"
) -> PlacementResponse:
    """An error answer in the format of placement servers."""
    body = {"errors": [{"status": status, "detail": detail, "code": code}]}
    return PlacementResponse(
        status, {"x-openstack-request-id": REQUEST_ID}, json.dumps(body).encode()
    )
