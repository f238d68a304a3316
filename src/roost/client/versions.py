"""The microversion that the client and a server both speak."""

from __future__ import annotations

from typing import NamedTuple

from roost.client.errors import PlacementError
from roost.client.placement.answers import require_ok
from roost.client.transport import PlacementRequest, RequestSender, Transport


class ServerVersion(NamedTuple):
    """A microversion of the Placement API."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


NEWEST = ServerVersion(1, 39)
"""The newest version that the client knows."""

OLDEST_WITH_TREES = ServerVersion(1, 14)
OLDEST_THAT_MOVES = ServerVersion(1, 37)
"""The first version that gives a provider another parent."""


class ServerTooOld(PlacementError):
    """The server lacks a version that the client needs."""


def newest_of_server(server: RequestSender) -> ServerVersion:
    """The newest version that a server speaks."""
    answer = server.send(PlacementRequest("GET", "/", repeatable=True))
    require_ok(answer, PlacementError, "Cannot read the versions of the server")
    versions = answer.field("versions", list)
    try:
        major, minor = map(int, str(versions[0]["max_version"]).split("."))
    except (LookupError, TypeError, ValueError):
        raise answer.unreadable() from None
    return ServerVersion(major, minor)


def newest_common(
    transport: Transport, oldest: ServerVersion = OLDEST_WITH_TREES, purpose: str = "trees"
) -> ServerVersion:
    """The newest version that both sides speak; `purpose` says what needs the oldest one."""
    newest = newest_of_server(transport)
    if newest < oldest:
        raise ServerTooOld(
            f"The server speaks placement {newest} at most, and {purpose} need {oldest}. "
            "Upgrade the server."
        )
    return min(newest, NEWEST)
