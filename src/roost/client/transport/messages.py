"""Requests and answers, and what carries them: the one thing the rest of the client needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from roost.client.errors import UnreadableAnswer

REQUEST_ID = "x-openstack-request-id"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `repeatable` if sending it twice does what sending it once does."""

    method: str
    path: str
    body: Any = None
    version: str | None = None
    repeatable: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def headers(self) -> dict[str, str]:
        """The headers that say what is asked; who asks is the transport's to add."""
        headers = {"Accept": "application/json"}
        if self.version is not None:
            headers["OpenStack-API-Version"] = f"placement {self.version}"
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        return headers

    def content(self) -> bytes | None:
        """The body as it goes over the wire; a request without body has none at all."""
        return None if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the server, good or bad. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the server did what was asked."""
        return self.status < 400

    @property
    def json(self) -> Any:
        """The body as a value."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise self.unreadable() from error

    def field(self, name: str, kind: type = object) -> Any:
        """One field of a body that must have it, and of this type."""
        body = self.json
        if not isinstance(body, dict) or name not in body or not isinstance(body[name], kind):
            raise self.unreadable()
        return body[name]

    @property
    def request_id(self) -> str | None:
        """The id under which the server's log knows the request."""
        return self.headers.get(REQUEST_ID)

    @property
    def code(self) -> str | None:
        """The machine-readable code of an error (1.23 and later)."""
        return self._error().get("code")

    @property
    def detail(self) -> str:
        """What the server said about an error, or the beginning of whatever it sent instead."""
        return self._error().get("detail") or self.content[:500].decode(errors="replace").strip()

    def _error(self) -> dict[str, str]:
        try:
            return dict(json.loads(self.content)["errors"][0])
        except (ValueError, LookupError, TypeError):
            return {}

    def unreadable(self) -> UnreadableAnswer:
        """The error for an answer in which something is not as it should be."""
        return UnreadableAnswer(
            "The answer is not what a placement server sends; is the address right?",
            status=self.status,
            detail=self.content[:200].decode(errors="replace").strip(),
            request_id=self.request_id,
        )


class Transport(Protocol):
    """Carries requests to one placement server; may be used by several threads at once.

    `send` gives whatever the server answered, errors included. It raises `TransportFailed` when
    no answer came, after repeating what can be repeated safely.
    """

    def send(self, request: Request) -> Response:
        """Carry one request there and its answer back."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...
