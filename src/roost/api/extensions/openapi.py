"""`/roost/openapi.json`: the whole service, for people and for generators of clients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

import orjson

from roost.api.extensions.parameters import bad_parameter, refuse_rest, split_parameters
from roost.api.microversions import (
    MAX_VERSION,
    MIN_VERSION,
    SERVICE_TYPE,
    InvalidVersion,
    Microversion,
    UnacceptableVersion,
    negotiate,
)
from roost.api.openapi.document import make_document
from roost.api.requests import Request
from roost.api.responses import Response

if TYPE_CHECKING:
    from roost.api.routes import Route

# One for each version, twice: a service has one prefix, or two while an operator changes it.
_KEPT_MAX = 96

_PARAMETERS = ("version",)


class OpenApiDocuments:
    """The documents of a route table, each made once in the life of a process."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._kept = lru_cache(maxsize=_KEPT_MAX)(self._make)

    def show(self, request: Request) -> Response:
        """The document of the version that the client asks for, or of all versions."""
        parameters = split_parameters(request, _PARAMETERS)
        refuse_rest(parameters, _PARAMETERS)
        body, tag = self._kept(_version(parameters.own.get("version")), request.prefix)
        headers = [("etag", tag), ("cache-control", "no-cache")]
        if _knows(request.header("if-none-match"), tag):
            return Response(304, headers=headers)
        return Response(200, body, [("content-type", "application/json"), *headers])

    def _make(self, version: Microversion | None, prefix: str) -> tuple[bytes, str]:
        body = orjson.dumps(make_document(self._routes, version, prefix))
        return body, f'"{sha256(body).hexdigest()[:32]}"'


def _version(text: str | None) -> Microversion | None:
    if text is None:
        return None
    try:
        # The header has one entry for each service. A text with a comma would be several.
        if not text or "," in text:
            raise InvalidVersion(text)
        return negotiate(f"{SERVICE_TYPE} {text}")
    except (InvalidVersion, UnacceptableVersion):
        raise bad_parameter(
            f"version is {text[:40]!r}. Send one from {MIN_VERSION} to {MAX_VERSION}, or `latest`."
        ) from None


def _knows(header: str | None, tag: str) -> bool:
    """Whether the client has these bytes."""
    if header is None:
        return False
    tags = {entry.strip().removeprefix("W/") for entry in header.split(",")}
    return tag in tags or "*" in tags
