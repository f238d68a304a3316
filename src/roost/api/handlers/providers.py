"""`/resource_providers`."""

from __future__ import annotations

from typing import Any

from roost.api.provider_query import parse_provider_query
from roost.api.requests import Request
from roost.api.responses import (
    Response,
    json_response,
    newest,
    no_content,
    now,
    with_cache_headers,
    with_location,
)
from roost.api.schemas import providers as schemas
from roost.api.validation import parse_body
from roost.model.identifiers import canonical_uuid
from roost.model.providers import Provider
from roost.service import providers
from roost.service.provider_list import list_providers

# Which parts of a provider have links, and since when.
_LINKS = (
    ("inventories", (1, 0)),
    ("usages", (1, 0)),
    ("aggregates", (1, 1)),
    ("traits", (1, 6)),
    ("allocations", (1, 11)),
)


def _representation(request: Request, provider: Provider) -> dict[str, Any]:
    base = f"{request.prefix}/resource_providers/{provider.uuid}"
    body: dict[str, Any] = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": [
            {"rel": "self", "href": base},
            *(
                {"rel": part, "href": f"{base}/{part}"}
                for part, since in _LINKS
                if request.version >= since
            ),
        ],
    }
    if request.at_least(1, 14):
        body["parent_provider_uuid"] = provider.parent_uuid
        body["root_provider_uuid"] = provider.root_uuid
    return body


def list_all(request: Request) -> Response:
    """The providers that pass the filters of the query."""
    wanted = parse_provider_query(request.query(), request.version)
    found = request.read(list_providers, wanted)
    body = {"resource_providers": [_representation(request, provider) for provider in found]}
    modified_at = newest(provider.modified_at for provider in found) or now()
    return with_cache_headers(json_response(body), request, modified_at)


def create(request: Request) -> Response:
    """Make a provider."""
    body = parse_body(request.body(), schemas.CREATE.at(request.version))
    provider = request.write(
        providers.create_provider,
        name=body["name"],
        uuid=canonical_uuid(body["uuid"]) if "uuid" in body else None,
        parent_uuid=body.get("parent_provider_uuid"),
    )
    response = Response(201)
    if request.at_least(1, 20):
        response = json_response(_representation(request, provider))
        response = with_cache_headers(response, request, now())
    return with_location(response, request, f"/resource_providers/{provider.uuid}")


def show(request: Request) -> Response:
    """One provider."""
    provider = request.read(providers.get_provider, request.parameters["uuid"])
    body = _representation(request, provider)
    return with_cache_headers(json_response(body), request, provider.modified_at)


def update(request: Request) -> Response:
    """Rename or move a provider."""
    uuid = request.parameters["uuid"]
    # Existence is told before the body is looked at.
    request.read(providers.get_provider, uuid)
    body = parse_body(request.body(), schemas.UPDATE.at(request.version))
    provider = request.write(
        providers.update_provider,
        uuid,
        name=body["name"],
        parent_uuid=body.get("parent_provider_uuid", providers.KEEP_PARENT),
        may_reparent=request.at_least(1, 37),
    )
    response = json_response(_representation(request, provider))
    return with_cache_headers(response, request, now())


def delete(request: Request) -> Response:
    """Remove a provider."""
    request.write(providers.delete_provider, request.parameters["uuid"])
    return no_content()
