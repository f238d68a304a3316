"""`/traits` and `/resource_providers/{uuid}/traits`."""

from __future__ import annotations

from datetime import datetime

from roost.api.errors import HttpError
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
from roost.api.schemas import associations as schemas
from roost.api.services import Services
from roost.api.validation import check_provider_members, check_query, parse_body
from roost.model.identifiers import Name
from roost.service import traits
from roost.service.traits import TraitNameFilter


def list_all(services: Services, request: Request) -> Response:
    """The traits that pass the filters of the query."""
    values = check_query(request.query(), schemas.LIST_TRAITS.at(request.version))
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
    body = parse_body(request.body(), schemas.PROVIDER_TRAITS.at(request.version))
    check_provider_members(services.settings.limits, len(body["traits"]), "traits")
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
