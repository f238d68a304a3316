"""`/resource_providers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import orjson

from roost.api.microversions import Microversion
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
from roost.api.services import Services
from roost.api.streaming import AT_ONCE_MAX, pages, streamed_members, streamed_response
from roost.api.validation import parse_body
from roost.model.identifiers import canonical_uuid
from roost.model.providers import Provider
from roost.service import providers
from roost.service.provider_list import ProviderSelection, list_providers, list_range, measure_list
from roost.store.provider_lists import Extent

# The parts of a provider that have links, and the first version of each link.
_LINKS = (
    ("inventories", (1, 0)),
    ("usages", (1, 0)),
    ("aggregates", (1, 1)),
    ("traits", (1, 6)),
    ("allocations", (1, 11)),
)

# The place of the uuid in the links of a version. No uuid and no path of this service contains it.
_PLACE = "\0"

# About 256 KB.
_PIECE_LENGTH = 250


def _representation(request: Request, provider: Provider) -> dict[str, Any]:
    (body,) = _representations(request, [provider])
    return body


def _representations(request: Request, found: Iterable[Provider]) -> list[dict[str, Any]]:
    links = _links(request.prefix, request.version)
    nested = request.at_least(1, 14)
    bodies = []
    for provider in found:
        body = {
            "uuid": provider.uuid,
            "name": provider.name,
            "generation": provider.generation,
            # The JSON of the links: making six objects for each provider takes half as long again.
            "links": orjson.Fragment(links.replace(_PLACE, _escaped(provider.uuid))),
        }
        if nested:
            body["parent_provider_uuid"] = provider.parent_uuid
            body["root_provider_uuid"] = provider.root_uuid
        bodies.append(body)
    return bodies


@lru_cache(maxsize=256)
def _links(prefix: str, version: Microversion) -> str:
    """The links of a provider in this version as JSON, with places for the provider's uuid."""
    base = f"{prefix}/resource_providers/"
    hrefs = {"self": ""} | {part: f"/{part}" for part, since in _LINKS if version >= since}
    links = [{"rel": part, "href": f"{base}{_PLACE}{rest}"} for part, rest in hrefs.items()]
    return orjson.dumps(links).decode().replace(_escaped(_PLACE), _PLACE)


def _escaped(text: str) -> str:
    """The text as a part of a JSON string. Only rows of other services need an escape."""
    if text.replace("-", "").isalnum():
        return text
    return orjson.dumps(text)[1:-1].decode()


def list_all(services: Services, request: Request) -> Response:
    """The providers that pass the filters of the query."""
    wanted = parse_provider_query(request.query(), request.version)
    forest = services.forest() if wanted.has_conditions else None
    found, selection = services.read(list_providers, forest, wanted, AT_ONCE_MAX)
    if found is None:
        extent = services.read(measure_list, selection)
        response = streamed_response(_streamed(services, request, selection, extent))
        return with_cache_headers(response, request, extent.modified_at or now())
    body = {"resource_providers": _representations(request, found)}
    modified_at = newest(provider.modified_at for provider in found) or now()
    return with_cache_headers(json_response(body), request, modified_at)


def _streamed(
    services: Services, request: Request, selection: ProviderSelection, extent: Extent
) -> Iterator[bytes]:
    found = pages(
        lambda after_id, up_to_id: services.read(list_range, selection, after_id, up_to_id),
        extent.first_id,
        extent.last_id,
    )
    pieces = (
        orjson.dumps(_representations(request, page[start : start + _PIECE_LENGTH]))[1:-1]
        for page in found
        for start in range(0, len(page), _PIECE_LENGTH)
    )
    return streamed_members(b'{"resource_providers":[', pieces, b"]}")


def create(services: Services, request: Request) -> Response:
    """Create a provider."""
    body = parse_body(request.body(), schemas.CREATE.at(request.version))
    provider = services.write(
        request,
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


def show(services: Services, request: Request) -> Response:
    """One provider."""
    provider = services.read(providers.get_provider, request.parameters["uuid"])
    body = _representation(request, provider)
    return with_cache_headers(json_response(body), request, provider.modified_at)


def update(services: Services, request: Request) -> Response:
    """Rename or move a provider."""
    uuid = request.parameters["uuid"]
    # A missing provider is an error before a wrong body is.
    services.read(providers.get_provider, uuid)
    body = parse_body(request.body(), schemas.UPDATE.at(request.version))
    provider = services.write(
        request,
        providers.update_provider,
        uuid,
        name=body["name"],
        parent_uuid=body.get("parent_provider_uuid", providers.KEEP_PARENT),
        may_reparent=request.at_least(1, 37),
    )
    response = json_response(_representation(request, provider))
    return with_cache_headers(response, request, now())


def delete(services: Services, request: Request) -> Response:
    """Delete a provider."""
    services.write(request, providers.delete_provider, request.parameters["uuid"])
    return no_content()
