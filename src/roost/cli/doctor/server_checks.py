"""Checks of the server itself: reachable, ready, and new enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from roost.cli.doctor.diagnosis import Diagnosis, Grade
from roost.client.errors import PlacementError, TransportFailed, UnreadableAnswer
from roost.client.shapes import JsonShape, fits
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import RetryingTransport
from roost.client.versions import NEWEST, newest_of_server

_READINESS: JsonShape = {"version": str, "checks": {str: {"ok?": bool, "text?": str}}}


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself; `None` for what it does not say."""

    address: str
    newest_version: str | None = None
    # The version of Roost; another Placement server has none.
    roost: str | None = None
    ready: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """The facts as a JSON value."""
        return asdict(self)

    def sentence(self) -> str:
        """The facts for a person."""
        if self.newest_version is None:
            return f"{self.address}: no answer of a placement server"
        kind = f"Roost {self.roost}" if self.roost else "no Roost server"
        state = {None: "", True: ", ready", False: ", not ready"}[self.ready]
        return f"{self.address}: placement up to {self.newest_version}, {kind}{state}"


def examine_server(transport: RetryingTransport) -> tuple[ServerFacts, list[Diagnosis]]:
    """Ask a server what it is, and whether it is ready."""
    address = transport.describe()
    try:
        newest = newest_of_server(transport)
    except PlacementError as error:
        return ServerFacts(address), [_unreachable(error)]
    found = []
    if newest < NEWEST:
        found.append(
            Diagnosis(
                Grade.NOTE,
                "old-version",
                f"The server speaks placement {newest} at most, and {NEWEST} is the newest.",
                "pip install --upgrade 'roost[server]'",
            )
        )
    try:
        answer = transport.send(PlacementRequest("GET", "/readyz", repeatable=True))
    except TransportFailed as error:
        return ServerFacts(address, str(newest)), [*found, _unreachable(error)]
    readiness = _readiness(answer)
    if readiness is None:
        return ServerFacts(address, str(newest)), found
    found += _unready(readiness)
    version = str(readiness["version"])
    return ServerFacts(address, str(newest), version, answer.status == 200), found


def refused(error: PlacementError) -> Diagnosis:
    """The finding about a server that answers, but not this caller, or not now."""
    if error.status in (401, 403):
        return Diagnosis(
            Grade.FAULT,
            "refused",
            _in_one_line(error),
            "roost doctor --token TOKEN_OF_AN_ADMINISTRATOR",
        )
    return Diagnosis(Grade.FAULT, "failed", _in_one_line(error), "roost doctor")


def _unreachable(error: PlacementError) -> Diagnosis:
    command = "roost doctor --url http://HOST:8778"
    return Diagnosis(Grade.FAULT, "unreachable", _in_one_line(error), command)


def _in_one_line(error: PlacementError) -> str:
    """The text of an error; servers put empty lines between a general sentence and the cause."""
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())


def _readiness(answer: PlacementResponse) -> dict[str, Any] | None:
    """The body of `/readyz`; `None` if the server has no such page."""
    if answer.status not in (200, 503):
        return None
    try:
        body = answer.json
    except UnreadableAnswer:
        return None
    return body if fits(body, _READINESS) else None


def _unready(readiness: dict[str, Any]) -> Iterator[Diagnosis]:
    for name, check in sorted(readiness["checks"].items()):
        if not check.get("ok"):
            yield Diagnosis(
                Grade.FAULT,
                f"not-ready-{name}",
                f"The server is not ready: {name}: {check.get('text')}",
                "roost check-config --connect",
            )
