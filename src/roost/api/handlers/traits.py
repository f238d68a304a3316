"""`/traits` and `/resource_providers/{uuid}/traits`."""

from __future__ import annotations

from datetime import datetime

from roost.api.http.errors import HttpError
from roost.api.http.json_schemas import (
    GENERATION,
    INTEGER,
    STRING,
    AnswerSchema,
    list_of,
    record,
    text,
)
from roost.api.http.microversions import Microversion
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
from roost.api.routing import (
    CACHED,
    BodyLimit,
    JsonBody,
    QueryString,
    RequestParameter,
    Route,
    Success,
    routes_of,
)
from roost.api.services import Services
from roost.model.identifiers import Name
from roost.service.tables import traits
from roost.service.tables.traits import TraitNameFilter

_LIST = QueryString.of(
    RequestParameter(
        "name",
        "`startswith:P`: traits whose names begin so. `in:A,B`: those of the list that exist.",
        "startswith:HW_CPU",
    ),
    RequestParameter(
        "associated",
        "`true`: traits that a provider has. `false`: traits that no provider has.",
        "true",
    ),
)
_TRAITS = AnswerSchema.of(
    "Traits",
    "The names of traits. Their order has no meaning.",
    record({"traits": list_of(STRING)}),
)
_NEW = JsonBody(
    "NewProviderTraits",
    "The traits, and the generation of the provider.",
    (
        "1.6",
        record(
            traits=list_of(text(minimum=1, maximum=255)),
            resource_provider_generation=INTEGER,
        ),
    ),
    limits=(BodyLimit("max_provider_members", "traits", lambda body: len(body["traits"])),),
)
_PROVIDER_TRAITS = AnswerSchema.of(
    "ProviderTraits",
    "The traits of a provider, with its generation after the request.",
    record({"traits": list_of(STRING), "resource_provider_generation": GENERATION}),
)
_UNKNOWN = "No trait has this name."


@Route(
    "GET",
    "/traits",
    rule="placement:traits:list",
    successes={200: Success("The traits.", _TRAITS, CACHED)},
    queries=(_LIST,),
)
def list_traits(services: Services, request: Request) -> Response:
    """The names of all traits that pass the filters, standard and custom."""
    values = _LIST.parse(request)
    found = services.read(
        traits.list_traits,
        _name_filter(values["name"]) if "name" in values else TraitNameFilter(),
        _associated(values["associated"]) if "associated" in values else None,
    )
    body = {"traits": [trait.name for trait in found]}
    return cached_json(request, body, _modified_at(found))


def _name_filter(value: str) -> TraitNameFilter:
    operator, separator, operand = value.partition(":")
    if not separator:
        raise HttpError(
            400,
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"',
        )
    if operator == "in":
        return TraitNameFilter(among=frozenset(operand.split(",")))
    return TraitNameFilter(prefix=operand if operator == "startswith" else None)


def _associated(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise HttpError(
            400,
            f'The query parameter "associated" only accepts "true" or "false". Got: "{value}"',
        )
    return value.lower() == "true"


def _modified_at(found: list[Name]) -> datetime:
    return newest(trait.modified_at for trait in found) or now()


@Route(
    "GET",
    "/traits/{name}",
    rule="placement:traits:show",
    summary="Look whether a trait exists",
    successes={204: Success("The trait exists.", headers=CACHED)},
    refusals={404: _UNKNOWN},
)
def show_trait(services: Services, request: Request) -> Response:
    """Whether the trait exists, without a body."""
    trait = services.read(traits.get_trait, request.parameters["name"])
    return with_cache_headers(no_content(), request, trait.modified_at)


@Route(
    "PUT",
    "/traits/{name}",
    rule="placement:traits:update",
    summary="Create or confirm a trait",
    successes={
        201: Success("The trait exists now.", headers=("location", "cached")),
        204: Success("The trait existed before.", headers=("location", "cached")),
    },
    refusals={400: "The name is no name of a custom trait."},
)
def ensure_trait(services: Services, request: Request) -> Response:
    """Create a custom trait, unless it exists. The service ignores a body."""
    trait, created = services.write(request, traits.ensure_trait, request.parameters["name"])
    response = Response(201) if created else no_content()
    response = with_cache_headers(response, request, trait.modified_at)
    return with_location(response, request, f"/traits/{trait.name}")


@Route(
    "DELETE",
    "/traits/{name}",
    rule="placement:traits:delete",
    successes={204: Success("The trait is gone.")},
    refusals={
        400: "The trait is a standard one.",
        404: _UNKNOWN,
        409: "A provider has the trait.",
    },
)
def delete_trait(services: Services, request: Request) -> Response:
    """Delete a custom trait that no provider has."""
    services.write(request, traits.delete_trait, request.parameters["name"])
    return no_content()


def _provider_response(request: Request, generation: int, found: list[Name]) -> Response:
    body = {
        "traits": [trait.name for trait in found],
        "resource_provider_generation": generation,
    }
    return cached_json(request, body, _modified_at(found))


@Route(
    "GET",
    "/resource_providers/{uuid}/traits",
    rule="placement:resource_providers:traits:list",
    summary="List the traits of a provider",
    successes={200: Success("The traits.", _PROVIDER_TRAITS, CACHED)},
)
def list_provider_traits(services: Services, request: Request) -> Response:
    """The traits that the provider has."""
    generation, found = services.read(traits.list_provider_traits, request.parameters["uuid"])
    return _provider_response(request, generation, found)


@Route(
    "PUT",
    "/resource_providers/{uuid}/traits",
    rule="placement:resource_providers:traits:update",
    summary="Replace the traits of a provider",
    successes={200: Success("The traits.", _PROVIDER_TRAITS, CACHED)},
    refusals={
        400: "The body does not fit the schema, or a trait does not exist.",
        409: "The generation is not that of the provider: read again.",
    },
    body=_NEW,
)
def replace_provider_traits(services: Services, request: Request) -> Response:
    """Replace all traits of the provider."""
    # On this route a wrong body is an error before a missing provider is.
    body = _NEW.parse(request)
    generation, found = services.write(
        request,
        traits.replace_provider_traits,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        body["traits"],
    )
    return _provider_response(request, generation, found)


@Route(
    "DELETE",
    "/resource_providers/{uuid}/traits",
    rule="placement:resource_providers:traits:delete",
    summary="Remove all traits of a provider",
    successes={204: Success("The provider has no traits.")},
    refusals={409: "Another request changed the provider at the same time."},
)
def delete_provider_traits(services: Services, request: Request) -> Response:
    """Remove all traits of the provider. The traits themselves stay."""
    services.write(request, traits.delete_provider_traits, request.parameters["uuid"])
    return no_content()


ROUTES = routes_of(
    "Traits",
    list_provider_traits,
    replace_provider_traits,
    delete_provider_traits,
    list_traits,
    show_trait,
    ensure_trait,
    delete_trait,
    since=Microversion(1, 6),
)
