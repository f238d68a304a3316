"""`/allocations`, the allocations of a provider, and `/reshaper`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, ParamSpec, cast

import orjson

from roost.api.handlers.inventories import ALL_INVENTORIES, parse_inventory
from roost.api.http.errors import HttpError
from roost.api.http.json_schemas import (
    CLASS_NAME,
    COUNT,
    EXAMPLE_PROJECT,
    EXAMPLE_PROVIDER,
    EXAMPLE_USER,
    EXTERNAL_ID,
    GENERATION,
    HELD_AMOUNTS,
    INTEGER,
    STRING,
    UUID,
    UUID_KEY,
    AnswerSchema,
    Document,
    described,
    growing,
    integer,
    list_of,
    mapping,
    record,
    text,
)
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response, cached_json, no_content, now, with_cache_headers
from roost.api.http.streamed_lists import AT_ONCE_MAX, pages, streamed_members, streamed_response
from roost.api.routing import CACHED, BodyLimit, JsonBody, Route, Success, routes_of
from roost.api.services import Services
from roost.configuration.settings import Settings
from roost.metrics.catalogue import CLAIMS, CONFLICTS
from roost.model.consumers import ANY_GENERATION, UNKNOWN_CONSUMER_TYPE, Claim, ProviderConsumer
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.errors import ConflictCause, ErrorCode
from roost.service.tables import allocations, claims
from roost.service.tables.allocations import ProviderAllocations
from roost.service.tables.reshape import NewInventories, reshape
from roost.store.connections.errors import Contention
from roost.store.database import Write

P = ParamSpec("P")

_CLAIMED, _RELEASED = ("claimed",), ("released",)
_resources_of = itemgetter("resources")

# What clients send.

_RESOURCES = mapping(CLASS_NAME, integer(1), minimum=1)
_LIST = list_of(
    record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES}), minimum=1
)
_BY_PROVIDER = mapping(UUID_KEY, record({"resources": _RESOURCES}, {"generation": INTEGER}))
_OWNER = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
# The mappings of a candidate: clients may send them back, and they have no effect.
_MAPPINGS: Document = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]": list_of(UUID, minimum=1)},
}


def _by_provider(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a consumer is to hold. Before 1.12 there is a list: the last entry of each counts."""
    sent = body["allocations"]
    if isinstance(sent, list):
        return {entry["resource_provider"]["uuid"]: entry for entry in sent}
    return cast("Mapping[str, Any]", sent)


def _count_one(body: Mapping[str, Any]) -> int:
    """The allocations of a consumer. An emptied consumer counts as one."""
    return sum(map(len, map(_resources_of, _by_provider(body).values()))) or 1


def _count_several(bodies: Mapping[str, Any]) -> int:
    """The allocations of several consumers. The last of two spellings of one uuid counts."""
    by_uuid = {uuid.replace("-", "").lower(): body for uuid, body in bodies.items()}
    return sum(map(_count_one, by_uuid.values()))


def _count_inventories(body: Mapping[str, Any]) -> int:
    """The inventories of a reshape. A provider that loses all of them counts as one."""
    return sum(len(new["inventories"]) or 1 for new in body["inventories"].values())


# The allocations of one consumer, by provider.
_FIRST_FORM, *_NEWER_FORMS = growing(
    ("1.13", {"allocations": _BY_PROVIDER} | _OWNER, {}),
    ("1.28", {"consumer_generation": {"type": ["integer", "null"]}}, {}),
    ("1.34", {}, {"mappings": _MAPPINGS}),
    ("1.38", {"consumer_type": text(CLASS_NAME, minimum=1, maximum=255)}, {}),
)

