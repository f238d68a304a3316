"""What a connection waits for, and why the server refuses its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus


class State(Enum):
    """What the connection waits for."""

    READING = auto()
    """For the next bytes of a request."""
    ANSWERING = auto()
    """For the application, or for the next piece of its answer."""
    WRITING = auto()
    """For the client to read its answer."""
    LINGERING = auto()
    """For the client to close. The server discards what the client still sends."""
    CLOSED = auto()


# In these states, the server does not wait for the client.
WITHOUT_EVENTS = frozenset({State.ANSWERING, State.CLOSED})


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the bytes that came are no request for the application."""

    status: HTTPStatus
    text: str
    # What the log counts such lines by: the option of a limit, for example.
    limit: str
