"""The answers of a fake server about providers, and what each of them has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from roost.client.placement.answers import CONCURRENT_UPDATE, INVENTORY_IN_USE
from roost.client.testing import bodies
from roost.client.testing.cloud import FakeCloud, FakeProvider, FakeRefusal
from roost.client.testing.fake_request import FakeRequest, uuid_in
from roost.client.testing.faults import json_answer
from roost.client.transport import PlacementResponse
from roost.model.identifiers import canonical_uuid, new_uuid
from roost.model.inventory import DEFAULTS, Inventory

_SINCE = {"name": 0, "uuid": 0, "member_of": 3, "in_tree": 14, "required": 18}


def chosen_providers(cloud: FakeCloud, request: FakeRequest) -> list[FakeProvider]:
    """The providers that pass all filters."""
    found = list(cloud.providers.values())
    for key, values in request.query.items():
        if request.minor < _SINCE.get(key, 100):
            raise FakeRefusal(
                400, f"Invalid query string parameters: the fake server has no filter {key} here"
            )
        for value in values:
            found = [each for each in found if _passes(cloud, each, key, value)]
            if key == "required" and (unknown := _without_marks(value) - cloud.traits):
                raise FakeRefusal(400, f"No such trait(s): {', '.join(sorted(unknown))}.")
    return found


def _passes(cloud: FakeCloud, provider: FakeProvider, key: str, value: str) -> bool:
    if key == "name":
        return provider.name == value
    if key == "uuid":
        return provider.uuid == uuid_in(value, "uuid")
    if key == "in_tree":
        asked = cloud.providers.get(uuid_in(value, "in_tree"))
        return asked is not None and cloud.root_of(provider) == cloud.root_of(asked)
    if key == "member_of":
        return _has(provider.aggregates, value, all)
    return _has(provider.traits, value, all)


def _has(present: set[str], value: str, by_default: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether a provider has what a value asks for: `a,b` (all), `in:a,b` (one), `!a` (not)."""
    if value.startswith("!"):
        return not _has(present, value[1:], any)
    if value.startswith("in:"):
        return any(name in present for name in value[3:].split(","))
    names = value.split(",")
    wanted = [name for name in names if not name.startswith("!")]
    unwanted = {name[1:] for name in names if name.startswith("!")}
    return by_default(name in present for name in wanted) and not unwanted & present


def _without_marks(value: str) -> set[str]:
    return {name.removeprefix("!") for name in value.removeprefix("in:").split(",")}


_LINKS = {"inventories": 0, "usages": 0, "aggregates": 1, "traits": 6, "allocations": 11}
_NO_CONTENT = PlacementResponse(204)


# -- providers


