"""Faults on demand: false answers, concurrent writers, lost answers, servers that are busy."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from roost.client.errors import AnswerLost, PlacementAPIConnectFailure
from roost.client.placement.answers import CONCURRENT_UPDATE
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.messages import REQUEST_ID

FAULT_REQUEST_ID = "req-f0000000-0000-4000-8000-000000000001"
"""The request id of every answer that a fault gives."""

PassOn = Callable[[PlacementRequest], PlacementResponse]
Interference = Callable[[PlacementRequest, PassOn], PlacementResponse]


@dataclass(slots=True)
class _Rule:
    pattern: str
    times: int
    after: int
    interfere: Interference


class Faults:
    """Passes requests on, except those that match a rule of the test.

    A pattern such as `PUT */traits` holds for the next `times` requests that match it, once
    `after` of them have passed. If several patterns match, the oldest holds.
    """

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    # -- rules

    def answer(
        self, pattern: str, response: PlacementResponse, times: int = 1, after: int = 0
    ) -> None:
        """Answer instead of the server. The request does not reach the server."""
        self._plan(pattern, times, after, lambda request, pass_on: response)

    def conflict(self, pattern: str = "PUT *", times: int = 1, after: int = 0) -> None:
        """Answer that another writer has changed the provider."""
        detail = "Another writer has changed the provider. Read it again."
        self.answer(pattern, error_answer(409, detail, CONCURRENT_UPDATE), times, after)

    def unavailable(self, pattern: str = "*", times: int = 1, after: int = 0) -> None:
        """Answer 503; the server carries the request out, as far as it can know, or not."""
        detail = "The request may have been carried out or not."
        self.answer(pattern, error_answer(503, detail), times, after)

    def busy(self, pattern: str = "*", seconds: int = 1, times: int = 1, after: int = 0) -> None:
        """Answer 429: too many requests, to be repeated after some seconds."""
        headers = {"retry-after": str(seconds)}
        answer = error_answer(429, "Too many requests.", headers=headers)
        self.answer(pattern, answer, times, after)

    def before(
        self, pattern: str, act: Callable[[], object], times: int = 1, after: int = 0
    ) -> None:
        """Call `act` just before the request is passed on, as another writer would."""

        def interfere(request: PlacementRequest, pass_on: PassOn) -> PlacementResponse:
            act()
            return pass_on(request)

        self._plan(pattern, times, after, interfere)

    def fail(self, pattern: str, error: Exception, times: int = 1, after: int = 0) -> None:
        """Raise instead of passing the request on."""

        def interfere(request: PlacementRequest, pass_on: PassOn) -> PlacementResponse:
            raise error

        self._plan(pattern, times, after, interfere)

    def unreachable(self, pattern: str = "*", times: int = 1, after: int = 0) -> None:
        """Refuse the connection, as a server that is down does."""
        self.fail(pattern, PlacementAPIConnectFailure("connection refused"), times, after)

    def lose_answer(self, pattern: str, times: int = 1, after: int = 0) -> None:
        """Pass the request on and lose the answer."""

        def interfere(request: PlacementRequest, pass_on: PassOn) -> PlacementResponse:
            pass_on(request)
            raise AnswerLost(f"{request}: the answer got lost")

        self._plan(pattern, times, after, interfere)

    @property
    def left(self) -> list[str]:
        """The patterns that still wait for a request."""
        return [rule.pattern for rule in self._rules if rule.times]

    # -- requests

    def disturb(self, request: PlacementRequest, pass_on: PassOn) -> PlacementResponse:
        """The answer to a request: that of the server, unless a rule interferes."""
        interfere = self._interference(str(request))
        return interfere(request, pass_on) if interfere else pass_on(request)

    def _plan(self, pattern: str, times: int, after: int, interfere: Interference) -> None:
        self._rules.append(_Rule(pattern, times, after, interfere))

    def _interference(self, request: str) -> Interference | None:
        with self._lock:
            for rule in self._rules:
                if not (rule.times and fnmatchcase(request, rule.pattern)):
                    continue
                if rule.after:
                    rule.after -= 1
                    continue
                rule.times -= 1
                return rule.interfere
        return None


def error_answer(
    status: int,
    detail: str = "no",
    code: str = "placement.undefined_code",
    headers: Mapping[str, str] | None = None,
) -> PlacementResponse:
    """An error in the format of placement servers."""
    body = {"errors": [{"status": status, "detail": detail, "code": code}]}
    return json_answer(body, status, {REQUEST_ID: FAULT_REQUEST_ID, **(headers or {})})


def json_answer(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> PlacementResponse:
    """An answer with a body of JSON."""
    return PlacementResponse(status, dict(headers or {}), json.dumps(body).encode())
