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
    json_response,
    newest,
    no_content,
    now,
    with_cache_headers,
    with_location,
)
from roost.api.routing import (
    CACHED,
    UNKNOWN_PROVIDER,
    BodyLimit,
    JsonBody,
    QueryString,
    RequestParameter,
    Route,
    Success,
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
    example={"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"]},
)
_NEW = JsonBody(
    "NewProviderTraits",
    "The traits, and the generation of the provider.",
    (
        "1.6",
        record(
            {
                "traits": list_of(text(minimum=1, maximum=255)),
                "resource_provider_generation": INTEGER,
            }
        ),
        {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 3},
    ),
    limits=(BodyLimit("max_provider_members", "traits", lambda body: len(body["traits"])),),
)
_PROVIDER_TRAITS = AnswerSchema.of(
    "ProviderTraits",
    "The traits of a provider, with its generation after the request.",
    record({"traits": list_of(STRING), "resource_provider_generation": GENERATION}),
    example={"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 4},
)


def list_all(services: Services, request: Request) -> Response:
    """The traits that pass the filters of the query."""
    values = _LIST.parse(request)
    found = services.read(
        traits.list_traits,
        _name_filter(values["name"]) if "name" in values else TraitNameFilter(),
        _associated(values["associated"]) if "associated" in values else None,
    )
    body = {"traits": [trait.name for trait in found]}
    return with_cache_headers(json_response(body), request, _modified_at(found))


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


def show(services: Services, request: Request) -> Response:
    """Whether the trait exists."""
    trait = services.read(traits.get_trait, request.parameters["name"])
    return with_cache_headers(no_content(), request, trait.modified_at)


def ensure(services: Services, request: Request) -> Response:
    """Create a custom trait, or confirm that it exists."""
    trait, created = services.write(request, traits.ensure_trait, request.parameters["name"])
    response = Response(201) if created else no_content()
    response = with_cache_headers(response, request, trait.modified_at)
    return with_location(response, request, f"/traits/{trait.name}")


def delete(services: Services, request: Request) -> Response:
    """Delete a custom trait that no provider has."""
    services.write(request, traits.delete_trait, request.parameters["name"])
    return no_content()


def _provider_response(request: Request, generation: int, found: list[Name]) -> Response:
    body = {
        "traits": [trait.name for trait in found],
        "resource_provider_generation": generation,
    }
    return with_cache_headers(json_response(body), request, _modified_at(found))


def list_for_provider(services: Services, request: Request) -> Response:
    """The traits of the provider."""
    generation, found = services.read(traits.list_provider_traits, request.parameters["uuid"])
    return _provider_response(request, generation, found)


def replace_for_provider(services: Services, request: Request) -> Response:
    """Replace the traits of the provider.

    On this route a wrong body is an error before a missing provider is.
    """
    body = _NEW.parse(request)
    generation, found = services.write(
        request,
        traits.replace_provider_traits,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        body["traits"],
    )
    return _provider_response(request, generation, found)


def delete_for_provider(services: Services, request: Request) -> Response:
    """Delete all traits of the provider."""
    services.write(request, traits.delete_provider_traits, request.parameters["uuid"])
    return no_content()


_SINCE = Microversion(1, 6)
_TAG = "Traits"
_UNKNOWN = "No trait has this name."

ROUTES = (
    Route(
        "GET",
        "/resource_providers/{uuid}/traits",
        list_for_provider,
        rule="placement:resource_providers:traits:list",
        since=_SINCE,
        id="list_provider_traits",
        tag=_TAG,
        summary="List the traits of a provider",
        text="The traits that the provider has.",
        successes={200: Success("The traits.", _PROVIDER_TRAITS, CACHED)},
        refusals={404: UNKNOWN_PROVIDER},
    ),
    Route(
        "PUT",
        "/resource_providers/{uuid}/traits",
        replace_for_provider,
        rule="placement:resource_providers:traits:update",
        since=_SINCE,
        id="replace_provider_traits",
        tag=_TAG,
        summary="Replace the traits of a provider",
        text="Replaces all traits of the provider.",
        successes={200: Success("The traits.", _PROVIDER_TRAITS, CACHED)},
        refusals={
            400: "The body does not fit the schema, or a trait does not exist.",
            404: UNKNOWN_PROVIDER,
            409: "The generation is not that of the provider: read again.",
        },
        body=_NEW,
    ),
    Route(
        "DELETE",
        "/resource_providers/{uuid}/traits",
        delete_for_provider,
        rule="placement:resource_providers:traits:delete",
        since=_SINCE,
        id="delete_provider_traits",
        tag=_TAG,
        summary="Remove all traits of a provider",
        text="Removes all traits of the provider. The traits themselves stay.",
        successes={204: Success("The provider has no traits.")},
        refusals={
            404: UNKNOWN_PROVIDER,
            409: "Another request changed the provider at the same time.",
        },
    ),
    Route(
        "GET",
        "/traits",
        list_all,
        rule="placement:traits:list",
        since=_SINCE,
        id="list_traits",
        tag=_TAG,
        summary="List traits",
        text="The names of all traits that pass the filters, standard and custom.",
        successes={200: Success("The traits.", _TRAITS, CACHED)},
        refusals={400: "A parameter is unknown or malformed."},
        queries=(_LIST,),
    ),
    Route(
        "GET",
        "/traits/{name}",
        show,
        rule="placement:traits:show",
        since=_SINCE,
        id="show_trait",
        tag=_TAG,
        summary="Look whether a trait exists",
        text="Answers without a body.",
        successes={204: Success("The trait exists.", headers=CACHED)},
        refusals={404: _UNKNOWN},
    ),
    Route(
        "PUT",
        "/traits/{name}",
        ensure,
        rule="placement:traits:update",
        since=_SINCE,
        id="ensure_trait",
        tag=_TAG,
        summary="Create or confirm a trait",
        text="Creates a custom trait, unless it exists. The service ignores a body.",
        successes={
            201: Success("The trait exists now.", headers=("location", "cached")),
            204: Success("The trait existed before.", headers=("location", "cached")),
        },
        refusals={400: "The name is no name of a custom trait."},
    ),
    Route(
        "DELETE",
        "/traits/{name}",
        delete,
        rule="placement:traits:delete",
        since=_SINCE,
        id="delete_trait",
        tag=_TAG,
        summary="Delete a trait",
        text="Deletes a custom trait that no provider has.",
        successes={204: Success("The trait is gone.")},
        refusals={
            400: "The trait is a standard one.",
            404: _UNKNOWN,
            409: "A provider has the trait.",
        },
    ),
)