_ONE = JsonBody(
    "Allocations",
    "The new allocations of the consumer.",
    ("1.0", record({"allocations": _LIST})),
    ("1.8", record({"allocations": _LIST} | _OWNER)),
    ("1.12", record({"allocations": _BY_PROVIDER | {"minProperties": 1}} | _OWNER)),
    *_NEWER_FORMS,
    limits=(BodyLimit("max_allocations", "allocations", _count_one),),
)
_SEVERAL = JsonBody(
    "AllocationsOfSeveral",
    "The new allocations, by the uuid of the consumer.",
    *(
        (since, mapping(UUID_KEY, document, minimum=1))
        for since, document in (_FIRST_FORM, *_NEWER_FORMS)
    ),
    limits=(BodyLimit("max_allocations", "allocations", _count_several),),
)
_RESHAPE = JsonBody(
    "Reshape",
    "The inventories of providers and the allocations of consumers.",
    *(
        (
            since,
            record(
                inventories=mapping(UUID_KEY, ALL_INVENTORIES, minimum=1),
                allocations=mapping(UUID_KEY, document),
            ),
        )
        for since, document in _NEWER_FORMS
    ),
    limits=(
        BodyLimit("max_provider_members", "inventories", _count_inventories),
        BodyLimit(
            "max_allocations", "allocations", lambda body: _count_several(body["allocations"])
        ),
    ),
)

# What the service answers.

_CONSUMER = AnswerSchema(
    "ConsumerAllocations",
    "The allocations of a consumer. A consumer without allocations has no other member.",
    *growing(
        (
            "1.0",
            {
                "allocations": {
                    "type": "object",
                    "description": "What the consumer holds, by the uuid of the provider.",
                    "additionalProperties": record(
                        generation=GENERATION,
                        resources=HELD_AMOUNTS,
                    ),
                }
            },
            {},
        ),
        ("1.12", {}, {"project_id": STRING, "user_id": STRING}),
        (
            "1.28",
            {},
            {
                "consumer_generation": described(
                    INTEGER, "Counts the changes of the consumer. Send it back with the next write."
                )
            },
        ),
        (
            "1.38",
            {},
            {"consumer_type": described(STRING, "`unknown` if the consumer has no type.")},
        ),
    ),
    example=(
        "1.38",
        {
            "allocations": {
                EXAMPLE_PROVIDER: {"generation": 3, "resources": {"VCPU": 2, "MEMORY_MB": 4096}}
            },
            "project_id": EXAMPLE_PROJECT,
            "user_id": EXAMPLE_USER,
            "consumer_generation": 1,
            "consumer_type": "INSTANCE",
        },
    ),
)


def _provider_allocations(consumer: Document) -> Document:
    return record(
        allocations={"type": "object", "additionalProperties": consumer},
        resource_provider_generation=GENERATION,
    )


_OF_PROVIDER = AnswerSchema(
    "ProviderAllocations",
    "What each consumer holds of the provider, by the uuid of the consumer.",
    *(
        (since, _provider_allocations(consumer))
        for since, consumer in growing(
            ("1.0", {"resources": HELD_AMOUNTS}, {}), ("1.28", {"consumer_generation": COUNT}, {})
        )
    ),
)
_BAD = "The body does not fit the schema, or a provider or resource class does not exist."
_NO_ROOM = (
    "A provider has no room or no such inventory, or the consumer generation is another. Or other "
    "requests changed the same providers too often."
)


@Route(
    "GET",
    "/allocations/{consumer}",
    rule="placement:allocations:list",
    summary="Show the allocations of a consumer",
    successes={200: Success("The allocations.", _CONSUMER, CACHED)},
)
def show_allocations(services: Services, request: Request) -> Response:
    """What a consumer holds. An unknown consumer holds nothing: there is no 404."""
    found = services.read(allocations.get_consumer_allocations, request.parameters["consumer"])
    if found is None:
        return cached_json(request, {"allocations": {}}, now())
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
    return cached_json(request, body, found.modified_at)


@Route(
    "GET",
    "/resource_providers/{uuid}/allocations",
    rule="placement:resource_providers:allocations:list",
    tag="Resource providers",
    summary="List the consumers of a provider",
    successes={200: Success("The allocations.", _OF_PROVIDER, CACHED)},
)
def list_provider_allocations(services: Services, request: Request) -> Response:
    """The allocations of the provider, by consumer."""
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
    return cached_json(request, body, modified_at)


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