def list_providers(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """The providers that pass the filters of the query."""
    found = chosen_providers(cloud, request)
    return json_answer({"resource_providers": [_body(cloud, each, request) for each in found]})


def show_provider(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """One provider."""
    return json_answer(_body(cloud, cloud.provider(uuid), request))


def create_provider(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """Create a provider."""
    body = request.valid(bodies.provider_schema(request.minor, creates=True))
    uuid, name = canonical_uuid(body.get("uuid") or new_uuid()), body["name"]
    parent = body.get("parent_provider_uuid")
    if parent is not None:
        parent = canonical_uuid(parent)
        _demand_parent(cloud, parent, f"Unable to create resource provider {name}")
    if uuid in cloud.providers:
        _refuse_duplicate(f"Conflicting resource provider uuid: {uuid} already exists.")
    if cloud.named(name):
        _refuse_duplicate(f"Conflicting resource provider name: {name} already exists.")
    created = cloud.providers[uuid] = FakeProvider(uuid, name, parent)
    headers = {"location": f"/resource_providers/{uuid}"}
    if request.minor < 20:
        return PlacementResponse(201, headers)
    return json_answer(_body(cloud, created, request), headers=headers)


def update_provider(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Rename a provider, or move it with all below it (from 1.37 on)."""
    provider = cloud.provider(uuid)
    body = request.valid(bodies.provider_schema(request.minor, creates=False))
    holder = cloud.named(body["name"])
    if holder not in (None, provider):
        _refuse_duplicate(f"Conflicting resource provider {body['name']} already exists.")
    if "parent_provider_uuid" in body:
        _move(cloud, provider, body["parent_provider_uuid"], request)
    provider.name = body["name"]
    return json_answer(_body(cloud, provider, request))


def delete_provider(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """Delete a provider that has neither children nor allocations."""
    provider = cloud.provider(uuid)
    if len(list(cloud.subtree(provider))) > 1:
        raise FakeRefusal(
            409,
            f"Unable to delete parent resource provider {uuid}: It has child resource providers.",
            "placement.resource_provider.cannot_delete_parent",
        )
    if any(cloud.holders(uuid)):
        raise FakeRefusal(
            409,
            f"Unable to delete resource provider {uuid}: Resource provider has allocations.",
            "placement.resource_provider.inuse",
        )
    del cloud.providers[uuid]
    return _NO_CONTENT


def _move(
    cloud: FakeCloud, provider: FakeProvider, parent: str | None, request: FakeRequest
) -> None:
    prefix = f"Unable to save resource provider {provider.uuid}"
    parent = parent and canonical_uuid(parent)
    if parent == provider.parent:
        return
    if parent is not None:
        _demand_parent(cloud, parent, prefix)
    if provider.parent is not None and request.minor < 37:
        raise FakeRefusal(400, f"{prefix}: re-parenting a provider needs microversion 1.37.")
    if parent in {below.uuid for below in cloud.subtree(provider)}:
        raise FakeRefusal(400, f"{prefix}: creating loop in the provider tree is not allowed.")
    provider.parent = parent


def _demand_parent(cloud: FakeCloud, parent: str, prefix: str) -> None:
    if parent not in cloud.providers:
        raise FakeRefusal(400, f"{prefix}: parent provider UUID does not exist. ({parent})")


def _refuse_duplicate(detail: str) -> None:
    raise FakeRefusal(409, detail, "placement.duplicate_name")


def _body(cloud: FakeCloud, provider: FakeProvider, request: FakeRequest) -> dict[str, Any]:
    path = f"/resource_providers/{provider.uuid}"
    parts = [part for part, since in _LINKS.items() if request.minor >= since]
    body: dict[str, Any] = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": [
            {"rel": "self", "href": path},
            *({"rel": part, "href": f"{path}/{part}"} for part in parts),
        ],
    }
    if request.minor >= 14:
        body["parent_provider_uuid"] = provider.parent
        body["root_provider_uuid"] = cloud.root_of(provider)
    return body


# -- inventories and usages


def list_inventories(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """All inventories of a provider."""
    return _inventories(cloud.provider(uuid))


def replace_inventories(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Give a provider exactly these inventories."""
    provider = cloud.provider(uuid)
    body = request.valid(bodies.INVENTORIES)
    demand_generation(provider, body["resource_provider_generation"])
    wanted = new_inventories(body["inventories"])
    prefix = f"Unable to update inventory for resource provider {uuid}: "
    demand_capacity(wanted, request, prefix)
    cloud.demand_classes(wanted, f"Unknown resource class in inventory for {uuid}: ")
    lost = [name for name in provider.inventories if name not in wanted]
    if in_use := [name for name in lost if cloud.used(uuid)[name]]:
        raise FakeRefusal(
            409,
            f"update conflict: Inventory for '{', '.join(in_use)}' on resource provider '{uuid}' "
            "in use.",
            INVENTORY_IN_USE,
        )
    provider.inventories = wanted
    provider.generation += 1
    return _inventories(provider)


def delete_inventories(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Remove all inventories of a provider."""
    generation = cloud.provider(uuid).generation
    body = {"resource_provider_generation": generation, "inventories": {}}
    replace_inventories(cloud, replace(request, body=body), uuid)
    return _NO_CONTENT


def show_usages(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """How much of each inventory consumers hold."""
    provider = cloud.provider(uuid)
    used = cloud.used(uuid)
    usages = {name: used[name] for name in provider.inventories}
    return json_answer({"resource_provider_generation": provider.generation, "usages": usages})


def new_inventories(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Inventory]:
    """Inventories of a valid body, with the defaults of missing fields."""
    return {name: Inventory(name, **fields) for name, fields in given.items()}


def demand_generation(provider: FakeProvider, generation: int) -> None:
    """Refuse a write that does not know the present state of a provider."""
    if generation != provider.generation:
        raise FakeRefusal(
            409,
            f"resource provider generation conflict: provider {provider.uuid} is at generation "
            f"{provider.generation}, the request was made for {generation}.",
            CONCURRENT_UPDATE,
        )


def demand_capacity(wanted: Mapping[str, Inventory], request: FakeRequest, prefix: str) -> None:
    """Refuse inventories that offer nothing; from 1.26 on, all may be reserved."""
    for name, inventory in wanted.items():
        left = inventory.total - inventory.reserved
        if left < 0 or (left == 0 and request.minor < 26):
            raise FakeRefusal(
                400, f"{prefix}Invalid inventory for '{name}': reserved value exceeds total."
            )


def _inventories(provider: FakeProvider) -> PlacementResponse:
    fields = ("total", *DEFAULTS)
    return json_answer(
        {
            "resource_provider_generation": provider.generation,
            "inventories": {
                name: {field: getattr(inventory, field) for field in fields}
                for name, inventory in provider.inventories.items()
            },
        }
    )


# -- aggregates and traits


def list_aggregates(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """The aggregates of a provider."""
    return _aggregates(cloud.provider(uuid), request)


def replace_aggregates(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Give a provider exactly these aggregates; before 1.19 its generation stays."""
    provider = cloud.provider(uuid)
    body = request.valid(bodies.aggregates_schema(request.minor))
    if request.minor < 19:
        provider.aggregates = set(map(canonical_uuid, body))
    else:
        demand_generation(provider, body["resource_provider_generation"])
        provider.aggregates = set(map(canonical_uuid, body["aggregates"]))
        provider.generation += 1
    return _aggregates(provider, request)


def _aggregates(provider: FakeProvider, request: FakeRequest) -> PlacementResponse:
    body: dict[str, Any] = {"aggregates": sorted(provider.aggregates)}
    if request.minor >= 19:
        body["resource_provider_generation"] = provider.generation
    return json_answer(body)


def list_provider_traits(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """The traits of a provider."""
    return _traits(cloud.provider(uuid))


def replace_provider_traits(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Give a provider exactly these traits."""
    body = request.valid(bodies.TRAITS)
    provider = cloud.provider(uuid)
    demand_generation(provider, body["resource_provider_generation"])
    if unknown := set(body["traits"]) - cloud.traits:
        raise FakeRefusal(400, f"No such trait {', '.join(sorted(unknown))}.")
    _set_traits(provider, set(body["traits"]))
    return _traits(provider)


def delete_provider_traits(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """Remove all traits of a provider."""
    _set_traits(cloud.provider(uuid), set())
    return _NO_CONTENT


def _set_traits(provider: FakeProvider, traits: set[str]) -> None:
    if traits != provider.traits:
        provider.traits = traits
        provider.generation += 1


def _traits(provider: FakeProvider) -> PlacementResponse:
    return json_answer(
        {
            "resource_provider_generation": provider.generation,
            "traits": sorted(provider.traits),
        }
    )
