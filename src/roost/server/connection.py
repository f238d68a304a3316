"""One connection of a client: bytes in, requests out, the bytes of answers back; and their budget.

A connection belongs to one thread at a time: the one that holds its lock `owner`. Only its owner
touches it.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from http import HTTPStatus

import httptools

from roost.model.limits import Limits
from roost.server.incoming import UPGRADE, Environ, Incoming, RequestPieces
from roost.server.states import NOT_WAITING, Refused, State, tell_failed_handshake
from roost.server.tls_socket import HandshakeFailed, TlsSocket

_LOG = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RECEIVE_BYTES = 64 * 1024
# Bodies up to this size are always let in.
_SMALL_BODY_BYTES = 64 * 1024
# Complete requests that wait for their answers. The bytes of further ones wait as they came.
_AHEAD_MAX = 64
_VERSIONS = frozenset({"1.0", "1.1"})
_UPGRADE = re.compile(UPGRADE, re.IGNORECASE)
# The kernel takes no more buffers in one call; answers have two or three.
_BUFFERS_MAX = 64


class Budget:
    """The bytes that all connections of a process may hold together."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._lock = threading.Lock()
        self.taken = 0

    def take(self, amount: int) -> bool:
        """Take the amount if the budget has it; return whether it had."""
        with self._lock:
            if self.taken + amount > self._maximum:
                return False
            self.taken += amount
            return True

    def give_back(self, amount: int) -> None:
        """Return an amount to the budget."""
        with self._lock:
            self.taken -= amount