@Route(
    "PUT",
    "/allocations/{consumer}",
    rule="placement:allocations:update",
    summary="Claim: replace the allocations of a consumer",
    successes={204: Success("The consumer holds what the request says.")},
    refusals={400: _BAD, 409: _NO_ROOM},
    body=_ONE,
)
def replace_allocations(services: Services, request: Request) -> Response:
    """Replace everything that the consumer holds, all or nothing.

    From 1.28 on `consumer_generation` must match; null means a new consumer. From 1.28 on an empty
    `allocations` releases everything.
    """
    consumer = _consumer(request.parameters["consumer"])
    body = _ONE.parse(request)
    claim = _claim(services.settings, consumer, body)
    _write(services, request, claims.claim_for_one, claim)
    _count([claim])
    return no_content()


@Route(
    "POST",
    "/allocations",
    rule="placement:allocations:manage",
    since=Microversion(1, 13),
    summary="Replace the allocations of several consumers",
    successes={204: Success("All consumers hold what the request says.")},
    refusals={400: _BAD, 409: _NO_ROOM},
    body=_SEVERAL,
)
def replace_allocations_of_several(services: Services, request: Request) -> Response:
    """Replace the allocations of all named consumers, all or none.

    An empty `allocations` releases what a consumer holds.
    """
    body = _SEVERAL.parse(request)
    found = _claims(services.settings, body)
    _write(services, request, claims.claim_for_several, found)
    _count(found)
    return no_content()


@Route(
    "DELETE",
    "/allocations/{consumer}",
    rule="placement:allocations:delete",
    summary="Release the allocations of a consumer",
    successes={204: Success("The consumer holds nothing.")},
    refusals={
        404: "The consumer holds nothing.",
        409: "Other requests changed the same consumer.",
    },
)
def delete_allocations(services: Services, request: Request) -> Response:
    """Release everything that the consumer holds, whatever its generation is."""
    _write(services, request, claims.delete_allocations, request.parameters["consumer"])
    CLAIMS.count(_RELEASED)
    return no_content()


@Route(
    "POST",
    "/reshaper",
    id="reshape",
    rule="placement:reshaper:reshape",
    rule_default="rule:service_api",
    since=Microversion(1, 30),
    summary="Replace inventories and allocations together",
    successes={204: Success("The change is made.")},
    refusals={
        400: _BAD,
        409: f"{_NO_ROOM} Or a generation of a provider is another, or an inventory is in use.",
    },
    body=_RESHAPE,
)
def reshape_providers(services: Services, request: Request) -> Response:
    """Replace the inventories of providers and the allocations of consumers, as one change.

    The named providers get exactly these inventories, the named consumers these allocations. So
    inventory moves together with what consumers hold of it.
    """
    body = _RESHAPE.parse(request)
    wanted = {
        uuid: NewInventories(
            generation=new["resource_provider_generation"],
            inventories=[
                parse_inventory(name, inventory) for name, inventory in new["inventories"].items()
            ],
        )
        for uuid, new in body["inventories"].items()
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
    for key, one in body.items():
        consumer = _consumer(key)
        found[consumer] = _claim(settings, consumer, one)
    return list(found.values())


def _claim(settings: Settings, consumer: str, body: Mapping[str, Any]) -> Claim:
    return Claim(
        consumer=consumer,
        allocations={
            uuid: {name: int(amount) for name, amount in entry["resources"].items()}
            for uuid, entry in _by_provider(body).items()
        },
        project=body.get("project_id", settings.incomplete_project),
        user=body.get("user_id", settings.incomplete_user),
        generation=body.get("consumer_generation", ANY_GENERATION),
        consumer_type=body.get("consumer_type"),
    )


ROUTES = routes_of(
    "Allocations",
    list_provider_allocations,
    replace_allocations_of_several,
    show_allocations,
    replace_allocations,
    delete_allocations,
    reshape_providers,
)
