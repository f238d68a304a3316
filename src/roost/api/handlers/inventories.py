"""`/resource_providers/{uuid}/inventories`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.api.http.json_schemas import (
    AMOUNTS,
    CLASS_NAME,
    GENERATION,
    INTEGER,
    AnswerSchema,
    Document,
    described,
    integer,
    mapping,
    record,
    text,
)
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response, cached_json, newest, no_content, now, with_location
from roost.api.routing import CACHED, BodyLimit, JsonBody, Route, Success, routes_of
from roost.api.services import Services
from roost.model.inventory import INTEGER_MAX, RATIO_MAX, Inventory
from roost.service.tables import inventories, providers
from roost.service.tables.inventories import ProviderInventories

_INTEGERS = ("total", "reserved", "min_unit", "max_unit", "step_size")

_TOTAL = {"total": integer(1, INTEGER_MAX)}
_OTHERS: Document = {
    "reserved": integer(0, INTEGER_MAX),
    "min_unit": integer(1, INTEGER_MAX),
    "max_unit": integer(1, INTEGER_MAX),
    "step_size": integer(1, INTEGER_MAX),
    "allocation_ratio": {"type": "number", "maximum": RATIO_MAX, "minimum": -RATIO_MAX},
}
# Every field of an inventory.
FIELDS = _TOTAL | _OTHERS
_SENT_GENERATION = {"resource_provider_generation": INTEGER}
# A reshape has one of these for each provider.
ALL_INVENTORIES = record(
    _SENT_GENERATION
    | {"inventories": mapping(CLASS_NAME, record(_TOTAL, _OTHERS | _SENT_GENERATION))}
)

_NEW = JsonBody(
    "NewInventory",
    "The new inventory. Fields that are left out get their defaults.",
    ("1.0", record({"resource_class": text(CLASS_NAME)} | _TOTAL, _OTHERS | _SENT_GENERATION)),
)
_NEW_ONES = JsonBody(
    "NewInventories",
    "All inventories, by resource class, and the generation of the provider.",
    ("1.0", ALL_INVENTORIES),
    limits=(
        BodyLimit("max_provider_members", "inventories", lambda body: len(body["inventories"])),
    ),
)
_CHANGED = JsonBody(
    "ChangedInventory",
    "The inventory, and the generation of the provider.",
    ("1.0", record(_SENT_GENERATION | _TOTAL, _OTHERS)),
)

_MEANINGS = {
    "total": "What the provider has.",
    "reserved": "What no consumer gets.",
    "min_unit": "The least amount of one allocation.",
    "max_unit": "The greatest amount of one allocation.",
    "step_size": "Amounts are multiples of this.",
}
SHOWN_FIELDS = {name: described(FIELDS[name], meaning) for name, meaning in _MEANINGS.items()} | {
    "allocation_ratio": described(
        {"type": "number"}, "The capacity is `(total - reserved) * allocation_ratio`."
    )
}
_INVENTORY = AnswerSchema.of(
    "Inventory",
    "One inventory, with the generation of its provider after the request.",
    record(SHOWN_FIELDS | {"resource_provider_generation": GENERATION}),
)
_INVENTORIES = AnswerSchema.of(
    "Inventories",
    "All inventories of a provider by resource class, with its generation after the request.",
    record(
        resource_provider_generation=GENERATION,
        inventories=mapping(CLASS_NAME, record(SHOWN_FIELDS)),
    ),
)
_USAGES = AnswerSchema.of(
    "ProviderUsages",
    "What consumers hold of each resource class of which the provider has inventory.",
    record({"resource_provider_generation": GENERATION, "usages": AMOUNTS}),
)
_OUTDATED = (
    "The generation is not that of the provider, or another request changed the provider at the "
    "same time: read again."
)
_BAD = "The body does not fit the schema, the class does not exist, or no capacity is left."
_NONE = "No provider has this uuid, or the provider has no inventory of the class."


def parse_inventory(resource_class: str, body: Mapping[str, Any]) -> Inventory:
    """An inventory from a valid body, with defaults for missing members."""
    # To JSON schema 10.0 is an integer, so whole numbers may be floats here.
    values: dict[str, Any] = {name: int(body[name]) for name in _INTEGERS if name in body}
    if "allocation_ratio" in body:
        values["allocation_ratio"] = float(body["allocation_ratio"])
    return Inventory(resource_class, **values)


def _representation(inventory: Inventory) -> dict[str, Any]:
    return {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }


def _all(found: ProviderInventories) -> dict[str, Any]:
    return {
        "resource_provider_generation": found.generation,
        "inventories": {
            name: _representation(inventory) for name, inventory in found.inventories.items()
        },
    }


def _one(found: ProviderInventories) -> dict[str, Any]:
    (inventory,) = found.inventories.values()
    return _representation(inventory) | {"resource_provider_generation": found.generation}


def _parsed(services: Services, request: Request, body: JsonBody) -> Any:
    """The body. A missing provider is an error before a wrong body is."""
    services.read(providers.get_provider, request.parameters["uuid"])
    return body.parse(request)


@Route(
    "GET",
    "/resource_providers/{uuid}/inventories",
    rule="placement:resource_providers:inventories:list",
    successes={200: Success("The inventories.", _INVENTORIES, CACHED)},
)
def list_inventories(services: Services, request: Request) -> Response:
    """All inventories of the provider."""
    found = services.read(inventories.list_inventories, request.parameters["uuid"])
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return cached_json(request, _all(found), modified_at)


@Route(
    "GET",
    "/resource_providers/{uuid}/inventories/{resource_class}",
    rule="placement:resource_providers:inventories:show",
    successes={200: Success("The inventory.", _INVENTORY, CACHED)},
    refusals={404: _NONE},
)
def show_inventory(services: Services, request: Request) -> Response:
    """The inventory of one resource class."""
    found = services.read(
        inventories.get_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return cached_json(request, _one(found), modified_at)


@Route(
    "POST",
    "/resource_providers/{uuid}/inventories",
    rule="placement:resource_providers:inventories:create",
    successes={201: Success("The inventory.", _INVENTORY, ("location", "cached"))},
    refusals={
        400: _BAD,
        409: "The provider has an inventory of the class.",
    },
    body=_NEW,
)
def create_inventory(services: Services, request: Request) -> Response:
    """Add the inventory of one resource class."""
    uuid = request.parameters["uuid"]
    body = _parsed(services, request, _NEW)
    name = body["resource_class"]
    found = services.write(
        request,
        inventories.add_inventory,
        uuid,
        parse_inventory(name, body),
        may_reserve_all=request.at_least(1, 26),
    )
    response = cached_json(request, _one(found), now(), 201)
    return with_location(response, request, f"/resource_providers/{uuid}/inventories/{name}")


@Route(
    "PUT",
    "/resource_providers/{uuid}/inventories",
    rule="placement:resource_providers:inventories:update",
    successes={200: Success("The inventories.", _INVENTORIES, CACHED)},
    refusals={
        400: _BAD,
        409: f"{_OUTDATED} Or a consumer holds a class that is to go.",
    },
    body=_NEW_ONES,
)
def replace_inventories(services: Services, request: Request) -> Response:
    """Replace all inventories of the provider. Fields that are left out get their defaults."""
    body = _parsed(services, request, _NEW_ONES)
    found = services.write(
        request,
        inventories.replace_inventories,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        [parse_inventory(name, sent) for name, sent in body["inventories"].items()],
        may_reserve_all=request.at_least(1, 26),
    )
    return cached_json(request, _all(found), now())


@Route(
    "PUT",
    "/resource_providers/{uuid}/inventories/{resource_class}",
    rule="placement:resource_providers:inventories:update",
    successes={200: Success("The inventory.", _INVENTORY, CACHED)},
    refusals={
        400: f"{_BAD} Or the provider has no inventory of the class.",
        404: "No provider has this uuid, or no resource class has this name.",
        409: _OUTDATED,
    },
    body=_CHANGED,
)
def replace_inventory(services: Services, request: Request) -> Response:
    """Replace the inventory of one resource class, which must exist."""
    body = _parsed(services, request, _CHANGED)
    found = services.write(
        request,
        inventories.replace_inventory,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        parse_inventory(request.parameters["resource_class"], body),
        may_reserve_all=request.at_least(1, 26),
    )
    return cached_json(request, _one(found), now())


@Route(
    "DELETE",
    "/resource_providers/{uuid}/inventories/{resource_class}",
    rule="placement:resource_providers:inventories:delete",
    successes={204: Success("The inventory is gone.")},
    refusals={
        404: _NONE,
        409: "A consumer holds resources of the class.",
    },
)
def delete_inventory(services: Services, request: Request) -> Response:
    """Delete the inventory of one resource class."""
    services.write(
        request,
        inventories.delete_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    return no_content()


@Route(
    "DELETE",
    "/resource_providers/{uuid}/inventories",
    rule="placement:resource_providers:inventories:delete",
    since=Microversion(1, 5),
    unknown_status=405,
    successes={204: Success("The inventories are gone.")},
    refusals={
        405: "The version has no such method: it begins with 1.5.",
        409: "A consumer holds resources of the provider.",
    },
)
def delete_inventories(services: Services, request: Request) -> Response:
    """Delete all inventories of the provider, of which no consumer holds anything."""
    services.write(request, inventories.delete_inventories, request.parameters["uuid"])
    return no_content()


@Route(
    "GET",
    "/resource_providers/{uuid}/usages",
    rule="placement:resource_providers:usages",
    tag="Resource providers",
    summary="Show what is used of a provider",
    successes={200: Success("The usages.", _USAGES, CACHED)},
)
def show_provider_usages(services: Services, request: Request) -> Response:
    """The amounts that consumers hold of the provider."""
    generation, used = services.read(inventories.list_provider_usages, request.parameters["uuid"])
    body = {"resource_provider_generation": generation, "usages": used}
    return cached_json(request, body, now())


ROUTES = routes_of(
    "Inventories",
    list_inventories,
    create_inventory,
    replace_inventories,
    delete_inventories,
    show_inventory,
    replace_inventory,
    delete_inventory,
    show_provider_usages,
)
