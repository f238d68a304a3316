"""A request, its answer, and the interface of a transport."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from roost.client.errors import UnreadableAnswer
from roost.client.shapes import JsonShape, fits, parsed

REQUEST_ID = "x-openstack-request-id"

WEB_PAGE = "a web page of a proxy or another server"
"""The beginning of the detail of an answer that is HTML."""

_PAGE_LENGTH_MAX = 10_000
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)

SHOWN_PATH_MAX = 80
"""How many characters of a path a message has. Lists of traits have hundreds."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """One request; `repeatable` if sending it twice has the effect of sending it once."""

    method: str
    path: str
    body: Any = None
    version: str | None = None
    repeatable: bool = False
    # Headers of this request alone, as pairs of name and value.
    own_headers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def shown(self) -> str:
        """The request for messages, in which a long query is cut.

        >>> PlacementRequest("GET", "/traits?name=in:" + ",".join(["HW_CPU_X86_AVX"] * 40)).shown
        'GET /traits?name=in:HW_CPU_X86_AVX,HW_CPU_X86_AVX,HW_CPU_X86... (615 characters)'
        """
        if len(self.path) <= SHOWN_PATH_MAX:
            return str(self)
        shown = self.path[: SHOWN_PATH_MAX - 20]
        return f"{self.method} {shown}... ({len(self.path)} characters)"

    def headers(self) -> dict[str, str]:
        """The headers of the request itself; the transport adds the credentials."""
        headers = {"Accept": "application/json"}
        if self.version is not None:
            headers["OpenStack-API-Version"] = f"placement {self.version}"
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        return headers | dict(self.own_headers)

    def content(self) -> bytes | None:
        """The body as bytes; `None` for a request without body."""
        return None if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class PlacementResponse:
    """An answer of the server, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""
        return self.status < 400

    @property
    def json(self) -> Any:
        """The body as a JSON value."""
        try:
            return parsed(self.content)
        except ValueError as error:
            raise self.unreadable() from error

    def parsed(self) -> Any:
        """The body as a JSON value; `None` if it is none."""
        try:
            return self.json
        except UnreadableAnswer:
            return None

    def shaped(self, shape: JsonShape) -> Any:
        """The body as a JSON value, which must have this shape."""
        body = self.json
        if not fits(body, shape):
            raise self.unreadable()
        return body

    def field(self, name: str, shape: JsonShape = object) -> Any:
        """A field of the body, which must exist and have this shape."""
        return self.shaped({name: shape})[name]

    @property
    def request_id(self) -> str | None:
        """The id of the request in the log of the server."""
        return self.headers.get(REQUEST_ID)

    @property
    def code(self) -> str | None:
        """The code of an error (1.23 and later)."""
        return self._error("code")

    @property
    def detail(self) -> str:
        """The detail of an error; the beginning of the body if it has no detail."""
        return self._error("detail") or self._error("message") or _shown(self.content, 500)

    def _error(self, name: str) -> str | None:
        """A text of the first error in the body."""
        try:
            body = parsed(self.content)
            # Keystone's middleware, and servers that answer like it, send one error.
            text = (body["error"] if "error" in body else body["errors"][0])[name]
        except (ValueError, LookupError, TypeError):
            return None
        return text if isinstance(text, str) else None

    def unreadable(self) -> UnreadableAnswer:
        """The error for an answer with an unexpected body."""
        return UnreadableAnswer(
            "The answer is not what a placement server sends; is the address right?",
            status=self.status,
            detail=_shown(self.content, 200),
            request_id=self.request_id,
        )


def _shown(content: bytes, length: int) -> str:
    """The beginning of a body for messages; of a web page, its title or its text.

    >>> _shown(b"<html><title>502 Bad Gateway</title><body>nginx</body></html>", 500)
    'a web page of a proxy or another server: 502 Bad Gateway'
    """
    text = content[:_PAGE_LENGTH_MAX].decode(errors="replace").strip()
    if not text.startswith("<"):
        return text[:length].strip()
    title = _TITLE.search(text)
    words = title[1] if title else _TAG.sub(" ", text)
    return f"{WEB_PAGE}: {' '.join(words.split())[:length]}"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a transport finds its server, in one spelling; the project is that of the token."""

    url: str
    project_id: str | None = None


def address_of(transport: object) -> ServerAddress | None:
    """Where a transport finds its server; `None` if the transport does not tell."""
    tell: Callable[[], ServerAddress | None] | None = getattr(transport, "address", None)
    return None if tell is None else tell()


class RequestSender(Protocol):
    """Sends requests to one placement server. Several threads may use it at once.

    `send` returns the answer of the server, errors included. Without an answer `send` repeats
    the request as long as that is safe, and then raises `TransportFailed`.
    """

    def send(self, request: PlacementRequest) -> PlacementResponse:
        """Send a request and return its answer."""
        ...


class Transport(RequestSender, Protocol):
    """A sender with connections that the caller closes."""

    def close(self) -> None:
        """Close the connections."""
        ...
