"""Inventories of a provider: show, add, replace and remove them; show their usages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.service.errors import (
    Conflict,
    ConflictCause,
    ErrorCode,
    Invalid,
    NotFound,
    UnknownResourceClass,
    provider_not_found,
)
from roost.service.tables.providers import get_locked_provider
from roost.store.rows import inventories, providers, vocabulary
from roost.store.rows.inventories import InventoryKey
from roost.store.transaction import Finished, Transaction


@dataclass(frozen=True, slots=True)
class ProviderInventories:
    """Inventories by class, and the generation of their provider."""

    generation: int
    inventories: Mapping[str, Inventory]


def list_inventories(connection: Connection, uuid: str) -> ProviderInventories:
    """All inventories of the provider."""
    found = inventories.provider_inventories(connection, uuid)
    if found is None:
        raise provider_not_found(uuid)
    return ProviderInventories(*found)


def get_inventory(connection: Connection, uuid: str, resource_class: str) -> ProviderInventories:
    """One inventory of the provider."""
    found = list_inventories(connection, uuid)
    if resource_class not in found.inventories:
        raise NotFound(f"No inventory of class {resource_class} for {uuid}")
    return ProviderInventories(
        found.generation, {resource_class: found.inventories[resource_class]}
    )


def add_inventory(
    transaction: Transaction, uuid: str, inventory: Inventory, may_reserve_all: bool
) -> Finished[ProviderInventories]:
    """Add an inventory of a class that the provider does not have yet."""
    provider = get_locked_provider(transaction, uuid)
    prefix = f"Unable to create inventory for resource provider {uuid}: "
    _check_reserved(provider, [inventory], may_reserve_all, prefix)
    try:
        class_ids = hold_classes(transaction, [inventory.resource_class])
    except UnknownResourceClass as unknown:
        raise Invalid(prefix + unknown.message) from None
    wanted = _by_key(provider, [inventory], class_ids)
    present = inventories.present_inventories(transaction, [provider.id])
    if wanted.keys() & present.keys():
        raise Conflict(
            f"Update conflict: resource provider {uuid} already has inventory of class "
            f"{inventory.resource_class}; change it with PUT.",
            ErrorCode.CONCURRENT_UPDATE,
            ConflictCause.EXISTS,
        )
    return transaction.finish(_change(transaction, provider, wanted, present))


def replace_inventories(
    transaction: Transaction,
    uuid: str,
    generation: int,
    wanted: Collection[Inventory],
    may_reserve_all: bool,
) -> Finished[ProviderInventories]:
    """Give the provider exactly these inventories."""
    provider = get_locked_provider(transaction, uuid)
    _check_generation(provider, generation)
    _check_reserved(
        provider,
        wanted,
        may_reserve_all,
        f"Unable to update inventory for resource provider {uuid}: ",
    )
    try:
        class_ids = hold_classes(transaction, [inventory.resource_class for inventory in wanted])
    except UnknownResourceClass as unknown:
        raise Invalid(
            f"Unknown resource class in inventory for resource provider {uuid}: {unknown.message}"
        ) from None
    new = _by_key(provider, wanted, class_ids)
    present = inventories.present_inventories(transaction, [provider.id])
    removed = present.keys() - new.keys()
    check_unused(transaction, {provider.id: provider.uuid}, removed, prefix="update conflict: ")
    return transaction.finish(_change(transaction, provider, new, present, removed))


def replace_inventory(
    transaction: Transaction,
    uuid: str,
    generation: int,
    inventory: Inventory,
    may_reserve_all: bool,
) -> Finished[ProviderInventories]:
    """Change one inventory that the provider has."""
    provider = get_locked_provider(transaction, uuid)
    _check_generation(provider, generation)
    prefix = f"Unable to update inventory for resource provider {uuid}: "
    _check_reserved(provider, [inventory], may_reserve_all, prefix)
    name = inventory.resource_class
    class_ids = vocabulary.hold_resource_classes(transaction, [name])
    if name not in class_ids:
        raise NotFound(f"No such resource class {name}")
    wanted = _by_key(provider, [inventory], class_ids)
    present = inventories.present_inventories(transaction, [provider.id])
    if not wanted.keys() & present.keys():
        raise Invalid(
            f"No inventory record with resource class for resource provider {uuid} and class "
            f"{name}: add it with POST."
        )
    return transaction.finish(_change(transaction, provider, wanted, present))


def delete_inventory(transaction: Transaction, uuid: str, resource_class: str) -> Finished[None]:
    """Remove one inventory without allocations."""
    provider = get_locked_provider(transaction, uuid)
    missing = f"No inventory of class {resource_class} found for delete"
    found = vocabulary.find_resource_class(transaction.connection, resource_class)
    if found is None:
        raise NotFound(f"{missing}: No such resource class {resource_class}.")
    present = inventories.present_inventories(transaction, [provider.id])
    removed = {(provider.id, found.id)}
    if not removed & present.keys():
        raise NotFound(missing)
    check_unused(
        transaction,
        {provider.id: provider.uuid},
        removed,
        prefix=f"Unable to delete inventory of class {resource_class}: ",
        # The reference sends this code here, and clients may match on it.
        code=ErrorCode.CONCURRENT_UPDATE,
    )
    _change(transaction, provider, {}, present, removed)
    return transaction.finish()


def delete_inventories(transaction: Transaction, uuid: str) -> Finished[None]:
    """Remove all inventories, if no consumer has an allocation from any."""
    provider = get_locked_provider(transaction, uuid)
    present = inventories.present_inventories(transaction, [provider.id])
    check_unused(transaction, {provider.id: provider.uuid}, present.keys(), prefix="")
    _change(transaction, provider, {}, present, present)
    return transaction.finish()


def list_provider_usages(connection: Connection, uuid: str) -> tuple[int, Mapping[str, int]]:
    """The provider's generation, and how much of each of its classes is in use."""
    found = inventories.provider_usages(connection, uuid)
    if found is None:
        raise provider_not_found(uuid)
    return found


