"""`/resource_providers/{uuid}/aggregates`."""

from __future__ import annotations

from collections.abc import Sequence

from roost.api.requests import Request
from roost.api.responses import Response, json_response, now, with_cache_headers
from roost.api.schemas import associations as schemas
from roost.api.services import Services
from roost.api.validation import check_provider_members, parse_body
from roost.service import aggregates, providers


def _response(request: Request, uuids: Sequence[str], generation: int) -> Response:
    body: dict[str, object] = {"aggregates": uuids}
    if request.at_least(1, 19):
        body["resource_provider_generation"] = generation
    return with_cache_headers(json_response(body), request, now())


def list_all(services: Services, request: Request) -> Response:
    """The aggregates of the provider."""
    generation, found = services.read(aggregates.list_aggregates, request.parameters["uuid"])
    return _response(request, found, generation)


def replace(services: Services, request: Request) -> Response:
    """Replace the aggregates of the provider."""
    uuid = request.parameters["uuid"]
    services.read(providers.get_provider, uuid)
    body = parse_body(request.body(), schemas.AGGREGATES.at(request.version))
    if request.at_least(1, 19):
        wanted, generation = body["aggregates"], body["resource_provider_generation"]
    else:
        wanted, generation = body, None
    check_provider_members(services.settings.limits, len(wanted), "aggregates")
    new_generation = services.write(
        request, aggregates.replace_aggregates, uuid, wanted, generation
    )
    return _response(request, wanted, new_generation)
