"""A socket that speaks TLS and never blocks, with the methods of a socket that the server uses."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

# Plaintext that is encrypted in one go.
_CHUNK_BYTES = 64 * 1024
# Bytes of TLS itself, such as answers to new keys, that a client may leave unread.
_UNREAD_MAX = 64 * 1024


class HandshakeFailed(ConnectionError):
    """Client and server do not agree on TLS; the text says why."""

    def __init__(self, why: str, *, is_plain_http: bool) -> None:
        super().__init__(why)
        self.is_plain_http = is_plain_http


class TlsSocket:
    """TLS over a socket that does not block.

    The kernel knows nothing of the bytes in here, so `more_events` says what the server must wait
    for besides. A chunk counts as sent when the kernel has the whole of it.
    """

    __slots__ = (
        "_chunk_sent",
        "_encrypted",
        "_has_begun",
        "_has_ended",
        "_is_open",
        "_raw",
        "_received",
        "_tls",
        "_unsent",
    )

    def __init__(self, raw: socket.socket, context: ssl.SSLContext) -> None:
        self._raw = raw
        self._received = ssl.MemoryBIO()
        self._encrypted = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = context.wrap_bio(
            self._received, self._encrypted, server_side=True
        )
        # Whether the first bytes have come, and whether the handshake is complete.
        self._has_begun = False
        self._is_open = False
        # Whether the client has said that it sends no more.
        self._has_ended = False
        # Encrypted bytes that the kernel has not taken, and the plain bytes that they stand for.
        self._unsent = memoryview(b"")
        self._chunk_sent = 0

    @property
    def more_events(self) -> int:
        """What to wait for besides bytes of the client."""
        # A socket can nearly always be written to. So the end that the client announced is handled
        # at once.
        return select.EPOLLOUT if self._unsent or self._has_ended else 0

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._raw.fileno()

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Plain bytes that have come; none at the end. With flags: what the kernel has.

        `BlockingIOError` if there are no bytes yet, `HandshakeFailed` if there will be none. The
        server reads between answers only, so unsent bytes are those of TLS itself.
        """
        if flags or self._tls is None:
            return self._raw.recv(size, flags)
        with suppress(BlockingIOError):
            self._push()
        if self._has_ended:
            return b""
        data = self._raw.recv(size)
        if not data:
            return b""
        if not self._is_open:
            self._check_protocol(data)
        self._received.write(data)
        if not self._is_open:
            self._shake_hands(self._tls)
        plain = self._decrypted(self._tls)
        if len(self._unsent) > _UNREAD_MAX:
            raise ConnectionError("the client reads no answers of TLS")
        if not plain and not self._has_ended:
            raise BlockingIOError
        return plain

    def sendmsg(self, buffers: Sequence[memoryview]) -> int:
        """Send the first buffers; return how many plain bytes the kernel has taken.

        After `BlockingIOError`, the caller gives the same bytes again.
        """
        if self._tls is None:
            return self._raw.sendmsg(buffers)
        self._push()
        if not self._chunk_sent:
            chunk = _first_bytes(buffers)
            while self._chunk_sent < len(chunk):
                self._chunk_sent += self._tls.write(chunk[self._chunk_sent :])
            self._push()
        sent, self._chunk_sent = self._chunk_sent, 0
        return sent

    def say_end(self) -> None:
        """Tell the client that the last answer is complete."""
        if self._tls is not None and self._is_open:
            # The answer of the client does not matter: the server closes the socket.
            with suppress(OSError):
                self._tls.unwrap()
        self._tls = None
        with suppress(OSError):
            self._push()

    def shutdown(self, how: int) -> None:
        """Send no more."""
        self.say_end()
        self._raw.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._raw.close()

    def _check_protocol(self, data: bytes) -> None:
        """Tell a request without TLS from a handshake, whose first byte is no letter."""
        if not self._has_begun and data[:1].isalpha():
            self._tls = None
            raise HandshakeFailed("the request came without TLS", is_plain_http=True)
        self._has_begun = True

    def _shake_hands(self, tls: ssl.SSLObject) -> None:
        try:
            tls.do_handshake()
            self._is_open = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, ValueError) as error:
            # The alert that tells the client why.
            with suppress(OSError):
                self._push()
            reason: str = getattr(error, "reason", None) or str(error)
            raise HandshakeFailed(reason.replace("_", " ").lower(), is_plain_http=False) from None
        with suppress(BlockingIOError):
            self._push()

    def _decrypted(self, tls: ssl.SSLObject) -> bytes:
        parts = []
        try:
            while self._is_open and (self._received.pending or tls.pending()):
                part = tls.read(_CHUNK_BYTES)
                if not part:
                    self._has_ended = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        # Reading may have made an answer, to a new key of the client for example.
        with suppress(BlockingIOError):
            self._push()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _push(self) -> None:
        """Send what is encrypted; `BlockingIOError` if the kernel does not take all of it."""
        if self._encrypted.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._encrypted.read())
        while self._unsent:
            self._unsent = self._unsent[self._raw.send(self._unsent) :]


def _first_bytes(buffers: Sequence[memoryview]) -> bytes | memoryview:
    """As many bytes of the buffers as are encrypted in one go."""
    if len(buffers) == 1 or len(buffers[0]) >= _CHUNK_BYTES:
        return buffers[0][:_CHUNK_BYTES]
    taken: list[memoryview] = []
    room = _CHUNK_BYTES
    for buffer in buffers:
        if not room:
            break
        taken.append(buffer[:room])
        room -= len(taken[-1])
    return b"".join(taken)
