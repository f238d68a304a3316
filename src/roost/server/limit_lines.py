"""The lines that the server logs when clients meet its limits."""

from __future__ import annotations

from roost.configuration.limit_log import LIMIT_LOG
from roost.server.incoming import Environ
from roost.server.states import Refused
from roost.server.tls_socket import HandshakeFailed


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
