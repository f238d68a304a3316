"""`/resource_providers/{uuid}/inventories`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from roost.api.schemas import inventories as schemas
from roost.api.services import Services
from roost.api.validation import check_provider_members, parse_body
from roost.model.inventory import Inventory
from roost.service import inventories, providers
from roost.service.inventories import ProviderInventories

_INTEGERS = ("total", "reserved", "min_unit", "max_unit", "step_size")


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


def _body(services: Services, request: Request, schema: Any) -> Any:
    """The body. A missing provider is an error before a wrong body is."""
    services.read(providers.get_provider, request.parameters["uuid"])
    return parse_body(request.body(), schema.at(request.version))


def list_all(services: Services, request: Request) -> Response:
    """All inventories."""
    found = services.read(inventories.list_inventories, request.parameters["uuid"])
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return with_cache_headers(json_response(_all(found)), request, modified_at)


def show(services: Services, request: Request) -> Response:
    """One inventory."""
    found = services.read(
        inventories.get_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return with_cache_headers(json_response(_one(found)), request, modified_at)


def create(services: Services, request: Request) -> Response:
    """Add one inventory."""
    uuid = request.parameters["uuid"]
    body = _body(services, request, schemas.ADD)
    name = body["resource_class"]
    found = services.write(
        request,
        inventories.add_inventory,
        uuid,
        parse_inventory(name, body),
        may_reserve_all=request.at_least(1, 26),
    )
    response = with_cache_headers(json_response(_one(found), 201), request, now())
    return with_location(response, request, f"/resource_providers/{uuid}/inventories/{name}")


def replace_all(services: Services, request: Request) -> Response:
    """Replace all inventories."""
    body = _body(services, request, schemas.REPLACE_ALL)
    check_provider_members(services.settings.limits, len(body["inventories"]), "inventories")
    found = services.write(
        request,
        inventories.replace_inventories,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        [parse_inventory(name, record) for name, record in body["inventories"].items()],
        may_reserve_all=request.at_least(1, 26),
    )
    return with_cache_headers(json_response(_all(found)), request, now())


def replace_one(services: Services, request: Request) -> Response:
    """Change one inventory."""
    body = _body(services, request, schemas.REPLACE_ONE)
    found = services.write(
        request,
        inventories.replace_inventory,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        parse_inventory(request.parameters["resource_class"], body),
        may_reserve_all=request.at_least(1, 26),
    )
    return with_cache_headers(json_response(_one(found)), request, now())


def delete_one(services: Services, request: Request) -> Response:
    """Delete one inventory."""
    services.write(
        request,
        inventories.delete_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    return no_content()


def delete_all(services: Services, request: Request) -> Response:
    """Delete all inventories."""
    services.write(request, inventories.delete_inventories, request.parameters["uuid"])
    return no_content()


def usages(services: Services, request: Request) -> Response:
    """The used amount of each inventory."""
    generation, used = services.read(inventories.list_provider_usages, request.parameters["uuid"])
    body = {"resource_provider_generation": generation, "usages": used}
    return with_cache_headers(json_response(body), request, now())
