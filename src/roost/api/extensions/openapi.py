"""`/roost/openapi.json`: the whole service, for people and for generators of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256

import orjson

from roost.api.extensions.parameters import refuse_rest, split_parameters
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import AnswerSchema, members, text
from roost.api.http.microversions import (
    MAX_VERSION,
    MIN_VERSION,
    SERVICE_TYPE,
    InvalidVersion,
    Microversion,
    UnacceptableVersion,
    negotiate,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, tagged_response
from roost.api.openapi.document import make_document
from roost.api.routing import QueryString, RequestParameter, Route, Success
from roost.api.services import Services

# One for each version, twice: a service has one prefix, or two while an operator changes it.
_KEPT_MAX = 96

_OWN = QueryString.of(
    RequestParameter(
        "version",
        "The microversion to describe, or `latest`. Without it, the document has all versions.",
        "1.39",
        text(r"^([0-9]{1,3}\.[0-9]{1,3}|latest)$"),
    )
)
_DOCUMENT = AnswerSchema.of(
    "OpenApi",
    "An OpenAPI document.",
    members(
        openapi=text(r"^3\.1\."),
        info={"type": "object"},
        paths={"type": "object"},
    )
    | {"additionalProperties": True},
    example={"openapi": "3.1.1", "info": {"title": "Roost", "version": "0.1.0"}, "paths": {}},
)


def document_route(all_routes: Callable[[], Sequence[Route]]) -> Route:
    """The route that describes all routes, itself among them."""

    # Each document is made once in the life of a process.
    @lru_cache(maxsize=_KEPT_MAX)
    def made(version: Microversion | None, prefix: str) -> tuple[bytes, str]:
        body = orjson.dumps(make_document(all_routes(), version, prefix))
        return body, f'"{sha256(body).hexdigest()[:32]}"'

    @Route(
        "GET",
        "/roost/openapi.json",
        rule="roost:openapi:show",
        tag="Operating",
        summary="Show this document",
        successes={
            200: Success("The document.", _DOCUMENT, ("etag",)),
            304: Success("The client has this document: `If-None-Match` names its ETag."),
        },
        refusals={400: "The version does not exist."},
        queries=(_OWN,),
    )
    def show_openapi(_services: Services, request: Request) -> Response:
        """The whole service as an OpenAPI document: every microversion, or a single one."""
        parameters = split_parameters(request, _OWN.names)
        refuse_rest(parameters, _OWN.names)
        body, tag = made(_version(parameters.own.get("version")), request.prefix)
        return tagged_response(request, body, tag, "application/json")

    return show_openapi


def _version(name: str | None) -> Microversion | None:
    if name is None:
        return None
    try:
        # The header has one entry for each service. A text with a comma would be several.
        if not name or "," in name:
            raise InvalidVersion(name)
        return negotiate(f"{SERVICE_TYPE} {name}")
    except (InvalidVersion, UnacceptableVersion):
        raise bad_value(
            f"version is {name[:40]!r}. Send one from {MIN_VERSION} to {MAX_VERSION}, or `latest`."
        ) from None