def hold_classes(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """The ids of these classes. No other transaction deletes them before this one ends."""
    wanted = list(names)
    class_ids = vocabulary.hold_resource_classes(transaction, wanted)
    for name in wanted:
        if name not in class_ids:
            raise UnknownResourceClass(name)
    return class_ids


def check_unused(
    transaction: Transaction,
    provider_uuids: Mapping[int, str],
    removed: Collection[InventoryKey],
    prefix: str,
    code: ErrorCode = ErrorCode.INVENTORY_IN_USE,
) -> None:
    """Refuse to remove inventories that have allocations; their providers are locked.

    `provider_uuids` has the uuids by id. The error names the first provider with such an inventory.
    """
    if not removed:
        return
    losing = {provider_id for provider_id, _ in removed}
    in_use = inventories.allocated_classes(transaction, losing) & set(removed)
    if not in_use:
        return
    blocked = {provider_id for provider_id, _ in in_use}
    first = next(id_ for id_ in provider_uuids if id_ in blocked)
    names = {
        found.id: found.name for found in vocabulary.list_resource_classes(transaction.connection)
    }
    class_ids = sorted(class_id for provider_id, class_id in in_use if provider_id == first)
    listed = ", ".join(names.get(id_, str(id_)) for id_ in class_ids)
    raise Conflict(
        f"{prefix}Inventory for '{listed}' on resource provider '{provider_uuids[first]}' in use.",
        code,
        ConflictCause.IN_USE,
    )


def _check_generation(provider: Provider, generation: int) -> None:
    if provider.generation != generation:
        raise Conflict(
            f"resource provider generation conflict: provider {provider.uuid} is at generation "
            f"{provider.generation}, the request was made for {generation}. Read it again, then "
            "repeat the change.",
            ErrorCode.CONCURRENT_UPDATE,
            ConflictCause.PROVIDER_GENERATION,
        )


def _check_reserved(
    provider: Provider, wanted: Iterable[Inventory], may_reserve_all: bool, prefix: str
) -> None:
    """Refuse inventories without capacity.

    Only the integer part of the capacity counts, so `reserved` may be a little above `total`.
    """
    for inventory in wanted:
        capacity = int(inventory.capacity)
        if capacity < 0 or (capacity == 0 and not may_reserve_all):
            relation = "greater than" if may_reserve_all else "greater than or equal to"
            raise Invalid(
                f"{prefix}Invalid inventory for '{inventory.resource_class}' on resource provider "
                f"'{provider.uuid}'. The reserved value is {relation} total."
            )


def _by_key(
    provider: Provider, wanted: Iterable[Inventory], class_ids: Mapping[str, int]
) -> dict[InventoryKey, Inventory]:
    return {(provider.id, class_ids[item.resource_class]): item for item in wanted}


def _change(
    transaction: Transaction,
    provider: Provider,
    wanted: Mapping[InventoryKey, Inventory],
    present: Mapping[InventoryKey, int],
    removed: Iterable[InventoryKey] = (),
) -> ProviderInventories:
    inventories.change_inventories(
        transaction,
        [(provider.id, provider.uuid)],
        wanted=wanted,
        present=present,
        removed=removed,
    )
    providers.increment_generations(transaction, [provider.id])
    return ProviderInventories(
        provider.generation + 1,
        {inventory.resource_class: inventory for inventory in wanted.values()},
    )
