"""`/allocations`, the allocations of a provider, and `/reshaper`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ParamSpec

import orjson

from roost.api.errors import HttpError
from roost.api.handlers.inventories import parse_inventory
from roost.api.requests import Request
from roost.api.responses import (
    Response,
    json_response,
    no_content,
    now,
    with_cache_headers,
)
from roost.api.schemas import allocations as schemas
from roost.api.services import Services
from roost.api.streaming import AT_ONCE_MAX, pages, streamed_members, streamed_response
from roost.api.validation import check_allocations, check_provider_members, parse_body
from roost.configuration.settings import Settings
from roost.metrics.catalogue import CLAIMS, CONFLICTS
from roost.model.consumers import (
    ANY_GENERATION,
    UNKNOWN_CONSUMER_TYPE,
    Claim,
    ProviderConsumer,
)
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service import allocations, claims
from roost.service.allocations import ProviderAllocations
from roost.service.errors import ConflictCause, ErrorCode
from roost.service.reshape import NewInventories, reshape
from roost.store.database import Write
from roost.store.errors import Contention

P = ParamSpec("P")

_CLAIMED, _RELEASED = ("claimed",), ("released",)


def show(services: Services, request: Request) -> Response:
    """The allocations of a consumer; an unknown consumer has none."""
    found = services.read(allocations.get_consumer_allocations, request.parameters["consumer"])
    if found is None:
        return with_cache_headers(json_response({"allocations": {}}), request, now())
    body: dict[str, Any] = {
        "allocations": {
            item.provider_uuid: {
                "generation": item.provider_generation,
                "resources": item.resources,
            }
            for item in found.allocations
        }
    }
    if request.at_least(1, 12):
        body |= {"project_id": found.project, "user_id": found.user}
    if request.at_least(1, 28):
        body["consumer_generation"] = found.generation
    if request.at_least(1, 38):
        body["consumer_type"] = found.consumer_type or UNKNOWN_CONSUMER_TYPE
    return with_cache_headers(json_response(body), request, found.modified_at)


def list_for_provider(services: Services, request: Request) -> Response:
    """The allocations of a provider, by consumer."""
    found = services.read(
        allocations.list_provider_allocations, request.parameters["uuid"], AT_ONCE_MAX
    )
    modified_at = found.modified_at or now()
    if found.consumers is None:
        response = streamed_response(_streamed(services, request, found))
        return with_cache_headers(response, request, modified_at)
    body = {
        "allocations": _by_consumer(request, found.consumers),
        "resource_provider_generation": found.generation,
    }
    return with_cache_headers(json_response(body), request, modified_at)


def _by_consumer(request: Request, consumers: Iterable[ProviderConsumer]) -> dict[str, Any]:
    with_generation = request.at_least(1, 28)
    return {
        item.consumer_uuid: {"resources": item.resources}
        | ({"consumer_generation": item.consumer_generation} if with_generation else {})
        for item in consumers
    }


def _streamed(services: Services, request: Request, found: ProviderAllocations) -> Iterator[bytes]:
    consumers = pages(
        lambda after_id, up_to_id: services.read(
            allocations.list_consumers, found.provider_id, after_id, up_to_id
        ),
        *services.read(allocations.measure_consumers),
    )
    return streamed_members(
        b'{"allocations":{',
        (orjson.dumps(_by_consumer(request, page))[1:-1] for page in consumers),
        b'},"resource_provider_generation":%d}' % found.generation,
    )


def replace(services: Services, request: Request) -> Response:
    """Replace the allocations of one consumer."""
    consumer = _consumer(request.parameters["consumer"])
    body = parse_body(request.body(), schemas.PUT.at(request.version))
    claim = _claim(services.settings, consumer, body)
    check_allocations(services.settings.limits, claim.count)
    _write(services, request, claims.claim_for_one, claim)
    _count([claim])
    return no_content()


def replace_several(services: Services, request: Request) -> Response:
    """Replace the allocations of several consumers in one transaction."""
    body = parse_body(request.body(), schemas.POST.at(request.version))
    found = _claims(services.settings, body)
    _write(services, request, claims.claim_for_several, found)
    _count(found)
    return no_content()


def delete(services: Services, request: Request) -> Response:
    """Delete the allocations of a consumer."""
    _write(services, request, claims.delete_allocations, request.parameters["consumer"])
    CLAIMS.count(_RELEASED)
    return no_content()


def reshape_providers(services: Services, request: Request) -> Response:
    """Replace inventories and allocations in one transaction."""
    body = parse_body(request.body(), schemas.RESHAPE.at(request.version))
    # A provider that loses all its inventories counts as one inventory.
    count = sum(len(record["inventories"]) or 1 for record in body["inventories"].values())
    check_provider_members(services.settings.limits, count, "inventories")
    wanted = {
        uuid: NewInventories(
            generation=record["resource_provider_generation"],
            inventories=[
                parse_inventory(name, inventory)
                for name, inventory in record["inventories"].items()
            ],
        )
        for uuid, record in body["inventories"].items()
    }
    moved = _claims(services.settings, body["allocations"])
    services.write(request, reshape, wanted, moved)
    _count(moved)
    return no_content()


def _count(written: Iterable[Claim]) -> None:
    """Add claims to the metrics."""
    for claim in written:
        CLAIMS.count(_CLAIMED if claim.allocations else _RELEASED)


def _write(
    services: Services,
    request: Request,
    write: Write[P, None],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    try:
        services.write(request, write, *args, **kwargs)
    except Contention as contention:
        CONFLICTS.count((ConflictCause.CONTENTION,))
        raise HttpError(
            409,
            "Inventory and/or allocations changed while attempting to allocate: "
            f"{contention}. Try again.",
            ErrorCode.CONCURRENT_UPDATE,
        ) from contention


def _consumer(text: str) -> str:
    if not is_uuid(text):
        raise HttpError(400, f"Malformed consumer_uuid: {text}")
    return canonical_uuid(text)


def _claims(settings: Settings, body: Mapping[str, Any]) -> list[Claim]:
    """The claims of several consumers. The last of two spellings of one uuid counts."""
    found = {}
    for key, record in body.items():
        consumer = _consumer(key)
        found[consumer] = _claim(settings, consumer, record)
    check_allocations(settings.limits, sum(claim.count for claim in found.values()))
    return list(found.values())


def _claim(settings: Settings, consumer: str, body: Mapping[str, Any]) -> Claim:
    entries = body["allocations"]
    if isinstance(entries, list):
        # Before 1.12 there is a list. The last entry of a provider counts.
        entries = {entry["resource_provider"]["uuid"]: entry for entry in entries}
    return Claim(
        consumer=consumer,
        allocations={
            uuid: {name: int(amount) for name, amount in entry["resources"].items()}
            for uuid, entry in entries.items()
        },
        project=body.get("project_id", settings.incomplete_project),
        user=body.get("user_id", settings.incomplete_user),
        generation=body.get("consumer_generation", ANY_GENERATION),
        consumer_type=body.get("consumer_type"),
    )
