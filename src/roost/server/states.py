"""What a connection waits for, why the server refuses its bytes, and what it logs of that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus

from roost.configuration.limit_log import LIMIT_LOG
from roost.server.incoming import Environ
from roost.server.tls_socket import HandshakeFailed


class State(Enum):
    """What the connection waits for."""

    READING = auto()
    """For the next bytes of a request."""
    ANSWERING = auto()
    """For the application, or for the next piece of its answer."""
    WRITING = auto()
    """For the client to read its answer."""
    FOLLOWING = auto()
    """For the application to have more of its answer. Meanwhile no thread is busy with it."""
    LINGERING = auto()
    """For the client to close. The server discards what the client still sends."""
    CLOSED = auto()


# In these states, the server does not wait for the client.
WITHOUT_EVENTS = frozenset({State.ANSWERING, State.CLOSED})
# In these states, a connection is not closed because its client does nothing.
NOT_WAITING = WITHOUT_EVENTS | {State.FOLLOWING}


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the bytes that came are no request for the application."""

    status: HTTPStatus
    text: str
    # What the log counts such lines by: the option of a limit, for example.
    limit: str


def tell_refused(peer: Environ, refused: Refused) -> None:
    """The server answered bytes that never became a request for the application."""
    LIMIT_LOG.warn(refused.limit, f"{refused.status.value} {refused.text}", _client(peer))


def tell_failed_handshake(peer: Environ, failure: HandshakeFailed) -> None:
    """Client and server did not agree on TLS."""
    LIMIT_LOG.inform("tls", f"The TLS handshake failed: {failure}.", _client(peer))


def tell_silent(peer: Environ) -> None:
    """A new connection ended without a request. Honest clients open some in advance."""
    text = "Disconnected: no request came over a new connection ([roost]header_seconds)."
    LIMIT_LOG.inform("silent", text, _client(peer))


def tell_deaf(peer: Environ) -> None:
    """A client read nothing of its answer for too long."""
    text = "Disconnected: the client reads nothing of its answer ([roost]unread_seconds)."
    LIMIT_LOG.warn("unread_seconds", text, _client(peer))


def tell_unread(peer: Environ) -> None:
    """The slowest client had to leave, because too many bytes wait for all clients."""
    text = "Disconnected: clients leave too much of their answers unread ([roost]max_unread_bytes)."
    LIMIT_LOG.warn("max_unread_bytes", text, _client(peer))


def tell_evicted(count: int, maximum: int) -> None:
    """New connections took the places of idle ones."""
    text = f"{count} connections were closed because new ones came: [roost]max_connections = "
    LIMIT_LOG.warn("max_connections", f"{text}{maximum}.")


def tell_no_descriptor(error: OSError) -> None:
    """The kernel gives this process no further file."""
    LIMIT_LOG.warn(
        "open files",
        f"Connections wait, because this worker can open no further file: {error.strerror}. Raise "
        "that limit with `ulimit -n` or LimitNOFILE, or lower [roost]max_connections.",
    )


def _client(peer: Environ) -> str:
    client: str = peer["REMOTE_ADDR"]
    return client
