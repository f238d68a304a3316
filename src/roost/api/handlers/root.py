"""The version document."""

from __future__ import annotations

from dataclasses import replace

from roost.api.http.json_schemas import STRING, AnswerSchema, list_of, record
from roost.api.http.microversions import MAX_VERSION, MIN_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response, cached_json, now
from roost.api.routing import CACHED, Route, Success, routes_of
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
        versions=list_of(
            record(
                id=STRING,
                max_version=STRING,
                min_version=STRING,
                status=STRING,
                links=list_of(record({"rel": STRING, "href": STRING})),
            )
        ),
    ),
    example=_DOCUMENT,
)


@Route("GET", "/", rule=None, successes={200: Success("The versions.", _VERSIONS, CACHED)})
def show_versions(_services: Services, request: Request) -> Response:
    """The oldest and the newest microversion of the service. No token is needed."""
    return cached_json(request, _DOCUMENT, now())


ROUTES = routes_of("Operating", show_versions, replace(show_versions, path=""))