class Connection:
    """A socket, what came over it, and what it still has to send."""

    __slots__ = (
        "_body_began",
        "_has_progressed",
        "_incoming",
        "_large_bodies",
        "_limits",
        "_linger_bytes",
        "_owes_continue",
        "_parser",
        "_pieces",
        "_unparsed_bytes",
        "deadline",
        "environ",
        "follows",
        "is_new",
        "is_parked",
        "keep_alive",
        "owner",
        "read_at",
        "refused",
        "requests",
        "socket",
        "state",
        "stream",
        "unsent",
        "waits_since",
        "wants_lingering",
        "was_woken",
    )

    def __init__(
        self,
        client: socket.socket | TlsSocket,
        environ: Environ,
        limits: Limits,
        large_bodies: Budget,
    ) -> None:
        self.socket = client
        self.owner = threading.Lock()
        self.environ = environ
        # Complete requests; more than one if the client does not wait for answers.
        self.requests: deque[Incoming] = deque()
        self.state = State.READING
        self.deadline = 0.0
        # When the connection entered its present state.
        self.waits_since = 0.0
        # When a thread last read from the socket.
        self.read_at = 0.0
        self.unsent: list[memoryview] = []
        # The pieces of an answer that follow those in `unsent`.
        self.stream: Generator[bytes] | None = None
        # Whether an empty piece means that the application wakes the connection later.
        self.follows = False
        # Whether the connection waits for that, or was woken before it waited.
        self.is_parked = False
        self.was_woken = False
        # Whether no byte of a request has come yet.
        self.is_new = True
        self.keep_alive = True
        self.wants_lingering = False
        # Why no further request is read.
        self.refused: Refused | None = None
        self._limits = limits
        self._large_bodies = large_bodies
        self._parser = httptools.HttpRequestParser(self)
        self._pieces = RequestPieces()
        self._incoming: Incoming | None = None
        self._body_began = False
        # How much the server still discards before it closes the connection.
        self._linger_bytes = limits.max_body_bytes
        # Bytes since the parser last reported progress, for example of a header that does not end.
        self._unparsed_bytes = 0
        self._has_progressed = False
        self._owes_continue = False

    @property
    def reading_seconds(self) -> float:
        """How long the server waits for the next part of a request."""
        if self._incoming is None:
            return self._limits.idle_seconds
        return self._limits.body_seconds if self._body_began else self._limits.header_seconds

    @property
    def late(self) -> Refused:
        """Why the server waits no longer for the rest of a request."""
        part, limit = (
            ("body", "body_seconds") if self._body_began else ("headers", "header_seconds")
        )
        return Refused(
            HTTPStatus.REQUEST_TIMEOUT,
            f"The {part} of a request did not come in time ([roost]{limit}).",
            limit,
        )

    @property
    def is_idle(self) -> bool:
        """Whether the server waits for the first byte of a request."""
        return self.state is State.READING and self._incoming is None

    @property
    def has_unread_bytes(self) -> bool:
        """Whether the client has sent bytes that no thread has read yet."""
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def take_if_waiting(self) -> bool:
        """Become the owner if the server waits for the client; return whether it does."""
        if not self.owner.acquire(blocking=False):
            return False
        if self.state in NOT_WAITING:
            self.owner.release()
            return False
        return True

    def receive(self, now: float) -> bool:
        """Read the bytes that have come; return whether the client is still there."""
        self.read_at = now
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except HandshakeFailed as failure:
            return self._answers_failed_handshake(failure)
        except OSError:
            return False
        if not data:
            return False
        if self.state is State.LINGERING:
            self._linger_bytes -= len(data)
            return self._linger_bytes > 0 and now < self.deadline
        before = self._incoming is not None, self._body_began
        self._pieces.add(data)
        self._parse()
        # Only bytes that begin a request or its body extend the deadline.
        if (self._incoming is not None, self._body_began) != before:
            self.deadline = now + self.reading_seconds
        return True

    def find_request(self) -> bool:
        """Whether a complete request waits for its answer. Bytes that have come are parsed."""
        if not self.requests:
            self._parse()
        return bool(self.requests)

    @property
    def has_more(self) -> bool:
        """Whether the client has sent more than what was answered."""
        return bool(self.requests or self._pieces)

    def send(self, buffers: Sequence[bytes]) -> None:
        """Queue the buffers, and send as much as the client takes now."""
        self.unsent += [memoryview(buffer) for buffer in buffers if buffer]
        self.flush()

    def let_continue(self) -> None:
        """Send `100 Continue` to a client that waits for it, after all earlier answers."""
        is_between = not self.requests and not self.unsent and self.stream is None
        if self._owes_continue and is_between:
            self._owes_continue = False
            # If the client is gone, its body does not come and the deadline passes.
            with suppress(OSError):
                self.send([_CONTINUE])

    def flush(self) -> None:
        """Send as much as the client takes now; `OSError` if it is gone."""
        while self.unsent:
            try:
                sent = self.socket.sendmsg(self.unsent[:_BUFFERS_MAX])
            except BlockingIOError:
                return
            self._forget_sent(sent)

    @property
    def unsent_bytes(self) -> int:
        """How much of its answer the client has not taken."""
        return sum(map(len, self.unsent))

    def release_body(self, incoming: Incoming) -> None:
        """Forget the body of a request, and give its bytes back to the budget."""
        if incoming.size > _SMALL_BODY_BYTES and not incoming.too_large:
            self._large_bodies.give_back(incoming.size)
        incoming.size = 0
        incoming.body = bytearray()

    def close(self) -> None:
        """End the connection, with all that belongs to it."""
        self.state = State.CLOSED
        if isinstance(self.socket, TlsSocket) and not self.unsent and self.stream is None:
            self.socket.say_end()
        for incoming in (*self.requests, *filter(None, [self._incoming])):
            self.release_body(incoming)
        self.requests.clear()
        self.unsent = []
        try:
            if self.stream is not None:
                self.stream.close()
        except Exception:
            _LOG.exception("The end of an answer that broke off failed")
        finally:
            # An answer that never began keeps its follower alive, even after `close`.
            self.stream = None
            self.socket.close()

    def _answers_failed_handshake(self, failure: HandshakeFailed) -> bool:
        """Refuse a client that speaks plain HTTP; return whether the client can read that."""
        if failure.is_plain_http:
            self._refuse(
                HTTPStatus.BAD_REQUEST,
                "This port speaks HTTPS, and the request came without TLS. Use a https:// URL.",
                "tls",
            )
        else:
            tell_failed_handshake(self.environ, failure)
        return failure.is_plain_http

    def _forget_sent(self, sent: int) -> None:
        count = 0
        for buffer in self.unsent:
            if sent < len(buffer):
                break
            sent -= len(buffer)
            count += 1
        del self.unsent[:count]
        if sent:
            self.unsent[0] = self.unsent[0][sent:]

    def _parse(self) -> None:
        """Find requests in the bytes that have come, as many as may wait for their answers.

        While they wait, no thread reads from the socket. So a client cannot send ahead for ever.
        """
        pieces = self._pieces
        while pieces and len(self.requests) < _AHEAD_MAX and self.refused is None:
            piece = pieces.take()
            if not piece:
                if pieces and self._incoming is None:
                    # The first bytes of a method have come.
                    self._begin()
                return
            self._feed(piece)

    def _feed(self, data: bytes) -> None:
        self._has_progressed = False
        if not self._body_began and UPGRADE in data.lower():
            # A server may ignore the header `Upgrade`. With it, the parser would take the body for
            # bytes of another protocol.
            data = _UPGRADE.sub(b"\r\nx-offer:", data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # After a request such as CONNECT the client speaks another protocol.
            self._pieces.clear()
            if self.requests:
                self.requests[-1].keep_alive = False
                self.wants_lingering = True
        except httptools.HttpParserError:
            self._refuse(
                HTTPStatus.BAD_REQUEST,
                "These bytes are no request of HTTP/1.1. Roost speaks no other protocol.",
                "protocol",
            )
        self._unparsed_bytes = 0 if self._has_progressed else self._unparsed_bytes + len(data)
        if self._incoming is not None:
            self._check_head(self._incoming.head_size + self._unparsed_bytes)

    def _refuse(self, status: HTTPStatus, text: str, limit: str) -> None:
        """Read no further request, for this reason; an earlier reason stays."""
        if self.refused is None:
            self.refused = Refused(status, text, limit)

    def _check_head(self, size: int) -> None:
        maximum = self._limits.max_header_bytes
        if size > maximum:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"Address and headers of a request may have {maximum} bytes "
                "([roost]max_header_bytes).",
                "max_header_bytes",
            )

    # What the parser calls.

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        self._has_progressed = True
        if self._incoming is None:
            self._begin()

    def on_url(self, part: bytes) -> None:
        """A part of the target has come."""
        assert self._incoming is not None
        self._has_progressed = True
        self._incoming.target += part
        self._incoming.head_size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come."""
        assert self._incoming is not None
        self._has_progressed = True
        # The colon, the space and the end of the line count, too.
        self._incoming.head_size += len(name) + len(value) + 4
        # Trailers come after the body. They must not name the sender of the request.
        if not self._body_began:
            # Blanks around a value are no part of it. The parser keeps those at its end.
            self._incoming.headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """All headers have come."""
        incoming = self._incoming
        assert incoming is not None
        self._body_began = True
        incoming.method = self._pieces.method or self._parser.get_method()
        incoming.version = self._parser.get_http_version()
        incoming.keep_alive = self._parser.should_keep_alive()
        self._check_head(incoming.head_size)
        if incoming.version not in _VERSIONS:
            self._refuse(
                HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
                "Roost speaks HTTP/1.1 and HTTP/1.0.",
                "protocol",
            )
        headers = dict(incoming.headers)
        if b"host" in headers and sum(name == b"host" for name, _ in incoming.headers) > 1:
            self._refuse(
                HTTPStatus.BAD_REQUEST, "The request has more than one Host header.", "protocol"
            )
        text = headers.get(b"content-length", b"")
        length = int(text) if text.isdigit() else 0
        self._pieces.body_left = length
        if length > self._limits.max_body_bytes:
            self._answer_without_body(incoming, length)
        elif headers.get(b"expect", b"").lower() == b"100-continue" and not incoming.is_old:
            self._owes_continue = True
            self.let_continue()

    def on_body(self, data: bytes) -> None:
        """A part of the body has come."""
        incoming = self._incoming
        self._has_progressed = True
        self._owes_continue = False
        if incoming is None or incoming.too_large or self.refused is not None:
            return
        before = incoming.size
        size = before + len(data)
        if size > self._limits.max_body_bytes:
            self.release_body(incoming)
            self._answer_without_body(incoming, size)
            return
        taken = before if before > _SMALL_BODY_BYTES else 0
        if size > _SMALL_BODY_BYTES and not self._large_bodies.take(size - taken):
            self.release_body(incoming)
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Other clients send large bodies at this moment ([roost]max_bodies_bytes). "
                "Try again.",
                "max_bodies_bytes",
            )
            return
        incoming.size = size
        incoming.body += data

    def on_message_complete(self) -> None:
        """The request is complete."""
        incoming = self._incoming
        self._pieces.end_request()
        self._owes_continue = False
        if incoming is not None and not incoming.too_large and self.refused is None:
            self.requests.append(incoming)
            self._incoming = None
            self._body_began = False

    def _begin(self) -> None:
        """The first byte of a request has come."""
        self._incoming = Incoming()
        self._body_began = False
        self.is_new = False

    def _answer_without_body(self, incoming: Incoming, size: int) -> None:
        """Let the application word the refusal. The server does not read the rest of the body."""
        incoming.too_large = True
        incoming.size = size
        incoming.keep_alive = False
        self.wants_lingering = True
        self.requests.append(incoming)
        self._pieces.clear()
