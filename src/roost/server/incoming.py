"""A request as it arrives, and the WSGI environment that it becomes."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

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


# The cache keeps no longer names, because a client could fill it with them.
_NAME_LENGTH_USUAL = 64
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
