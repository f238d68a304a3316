"""`/roost/providers/{provider}/...`: a reinstalled host keeps its provider and its allocations."""

from __future__ import annotations

from typing import Any, ParamSpec, TypeVar

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.http.json_schemas import (
    COUNT,
    PROVIDER_REFERENCE,
    STRING,
    UUID,
    AnswerSchema,
    described,
    flag,
    list_of,
    members,
    record,
    text,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import JsonBody, Route, Success, routes_of
from roost.api.services import Services
from roost.model.providers import Provider
from roost.service.ledger import adoption
from roost.store.database import Write

P = ParamSpec("P")
T = TypeVar("T")

_NAME = text(minimum=1, maximum=200)
_DRY_RUN = {"dry_run": flag("The same answer, and nothing is written.")}
_NEW_UUID = "c0ffee00-0000-4000-8000-0000000000aa"
_CHANGED = {"provider": PROVIDER_REFERENCE, "was": PROVIDER_REFERENCE}

_ADOPT = JsonBody(
    "Adoption",
    "The new uuid.",
    ("1.0", record({"uuid": UUID}, _DRY_RUN)),
    example={"uuid": _NEW_UUID},
)
_RENAME = JsonBody(
    "Renaming",
    "The new name.",
    (
        "1.0",
        record(
            {"name": _NAME},
            {
                "descendants": flag(
                    "Also rename the providers below whose names begin with the old name."
                ),
                **_DRY_RUN,
            },
        ),
    ),
    example={"name": "host-2"},
)
_MERGE = JsonBody(
    "Merging",
    "The provider that takes over.",
    (
        "1.0",
        record(
            {"into": described(_NAME, "The uuid or name of the provider that stays.")},
            {
                "force": flag("Merge even if consumers then hold more than the capacity."),
                **_DRY_RUN,
            },
        ),
    ),
    example={"into": "host-2"},
)

_ADOPTED = AnswerSchema.of(
    "AdoptedProvider",
    "The provider with its new uuid, and as it was.",
    members(_CHANGED),
)
_RENAMED = AnswerSchema.of(
    "RenamedProviders",
    "The providers with new names.",
    members({"renamed": list_of(members(_CHANGED))}),
)
_MERGED = AnswerSchema.of(
    "MergedProviders",
    "What the provider has taken over. `merged` is the provider that exists no more.",
    members(
        {
            "provider": PROVIDER_REFERENCE,
            "merged": PROVIDER_REFERENCE,
            "consumers": described(COUNT, "How many consumers moved with their allocations."),
            "resource_classes": described(list_of(STRING), "The inventories that moved."),
            "traits": described(list_of(STRING), "The traits that the provider did not have."),
            "aggregates": described(list_of(UUID), "The aggregates that it was not in."),
            "children": list_of(PROVIDER_REFERENCE),
        }
    ),
)


@Route(
    "POST",
    "/roost/providers/{provider}/adopt",
    rule="roost:providers:adopt",
    summary="Give a provider another uuid",
    successes={200: Success("The provider has the uuid.", _ADOPTED)},
    refusals={
        404: NO_SUCH_PROVIDER,
        409: "Another provider has the uuid (`roost.uuid_taken`). Merge the two.",
    },
    body=_ADOPT,
)
def adopt_provider(services: Services, request: Request) -> Response:
    """Give a provider another uuid, for a host that was installed again.

    The provider keeps all that it has: children, inventories, traits, aggregates and allocations.
    """
    body = _ADOPT.parse(request)
    before, after = _write(
        services, request, body, adoption.adopt_provider, _named(request), body["uuid"]
    )
    return json_response({"provider": _reference(after), "was": _reference(before)})


@Route(
    "POST",
    "/roost/providers/{provider}/rename",
    rule="roost:providers:rename",
    summary="Give a provider another name",
    successes={200: Success("The providers have their names.", _RENAMED)},
    refusals={404: NO_SUCH_PROVIDER, 409: "Another provider has the name."},
    body=_RENAME,
)
def rename_provider(services: Services, request: Request) -> Response:
    """Give a provider another name; on request also to providers below it."""
    body = _RENAME.parse(request)
    with_descendants = body.get("descendants", False)
    renamed = _write(
        services,
        request,
        body,
        adoption.rename_tree,
        _named(request),
        body["name"],
        with_descendants,
    )
    content = [
        {
            "provider": _reference(each.provider),
            "was": {"uuid": each.provider.uuid, "name": each.was},
        }
        for each in renamed
    ]
    return json_response({"renamed": content})


@Route(
    "POST",
    "/roost/providers/{provider}/merge",
    rule="roost:providers:merge",
    summary="Merge a provider into another one",
    successes={200: Success("The provider has taken over.", _MERGED)},
    refusals={
        404: NO_SUCH_PROVIDER,
        409: "Too little capacity for the allocations of both (`roost.no_room`).",
    },
    body=_MERGE,
)
def merge_provider(services: Services, request: Request) -> Response:
    """Let one provider take over all that another one has, and delete that one.

    For a host that was installed again, and has registered as a second provider. Allocations,
    traits, aggregates and children move, and so do inventories that the provider `into` does not
    have.
    """
    body = _MERGE.parse(request)
    force = body.get("force", False)
    found = _write(
        services, request, body, adoption.merge_providers, _named(request), body["into"], force
    )
    return json_response(
        {
            "provider": _reference(found.target),
            "merged": _reference(found.source),
            "consumers": found.consumers,
            "resource_classes": found.resource_classes,
            "traits": found.traits,
            "aggregates": found.aggregates,
            "children": [_reference(child) for child in found.children],
        }
    )


def _named(request: Request) -> str:
    return request.parameters["provider"]


def _write(
    services: Services,
    request: Request,
    body: dict[str, Any],
    write: Write[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    if body.get("dry_run"):
        return services.rehearse(write, *args, **kwargs)
    return services.write(request, write, *args, **kwargs)


def _reference(provider: Provider) -> dict[str, str]:
    return {"uuid": provider.uuid, "name": provider.name}


ROUTES = routes_of("Providers", adopt_provider, rename_provider, merge_provider)
