"""Reshape: move inventories together with their allocations, as one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roost.model.consumers import Claim
from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.service.errors import Conflict, ConflictCause, ErrorCode, Invalid, UnknownResourceClass
from roost.service.tables.claims import (
    check_providers_exist,
    prepare_claims,
    scope_of,
    settle_claims,
)
from roost.service.tables.inventories import check_unused, hold_classes
from roost.store.connections.errors import Retry
from roost.store.rows import inventories, providers
from roost.store.rows.claims import lock_rows, read_inventories
from roost.store.rows.inventories import InventoryKey
from roost.store.rows.providers import SeenProvider
from roost.store.transaction import Finished, Transaction


@dataclass(frozen=True, slots=True)
class NewInventories:
    """All new inventories of a provider, and the generation that the client has seen."""

    generation: int
    inventories: Sequence[Inventory]


def reshape(
    transaction: Transaction, wanted: Mapping[str, NewInventories], claims: Sequence[Claim]
) -> Finished[None]:
    """Give the providers exactly these inventories and the consumers exactly these allocations.

    New and changed inventories are written before the claims are checked, and old inventories are
    removed afterwards. So allocations can follow their inventory to another provider.
    """
    seen = _seen_providers(transaction, wanted)
    stored = {provider.uuid for provider in seen.values()}
    scope = scope_of(claims)
    locked = lock_rows(transaction, scope, stored)
    prepared = prepare_claims(claims, scope, locked)
    for provider in seen.values():
        found = locked.providers.get(provider.uuid)
        if found is None or found[1] != provider.generation:
            raise Retry
    check_providers_exist(claims, locked)
    new_by_id = {provider.id: wanted[uuid].inventories for uuid, provider in seen.items()}
    names = {provider.id: provider.uuid for provider in seen.values()}
    try:
        rows = _rows(transaction, new_by_id)
        present = inventories.present_inventories(transaction, names)
        inventories.change_inventories(transaction, names.items(), wanted=rows, present=present)
        settle_claims(transaction, prepared, read_inventories(transaction, scope, locked))
    except UnknownResourceClass as unknown:
        raise Invalid(f"malformed reshaper data: {unknown.message}") from None
    removed = present.keys() - rows.keys()
    check_unused(transaction, names, removed, prefix="update conflict: ")
    if removed:
        inventories.change_inventories(transaction, (), present=present, removed=removed)
    # The reference increments once for the interim inventories and once for the final inventories.
    emptied = [id_ for id_, new in new_by_id.items() if not new]
    providers.increment_generations(transaction, sorted(new_by_id.keys() - set(emptied)), by=2)
    providers.increment_generations(transaction, sorted(emptied))
    return transaction.finish()


def _seen_providers(
    transaction: Transaction, wanted: Mapping[str, NewInventories]
) -> dict[str, Provider | SeenProvider]:
    """The providers by the uuids of the request; a generation that has changed is a conflict."""
    connection = transaction.connection
    found = providers.find_generations(connection, wanted)
    seen: dict[str, Provider | SeenProvider] = {}
    for uuid, new in wanted.items():
        # MySQL's usual collations also find a provider by its uuid in capitals.
        provider = found.get(uuid) or providers.find_provider(connection, uuid)
        if provider is None:
            raise Invalid(
                f"Resource provider {uuid} in inventories not found: No resource provider with "
                f"uuid {uuid} found",
                ErrorCode.PROVIDER_NOT_FOUND,
            )
        if provider.generation != new.generation:
            raise Conflict(
                f"resource provider generation conflict for provider {uuid}: actual: "
                f"{provider.generation}, given: {new.generation}",
                ErrorCode.CONCURRENT_UPDATE,
                ConflictCause.PROVIDER_GENERATION,
            )
        seen[uuid] = provider
    return seen


def _rows(
    transaction: Transaction, wanted: Mapping[int, Sequence[Inventory]]
) -> dict[InventoryKey, Inventory]:
    """The inventories by the ids of their provider and class; the classes are locked."""
    names = dict.fromkeys(item.resource_class for new in wanted.values() for item in new)
    class_ids = hold_classes(transaction, names)
    return {
        (provider_id, class_ids[item.resource_class]): item
        for provider_id, new in wanted.items()
        for item in new
    }
