"""`/resource_providers/{uuid}/aggregates`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.api.http.json_schemas import (
    GENERATION,
    INTEGER,
    STRING,
    UUID,
    AnswerSchema,
    growing,
    list_of,
    record,
)
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response, cached_json, now
from roost.api.routing import CACHED, BodyLimit, JsonBody, Route, Success, routes_of
from roost.api.services import Services
from roost.service.tables import aggregates, providers


def _sent(body: Any) -> list[str]:
    """The uuids of a body: all of it before 1.19."""
    return body if isinstance(body, list) else body["aggregates"]


_UUIDS = list_of(UUID, unique=True)
_NEW = JsonBody(
    "NewAggregates",
    "The uuids of the aggregates; from 1.19 on also the generation of the provider.",
    ("1.1", _UUIDS),
    ("1.19", record({"aggregates": _UUIDS, "resource_provider_generation": INTEGER})),
    limits=(BodyLimit("max_provider_members", "aggregates", lambda body: len(_sent(body))),),
)
_ANSWER = AnswerSchema(
    "ProviderAggregates",
    "The uuids of the aggregates of a provider; from 1.19 on also its generation.",
    *growing(
        ("1.1", {"aggregates": list_of(STRING)}, {}),
        ("1.19", {"resource_provider_generation": GENERATION}, {}),
    ),
)


def _response(request: Request, uuids: Sequence[str], generation: int) -> Response:
    body: dict[str, object] = {"aggregates": uuids}
    if request.at_least(1, 19):
        body["resource_provider_generation"] = generation
    return cached_json(request, body, now())


@Route(
    "GET",
    "/resource_providers/{uuid}/aggregates",
    rule="placement:resource_providers:aggregates:list",
    media_first=True,
    summary="List the aggregates of a provider",
    successes={200: Success("The aggregates.", _ANSWER, CACHED)},
)
def list_provider_aggregates(services: Services, request: Request) -> Response:
    """The aggregates of which the provider is a member."""
    generation, found = services.read(aggregates.list_aggregates, request.parameters["uuid"])
    return _response(request, found, generation)


@Route(
    "PUT",
    "/resource_providers/{uuid}/aggregates",
    rule="placement:resource_providers:aggregates:update",
    media_first=True,
    summary="Replace the aggregates of a provider",
    successes={200: Success("The aggregates.", _ANSWER, CACHED)},
    refusals={409: "The generation is not that of the provider: read again."},
    body=_NEW,
)
def replace_provider_aggregates(services: Services, request: Request) -> Response:
    """Replace all aggregates of the provider.

    An aggregate exists once a provider names it. From 1.19 on the generation of the provider must
    match.
    """
    uuid = request.parameters["uuid"]
    services.read(providers.get_provider, uuid)
    body = _NEW.parse(request)
    wanted = _sent(body)
    generation = body["resource_provider_generation"] if request.at_least(1, 19) else None
    new_generation = services.write(
        request, aggregates.replace_aggregates, uuid, wanted, generation
    )
    return _response(request, wanted, new_generation)


ROUTES = routes_of(
    "Aggregates", list_provider_aggregates, replace_provider_aggregates, since=Microversion(1, 1)
)
