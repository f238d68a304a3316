"""The version document."""

from __future__ import annotations

from roost.api.microversions import MAX_VERSION, MIN_VERSION
from roost.api.requests import Request
from roost.api.responses import Response, json_response, now, with_cache_headers
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


def home(_services: Services, request: Request) -> Response:
    """The versions of the API; a client needs no token for them."""
    return with_cache_headers(json_response(_DOCUMENT), request, now())
