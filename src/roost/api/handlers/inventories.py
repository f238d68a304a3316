"""`/resource_providers/{uuid}/inventories`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.api.limits import check_provider_members
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
from roost.api.validation import parse_body
from roost.model.inventory import Inventory
from roost.service import inventories, providers
from roost.service.inventories import ProviderInventories

_INTEGERS = ("total", "reserved", "min_unit", "max_unit", "step_size")


def parse_inventory(resource_class: str, body: Mapping[str, Any]) -> Inventory:
    """An inventory from a validated body; what is left out gets its default."""
    # JSON does not tell 10.0 from 10, so whole numbers may arrive as floats.
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


def _body(request: Request, schema: Any) -> Any:
    """The body; the provider's existence is told before the body is looked at."""
    request.read(providers.get_provider, request.parameters["uuid"])
    return parse_body(request.body(), schema.at(request.version))


def list_all(request: Request) -> Response:
    """All inventories."""
    found = request.read(inventories.list_inventories, request.parameters["uuid"])
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return with_cache_headers(json_response(_all(found)), request, modified_at)


def show(request: Request) -> Response:
    """One inventory."""
    found = request.read(
        inventories.get_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    modified_at = newest(inventory.modified_at for inventory in found.inventories.values())
    return with_cache_headers(json_response(_one(found)), request, modified_at)


def create(request: Request) -> Response:
    """Add one inventory."""
    uuid = request.parameters["uuid"]
    body = _body(request, schemas.ADD)
    name = body["resource_class"]
    found = request.write(
        inventories.add_inventory,
        uuid,
        parse_inventory(name, body),
        may_reserve_all=request.at_least(1, 26),
    )
    response = with_cache_headers(json_response(_one(found), 201), request, now())
    return with_location(response, request, f"/resource_providers/{uuid}/inventories/{name}")


def replace_all(request: Request) -> Response:
    """Replace all inventories."""
    body = _body(request, schemas.REPLACE_ALL)
    check_provider_members(request, len(body["inventories"]), "inventories")
    found = request.write(
        inventories.replace_inventories,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        [parse_inventory(name, record) for name, record in body["inventories"].items()],
        may_reserve_all=request.at_least(1, 26),
    )
    return with_cache_headers(json_response(_all(found)), request, now())


def replace_one(request: Request) -> Response:
    """Change one inventory."""
    body = _body(request, schemas.REPLACE_ONE)
    found = request.write(
        inventories.replace_inventory,
        request.parameters["uuid"],
        body["resource_provider_generation"],
        parse_inventory(request.parameters["resource_class"], body),
        may_reserve_all=request.at_least(1, 26),
    )
    return with_cache_headers(json_response(_one(found)), request, now())


def delete_one(request: Request) -> Response:
    """Take one inventory away."""
    request.write(
        inventories.delete_inventory,
        request.parameters["uuid"],
        request.parameters["resource_class"],
    )
    return no_content()


def delete_all(request: Request) -> Response:
    """Take all inventories away."""
    request.write(inventories.delete_inventories, request.parameters["uuid"])
    return no_content()


def usages(request: Request) -> Response:
    """How much of each inventory is in use."""
    generation, used = request.read(inventories.list_usages, request.parameters["uuid"])
    body = {"resource_provider_generation": generation, "usages": used}
    return with_cache_headers(json_response(body), request, now())
