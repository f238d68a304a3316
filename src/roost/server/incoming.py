"""A request as it arrives: its bytes in pieces for the parser, and its WSGI environment.

No piece reaches over the end of a request. So the server can stop between two requests, and look
at the method of the next request before the parser does. No piece of a head ends within the name of
the header `Upgrade`, so the server finds that name however the bytes come.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

# The parser reads these itself. `PRI` begins HTTP/2, and the parser refuses it.
_PARSED = (
    b"GET ",
    b"PUT ",
    b"POST ",
    b"DELETE ",
    b"HEAD ",
    b"PATCH ",
    b"OPTIONS ",
    b"TRACE ",
    b"CONNECT ",
    b"PRI ",
)
# What the parser reads in place of any other method. The application sees the method itself.
_STAND_IN = b"POST"
_METHOD_BYTES_MAX = 64
_IS_TOKEN = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_LINE_BREAKS = b"\r\n"
# Headers end with it, and so do bodies in chunks.
_END = b"\r\n\r\n"
# The beginning of a header, in lower case.
UPGRADE = b"\r\nupgrade:"

Environ = dict[str, Any]

_COMMON: Environ = {
    "GATEWAY_INTERFACE": "CGI/1.1",
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.input_terminated": True,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}

# The cache keeps no longer names, because a client could fill it with them.
_NAME_LENGTH_USUAL = 64


class RequestPieces:
    """The bytes that have come and that the parser has not read."""

    __slots__ = ("_at", "_data", "_in_head", "_is_between", "_tail", "body_left", "method")

    def __init__(self) -> None:
        self._data = b""
        # How many of these bytes were taken. A copy of the rest for each piece would cost a
        # body of many short pieces the square of its length.
        self._at = 0
        # How many bytes of a body with a length have not been taken.
        self.body_left = 0
        # The method of the present request, if the parser does not read it itself.
        self.method: bytes | None = None
        # Whether the next byte belongs to a new request.
        self._is_between = True
        # Whether the next piece belongs to the request line and the headers.
        self._in_head = False
        # The last bytes of the piece before, if an end may have begun there.
        self._tail = b""

    def __bool__(self) -> bool:
        """Whether there are bytes that the parser has not read."""
        return self._at < len(self._data)

    def add(self, data: bytes) -> None:
        """Further bytes have come."""
        self._data = self._data[self._at :] + data if self else data
        self._at = 0

    def clear(self) -> None:
        """Forget all bytes that the parser has not read."""
        self._data = b""
        self._at = 0

    def take(self) -> bytes:
        """The next piece; nothing while there is none, or while a method is incomplete."""
        if self._is_between and not self._finds_method():
            return b""
        data, begin = self._data, self._at
        self._at = end = self._end()
        if end == len(self._data):
            # A connection that waits holds no bytes.
            self.clear()
        return data[begin:end]

    def end_request(self) -> None:
        """The parser has read the last byte of a request."""
        self._is_between = True
        self._tail = b""
        self.body_left = 0

    def _finds_method(self) -> bool:
        """Look at the method of a new request; return whether all of it is there.

        A method that is no token, or a very long one, goes to the parser, which refuses it.
        """
        self.method = None
        if not self._data.startswith(_PARSED, self._at):
            self._data = self._data[self._at :].lstrip(_LINE_BREAKS)
            self._at = 0
            method, blank, _ = self._data[: _METHOD_BYTES_MAX + 1].partition(b" ")
            is_token = len(method) <= _METHOD_BYTES_MAX and _IS_TOKEN(method)
            if is_token and not blank:
                return False
            if is_token and not self._data.startswith(_PARSED):
                self.method = method
                self._data = _STAND_IN + self._data[len(method) :]
        self._is_between = not self
        self._in_head = True
        return bool(self)

    def _end(self) -> int:
        """Where the next piece ends."""
        data, at = self._data, self._at
        if self.body_left:
            length = min(self.body_left, len(data) - at)
            self.body_left -= length
            return at + length
        tail = self._tail
        if tail:
            self._tail = b""
            begun = (tail + data[at : at + len(_END) - 1]).find(_END)
            if begun >= 0:
                self._in_head = False
                return at + begun + len(_END) - len(tail)
        found = data.find(_END, at)
        if found >= 0:
            self._in_head = False
            return found + len(_END)
        end = len(data) - (_begun_upgrade(data[at:]) if self._in_head else 0)
        self._tail = (tail + data[max(at, end - len(_END)) : end])[1 - len(_END) :]
        return end


def _begun_upgrade(head: bytes) -> int:
    """How many bytes at the end may begin the header `Upgrade`.

    >>> _begun_upgrade(b"GET / HTTP/1.1\\r\\nUpg"), _begun_upgrade(b"GET / HTTP/1.1\\r\\nHost: a")
    (5, 0)
    """
    last = head[1 - len(UPGRADE) :].lower()
    begun = last[last.rfind(b"\r") :] if b"\r" in last else b""
    return len(begun) if UPGRADE.startswith(begun) else 0


class Incoming:
    """One request: what has arrived of it so far."""

    __slots__ = (
        "body",
        "head_size",
        "headers",
        "keep_alive",
        "method",
        "size",
        "target",
        "too_large",
        "version",
    )

    def __init__(self) -> None:
        self.method = b""
        self.target = b""
        self.version = "1.1"
        self.headers: list[tuple[bytes, bytes]] = []
        self.head_size = 0
        self.body = bytearray()
        # How many bytes of the body came, or how many the client announced.
        self.size = 0
        self.too_large = False
        self.keep_alive = True

    @property
    def is_head(self) -> bool:
        """Whether the answer has no body whatever its headers say."""
        return self.method == b"HEAD"

    @property
    def is_old(self) -> bool:
        """Whether the client speaks HTTP/1.0."""
        return self.version == "1.0"

    def environ(self, connection: Environ) -> Environ:
        """The WSGI environment; `connection` holds what all requests of a connection share."""
        path, query = _split(self.target)
        environ = {
            **_COMMON,
            **connection,
            "REQUEST_METHOD": self.method.decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{self.version}",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "wsgi.input": BytesIO(self.body),
        }
        for name, value in self.headers:
            key = _known_key(name) if len(name) <= _NAME_LENGTH_USUAL else _key(name)
            if key is None:
                continue
            text = value.decode("latin-1")
            # WSGI has one value for each header, so repeated headers become a list.
            environ[key] = f"{environ[key]},{text}" if key in environ else text
        if self.too_large:
            # The application reads the length and refuses; there is no body to read.
            environ["CONTENT_LENGTH"] = str(self.size)
        return environ


def _key(name: bytes) -> str | None:
    """The name of a header in WSGI; `None` if the name has an underscore.

    WSGI folds `X_Roles` and `X-Roles` together. A proxy that sets `X-Roles` and lets
    `X_Roles` pass would let its clients choose their rights.

    >>> _key(b"X-Roles"), _key(b"Content-Type"), _key(b"X_Roles")
    ('HTTP_X_ROLES', 'CONTENT_TYPE', None)
    """
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


_known_key = lru_cache(maxsize=512)(_key)


def _split(target: bytes) -> tuple[str, str]:
    """Path and query of a request's target, as WSGI wants them.

    >>> _split(b"/traits/%C3%A9?name=in%3AA")
    ('/traits/\\xc3\\xa9', 'name=in%3AA')
    >>> _split(b"http://roost.example/traits?x")
    ('/traits', 'x')
    """
    if not target.startswith(b"/") and target != b"*":
        with suppress(httptools.HttpParserError):
            url = httptools.parse_url(target)
            target = (url.path or b"/") + (b"?" + url.query if url.query else b"")
    path, _, query = target.partition(b"#")[0].partition(b"?")
    if b"%" in path:
        path = unquote_to_bytes(path)
    return path.decode("latin-1"), query.decode("latin-1")
