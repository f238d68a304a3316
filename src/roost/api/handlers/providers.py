"""`/resource_providers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import orjson

from roost.api.http.errors import OverLimit
from roost.api.http.json_schemas import (
    EXAMPLE_AGGREGATE,
    EXAMPLE_PROVIDER,
    GENERATION,
    PARENT,
    PROVIDER_UUID,
    STRING,
    UUID,
    UUID_OR_NULL,
    AnswerSchema,
    Document,
    choice,
    described,
    growing,
    list_of,
    record,
    text,
)
from roost.api.http.microversions import Microversion
from roost.api.http.query_values import parse_member_of, parse_required, parse_resources
from roost.api.http.requests import Request
from roost.api.http.responses import (
    Response,
    cached_json,
    newest,
    no_content,
    now,
    with_cache_headers,
    with_location,
)
from roost.api.http.streamed_lists import AT_ONCE_MAX, pages, streamed_members, streamed_response
from roost.api.http.validation import check_query
from roost.api.routing import (
    CACHED,
    JsonBody,
    QueryString,
    RequestParameter,
    Route,
    Success,
    routes_of,
)
from roost.api.services import Services
from roost.model.identifiers import canonical_uuid
from roost.model.providers import Provider, ProviderFilter, TraitFilter
from roost.service.questions.provider_list import (
    ProviderSelection,
    list_providers,
    list_range,
    measure_list,
)
from roost.service.tables import providers
from roost.store.rows.provider_lists import Extent

# How many resource classes a query may name.
_CLASSES_MAX = 200
# The parts of a provider that have links, and the first version of each link.
_LINKS = (
    ("inventories", Microversion(1, 0)),
    ("usages", Microversion(1, 0)),
    ("aggregates", Microversion(1, 1)),
    ("traits", Microversion(1, 6)),
    ("allocations", Microversion(1, 11)),
)

# The place of the uuid in the links of a version. No uuid and no path of this service contains it.
_PLACE = "\0"

# How many providers a piece of a long list has: about 256 KB.
_PIECE_LENGTH = 250

# The query string of `GET /resource_providers`.

# Queries take a uuid in its canonical form with dashes only.
_UUID = text(pattern="^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$") | UUID

QUERY = QueryString.of(
    RequestParameter("name", "Only the provider with exactly this name.", "host-1"),
    RequestParameter("uuid", "Only the provider with this uuid.", EXAMPLE_PROVIDER, _UUID),
    RequestParameter(
        "member_of",
        "Only providers in the aggregate. `in:A,B` means at least one of several, and, from "
        "1.32 on, `!A` or `!in:A,B` none of them. Each of several values must hold.",
        f"in:{EXAMPLE_AGGREGATE}",
        since=Microversion(1, 3),
        repeated_since=Microversion(1, 24),
    ),
    RequestParameter(
        "resources",
        "Only providers that have room for all of these amounts.",
        "VCPU:4,MEMORY_MB:8192",
        since=Microversion(1, 4),
    ),
    RequestParameter(
        "in_tree",
        "Only providers in the tree of this provider.",
        EXAMPLE_PROVIDER,
        _UUID,
        since=Microversion(1, 14),
    ),
    RequestParameter(
        "required",
        "Only providers with all of these traits, or, from 1.22 on and after a `!`, without "
        "them. From 1.39 on `in:A,B` means at least one of several.",
        "HW_CPU_X86_AVX2,HW_CPU_X86_VMX",
        since=Microversion(1, 18),
        repeated_since=Microversion(1, 39),
    ),
)


def parse_provider_query(pairs: list[tuple[str, str]], version: Microversion) -> ProviderFilter:
    """The filters in these pairs; 400 with the reason if they are no valid query."""
    values = check_query(pairs, QUERY.schemas.at(version))
    return ProviderFilter(
        name=values.get("name"),
        uuid=values.get("uuid"),
        in_tree=values.get("in_tree"),
        aggregates=parse_member_of(_values(pairs, "member_of"), version),
        traits=_stripped(parse_required(_values(pairs, "required"), version)),
        resources=_resources(values["resources"]) if "resources" in values else {},
    )


def _values(pairs: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for key, value in pairs if key == wanted]


def _resources(value: str) -> dict[str, int]:
    resources = parse_resources(value)
    # The search looks for each class in every block of the forest.
    if len(resources) > _CLASSES_MAX:
        raise OverLimit(
            400,
            f"Invalid query string parameters: 'resources' names {len(resources)} classes; "
            f"{_CLASSES_MAX} are allowed.",
            "names",
        )
    return resources


def _stripped(traits: TraitFilter) -> TraitFilter:
    """The same traits without blanks around the names, not even after a `!`."""
    forbidden = tuple(name.strip() for name in traits.forbidden)
    return TraitFilter(traits.required, traits.any_of, forbidden)


# The bodies and answers of the routes.

_NAME = text(maximum=200)
_NEW = JsonBody(
    "NewResourceProvider",
    "The new provider. Without a uuid the service makes one up.",
    *growing(
        ("1.0", {"name": _NAME}, {"uuid": UUID}),
        ("1.14", {}, {"parent_provider_uuid": UUID_OR_NULL}),
    ),
    example={"name": "host-1", "uuid": EXAMPLE_PROVIDER},
)
_CHANGED = JsonBody(
    "ChangedResourceProvider",
    "The name and, from 1.14 on, the parent of the provider.",
    *growing(("1.0", {"name": _NAME}, {}), ("1.14", {}, {"parent_provider_uuid": UUID_OR_NULL})),
)


def _shape(version: Microversion) -> Document:
    """A provider with the links of a version."""
    relations = ["self", *(part for part, since in _LINKS if version >= since)]
    link = record({"rel": choice(*relations), "href": STRING})
    return {
        "uuid": PROVIDER_UUID,
        "name": STRING,
        "generation": GENERATION,
        "links": described(list_of(link), "The paths of the parts of the provider."),
    }


_NESTED = {
    "parent_provider_uuid": PARENT,
    "root_provider_uuid": described(STRING, "The root; a root names itself."),
}
_PROVIDER = AnswerSchema(
    "ResourceProvider",
    "A resource provider: a host, a part of a host, or a pool that hosts share.",
    *((str(since), record(_shape(since))) for since in sorted({since for _, since in _LINKS})),
    ("1.14", record(_shape(Microversion(1, 14)) | _NESTED)),
)
_PROVIDERS = AnswerSchema(
    "ResourceProviders",
    "All providers that pass the filters. Their order has no meaning.",
    ("1.0", record({"resource_providers": list_of(_PROVIDER)})),
)


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


@Route(
    "GET",
    "/resource_providers",
    rule="placement:resource_providers:list",
    successes={200: Success("The providers.", _PROVIDERS, CACHED)},
    refusals={400: "A parameter is unknown to the version, malformed, or names an unknown thing."},
    queries=(QUERY,),
)
def list_resource_providers(services: Services, request: Request) -> Response:
    """The providers that pass all filters. A filter concerns the provider itself, not its tree."""
    wanted = parse_provider_query(request.query(), request.version)
    forest = services.forest() if wanted.has_conditions else None
    found, selection = services.read(list_providers, forest, wanted, AT_ONCE_MAX)
    if found is None:
        extent = services.read(measure_list, selection)
        response = streamed_response(_streamed(services, request, selection, extent))
        return with_cache_headers(response, request, extent.modified_at or now())
    body = {"resource_providers": _representations(request, found)}
    modified_at = newest(provider.modified_at for provider in found) or now()
    return cached_json(request, body, modified_at)


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


@Route(
    "POST",
    "/resource_providers",
    rule="placement:resource_providers:create",
    successes={
        201: Success("The provider exists now.", headers=("location",), until=Microversion(1, 19)),
        200: Success(
            "The provider exists now.",
            _PROVIDER,
            ("location", "cached"),
            since=Microversion(1, 20),
        ),
    },
    refusals={
        400: "The body does not fit the schema, or the parent does not exist.",
        409: "A provider has this name or this uuid.",
    },
    body=_NEW,
)
def create_resource_provider(services: Services, request: Request) -> Response:
    """Create a provider. From 1.14 on it may have a parent."""
    body = _NEW.parse(request)
    provider = services.write(
        request,
        providers.create_provider,
        name=body["name"],
        uuid=canonical_uuid(body["uuid"]) if "uuid" in body else None,
        parent_uuid=body.get("parent_provider_uuid"),
    )
    response = Response(201)
    if request.at_least(1, 20):
        response = cached_json(request, _representation(request, provider), now())
    return with_location(response, request, f"/resource_providers/{provider.uuid}")


@Route(
    "GET",
    "/resource_providers/{uuid}",
    rule="placement:resource_providers:show",
    successes={200: Success("The provider.", _PROVIDER, CACHED)},
)
def show_resource_provider(services: Services, request: Request) -> Response:
    """One provider."""
    provider = services.read(providers.get_provider, request.parameters["uuid"])
    body = _representation(request, provider)
    return cached_json(request, body, provider.modified_at)


@Route(
    "PUT",
    "/resource_providers/{uuid}",
    rule="placement:resource_providers:update",
    summary="Rename or move a provider",
    successes={200: Success("The provider after the change.", _PROVIDER, CACHED)},
    refusals={
        400: "The body does not fit the schema, or the version forbids the new parent.",
        409: "Another provider has the name.",
    },
    body=_CHANGED,
)
def update_resource_provider(services: Services, request: Request) -> Response:
    """Rename a provider.

    From 1.14 on a root may get a parent. From 1.37 on every provider may get another parent or
    none, and its subtree follows. Without `parent_provider_uuid` the parent stays.
    """
    uuid = request.parameters["uuid"]
    # A missing provider is an error before a wrong body is.
    services.read(providers.get_provider, uuid)
    body = _CHANGED.parse(request)
    provider = services.write(
        request,
        providers.update_provider,
        uuid,
        name=body["name"],
        parent_uuid=body.get("parent_provider_uuid", providers.KEEP_PARENT),
        may_reparent=request.at_least(1, 37),
    )
    return cached_json(request, _representation(request, provider), now())


@Route(
    "DELETE",
    "/resource_providers/{uuid}",
    rule="placement:resource_providers:delete",
    successes={204: Success("The provider is gone.")},
    refusals={409: "The provider has children or allocations."},
)
def delete_resource_provider(services: Services, request: Request) -> Response:
    """Delete a provider with its inventories. It must have neither children nor allocations."""
    services.write(request, providers.delete_provider, request.parameters["uuid"])
    return no_content()


ROUTES = routes_of(
    "Resource providers",
    list_resource_providers,
    create_resource_provider,
    show_resource_provider,
    delete_resource_provider,
    update_resource_provider,
)
