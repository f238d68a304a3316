"""The answers of a fake server about allocations, and the reshape of providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from roost.client.claims.consumer_state import ResourcesByProvider
from roost.client.placement.answers import CONCURRENT_UPDATE, INVENTORY_IN_USE
from roost.client.testing import bodies
from roost.client.testing.cloud import (
    FakeCloud,
    FakeConsumer,
    FakeRefusal,
)
from roost.client.testing.fake_request import FakeRequest, uuid_in
from roost.client.testing.faults import json_answer
from roost.client.testing.provider_routes import (
    demand_capacity,
    demand_generation,
    new_inventories,
)
from roost.client.transport import PlacementResponse
from roost.model.identifiers import canonical_uuid
from roost.model.inventory import Inventory

InventoriesByProvider = Mapping[str, Mapping[str, Inventory]]
_ANY = object()
_NO_CONTENT = PlacementResponse(204)


# -- looking


def show_allocations(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """The allocations of a consumer; an unknown consumer has none."""
    consumer = cloud.consumers.get(uuid_in(uuid, "consumer_uuid"))
    if consumer is None:
        return json_answer({"allocations": {}})
    body: dict[str, Any] = {
        "allocations": {
            provider: {
                "resources": dict(amounts),
                "generation": cloud.providers[provider].generation,
            }
            for provider, amounts in consumer.holds.items()
        }
    }
    if request.minor >= 12:
        body |= {"project_id": consumer.project, "user_id": consumer.user}
    if request.minor >= 28:
        body["consumer_generation"] = consumer.generation
    if request.minor >= 38:
        body["consumer_type"] = consumer.type or "unknown"
    return json_answer(body)


def list_provider_allocations(
    cloud: FakeCloud, request: FakeRequest, uuid: str
) -> PlacementResponse:
    """The allocations of a provider, by consumer."""
    provider = cloud.provider(uuid)
    found = {
        consumer.uuid: {"resources": dict(consumer.holds[uuid])}
        | ({"consumer_generation": consumer.generation} if request.minor >= 28 else {})
        for consumer in cloud.holders(uuid)
    }
    return json_answer({"allocations": found, "resource_provider_generation": provider.generation})


# -- writing


def replace_allocations(cloud: FakeCloud, request: FakeRequest, uuid: str) -> PlacementResponse:
    """Replace the allocations of one consumer."""
    consumer = uuid_in(uuid, "consumer_uuid")
    body = request.valid(bodies.claim_schema(request.minor, may_be_empty=request.minor >= 28))
    _write(cloud, {consumer: body}, {})
    return _NO_CONTENT


def replace_several(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """Replace the allocations of several consumers in one step."""
    _write(cloud, request.valid(bodies.claims_schema(request.minor)), {})
    return _NO_CONTENT


def delete_allocations(cloud: FakeCloud, _request: FakeRequest, uuid: str) -> PlacementResponse:
    """Delete the allocations of a consumer."""
    if uuid not in cloud.consumers:
        raise FakeRefusal(404, f"No allocations for consumer '{uuid}'")
    del cloud.consumers[uuid]
    return _NO_CONTENT


def reshape(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """Replace inventories and allocations in one step."""
    body = request.valid(bodies.reshape_schema(request.minor))
    reshaped: dict[str, Mapping[str, Inventory]] = {}
    for uuid, entry in body["inventories"].items():
        if uuid not in cloud.providers:
            raise FakeRefusal(
                400,
                f"Resource provider {uuid} in inventories does not exist.",
                "placement.resource_provider.not_found",
            )
        demand_generation(cloud.providers[uuid], entry["resource_provider_generation"])
        reshaped[uuid] = new_inventories(entry["inventories"])
        demand_capacity(reshaped[uuid], request, f"Unable to reshape provider {uuid}: ")
        cloud.demand_classes(reshaped[uuid], "")
    _write(cloud, body["allocations"], reshaped)
    return _NO_CONTENT


def _write(
    cloud: FakeCloud, given: Mapping[str, Mapping[str, Any]], reshaped: InventoriesByProvider
) -> None:
    """Check everything, then write everything."""
    claims = {canonical_uuid(uuid): body for uuid, body in given.items()}
    holds = {uuid: _amounts(body) for uuid, body in claims.items()}
    for uuid, body in claims.items():
        _demand_consumer_generation(cloud, uuid, body.get("consumer_generation", _ANY))
    _demand_known(cloud, holds.values())
    inventories = {
        uuid: reshaped.get(uuid, provider.inventories) for uuid, provider in cloud.providers.items()
    }
    _demand_unused(cloud, reshaped, holds)
    _demand_room(cloud, inventories, holds)
    touched = {provider for amounts in holds.values() for provider in amounts}
    for uuid, amounts in holds.items():
        if not amounts and uuid in cloud.consumers:
            touched.update(cloud.consumers[uuid].holds)
    for uuid, wanted in reshaped.items():
        cloud.providers[uuid].inventories = dict(wanted)
        # Servers count the interim inventories and the final ones.
        cloud.providers[uuid].generation += 2 if wanted else 1
    for uuid in touched:
        cloud.providers[uuid].generation += 1
    for uuid, body in claims.items():
        _store(cloud, uuid, body, holds[uuid])


def _amounts(body: Mapping[str, Any]) -> ResourcesByProvider:
    return {
        canonical_uuid(uuid): dict(entry["resources"])
        for uuid, entry in body["allocations"].items()
    }


def _store(
    cloud: FakeCloud, uuid: str, body: Mapping[str, Any], holds: ResourcesByProvider
) -> None:
    before = cloud.consumers.pop(uuid, None)
    if holds:
        cloud.consumers[uuid] = FakeConsumer(
            uuid,
            body["project_id"],
            body["user_id"],
            # Before 1.38 a request says nothing of the type, and the consumer keeps it.
            body.get("consumer_type", before and before.type),
            1 if before is None else before.generation + 1,
            holds,
        )


# -- refusals


def _demand_consumer_generation(cloud: FakeCloud, uuid: str, generation: object) -> None:
    known = cloud.consumers.get(uuid)
    present = None if known is None else known.generation
    if generation is not _ANY and generation != present:
        expected = "null" if present is None else present
        raise FakeRefusal(
            409,
            f"consumer generation conflict - expected {expected} but got {generation}",
            CONCURRENT_UPDATE,
        )


def _demand_known(cloud: FakeCloud, holds: Iterable[ResourcesByProvider]) -> None:
    for amounts in holds:
        for uuid, resources in amounts.items():
            if uuid not in cloud.providers:
                raise FakeRefusal(
                    400, f"Allocation for resource provider '{uuid}' that does not exist."
                )
            cloud.demand_classes(resources, "Unable to allocate inventory: ")


def _demand_unused(
    cloud: FakeCloud, reshaped: InventoriesByProvider, holds: Mapping[str, ResourcesByProvider]
) -> None:
    """Refuse to remove inventories that a consumer would still hold."""
    for uuid, wanted in reshaped.items():
        used = cloud.used(uuid, without=holds)
        lost = set(cloud.providers[uuid].inventories) - set(wanted)
        if in_use := sorted(name for name in lost if used[name]):
            raise FakeRefusal(
                409,
                f"Inventory for '{', '.join(in_use)}' on resource provider '{uuid}' in use.",
                INVENTORY_IN_USE,
            )


def _demand_room(
    cloud: FakeCloud,
    inventories: InventoriesByProvider,
    holds: Mapping[str, ResourcesByProvider],
) -> None:
    """Refuse amounts that the inventories do not have, do not allow, or no longer have."""
    asked: Counter[tuple[str, str]] = Counter()
    for amounts in holds.values():
        for uuid, resources in amounts.items():
            asked.update({(uuid, name): amount for name, amount in resources.items()})
            for name, amount in resources.items():
                _demand_amount(uuid, inventories[uuid].get(name), name, amount)
    for (uuid, name), amount in asked.items():
        held = cloud.used(uuid)[name] - cloud.used(uuid, without=holds)[name]
        if amount > held and not inventories[uuid][name].fits(
            amount, cloud.used(uuid, without=holds)[name]
        ):
            _refuse_amount(uuid, name, "exceed the capacity")


def _demand_amount(uuid: str, inventory: Inventory | None, name: str, amount: int) -> None:
    if inventory is None:
        raise FakeRefusal(
            409,
            f"Unable to allocate inventory: Inventory for '{name}' on resource provider '{uuid}' "
            "invalid.",
        )
    if not inventory.allows(amount):
        _refuse_amount(uuid, name, "violate inventory constraints")


def _refuse_amount(uuid: str, name: str, would: str) -> None:
    raise FakeRefusal(
        409,
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on resource "
        f"provider '{uuid}'. The requested amount would {would}.",
    )
