"""The version document."""

from __future__ import annotations

from dataclasses import replace

from roost.api.http.json_schemas import STRING, AnswerSchema, list_of, record
from roost.api.http.microversions import MAX_VERSION, MIN_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response, now, with_cache_headers
from roost.api.routing import CACHED, Route, Success
from roost.api.services import Services

_DOCUMENT = {
    "versions": [
        {
            "id": f"v{MIN_VERSION}",
            "max_version": str(MAX_VERSION),
            "min_version": str(MIN_VERSION),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}

_VERSIONS = AnswerSchema.of(
    "Versions",
    "The microversions of the service.",
    record(
        {
            "versions": list_of(
                record(
                    {
                        "id": STRING,
                        "max_version": STRING,
                        "min_version": STRING,
                        "status": STRING,
                        "links": list_of(record({"rel": STRING, "href": STRING})),
                    }
                )
            )
        }
    ),
    example=_DOCUMENT,
)


def home(_services: Services, request: Request) -> Response:
    """The versions of the API; a client needs no token for them."""
    return with_cache_headers(json_response(_DOCUMENT), request, now())


_HOME = Route(
    "GET",
    "/",
    home,
    rule=None,
    id="show_versions",
    tag="Operating",
    summary="Show the microversions",
    text="The oldest and the newest microversion of the service.",
    successes={200: Success("The versions.", _VERSIONS, CACHED)},
)

ROUTES = (_HOME, replace(_HOME, path=""))
