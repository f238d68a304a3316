"""Reshape: move inventories together with what is allocated from them, as one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.consumers import Claim
from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.service.claims import check_providers_exist, prepare_claims, settle_claims
from roost.service.errors import Conflict, ErrorCode, Invalid, UnknownResourceClass
from roost.service.inventories import hold_classes, unused_class_ids
from roost.store import inventories, providers
from roost.store.errors import Retry


@dataclass(frozen=True, slots=True)
class NewInventories:
    """The whole new inventory of a provider whose generation the client has seen."""

    generation: int
    inventories: Sequence[Inventory]


def reshape(
    connection: Connection, wanted: Mapping[str, NewInventories], claims: Sequence[Claim]
) -> None:
    """Give the providers exactly these inventories and the consumers exactly these allocations.

    New and changed inventories are written before the claims are checked, old ones are removed
    after: so what is allocated can follow its inventory to another provider.
    """
    seen = {uuid: _provider_at(connection, uuid, new.generation) for uuid, new in wanted.items()}
    prepared = prepare_claims(connection, claims)
    stored = {provider.uuid for provider in seen.values()}
    locked = providers.lock_providers(connection, sorted(prepared.provider_uuids | stored))
    for provider in seen.values():
        if provider.uuid not in locked or locked[provider.uuid][1] != provider.generation:
            raise Retry
    provider_ids = {uuid: id_ for uuid, (id_, _) in locked.items()}
    check_providers_exist(claims, provider_ids)
    try:
        stale = {
            uuid: _write(connection, provider, wanted[uuid].inventories)
            for uuid, provider in seen.items()
        }
        settle_claims(connection, prepared, provider_ids)
    except UnknownResourceClass as unknown:
        raise Invalid(f"malformed reshaper data: {unknown.message}") from None
    for uuid, provider in seen.items():
        removed = unused_class_ids(connection, provider, stale[uuid], prefix="update conflict: ")
        if removed:
            inventories.change_inventories(connection, provider, removed=removed)
        # As in the reference: one step for the interim inventories, one for the final ones.
        steps = 2 if wanted[uuid].inventories else 1
        providers.increment_generations(connection, [provider.id], by=steps)


def _provider_at(connection: Connection, uuid: str, generation: int) -> Provider:
    provider = providers.find_provider(connection, uuid)
    if provider is None:
        raise Invalid(
            f"Resource provider {uuid} in inventories not found: No resource provider with uuid "
            f"{uuid} found",
            ErrorCode.PROVIDER_NOT_FOUND,
        )
    if provider.generation != generation:
        raise Conflict(
            f"resource provider generation conflict for provider {uuid}: actual: "
            f"{provider.generation}, given: {generation}",
            ErrorCode.CONCURRENT_UPDATE,
        )
    return provider


def _write(connection: Connection, provider: Provider, wanted: Sequence[Inventory]) -> set[str]:
    """Write the new inventories; the classes whose old inventory is to go."""
    class_ids = hold_classes(connection, [inventory.resource_class for inventory in wanted])
    present = inventories.list_inventories(connection, provider.id)
    inventories.change_inventories(
        connection, provider, wanted=wanted, class_ids=class_ids, present=present
    )
    return set(present) - class_ids.keys()
