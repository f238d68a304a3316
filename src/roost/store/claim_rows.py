"""The rows that decide about claims, locked and read in as few round trips as possible."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.identifiers import uuid_spellings
from roost.store import allocations, consumers, providers
from roost.store.allocations import AllocationRow, InventoryUsages
from roost.store.batches import Rows, fetch_groups
from roost.store.consumers import ConsumerRow, Names, WantedNames
from roost.store.errors import Retry


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """What claims name."""

    consumers: Sequence[str]
    provider_uuids: Collection[str]
    names: WantedNames
    # Whether consumers are expected to hold allocations, from providers that the claims may not
    # name. If none is expected, one round trip suffices.
    replaces: bool


@dataclass(frozen=True, slots=True)
class LockedRows:
    """The rows of consumers and providers, which no other transaction can change.

    `providers` has (id, generation) by uuid: the providers that the claims name, and all of which
    a consumer holds allocations.
    """

    names: Names
    consumers: list[ConsumerRow]
    held: list[AllocationRow]
    providers: dict[str, tuple[int, int]]


def lock_rows(
    connection: Connection, scope: ClaimScope, more_providers: Collection[str] = ()
) -> LockedRows:
    """Lock consumers, then their providers and those of the scope, in two round trips."""
    names, found, held = _lock_consumers(connection, scope)
    wanted = {*scope.provider_uuids, *more_providers, *_providers_of(held)}
    return LockedRows(names, found, held, providers.lock_providers(connection, sorted(wanted)))


def lock_and_read(connection: Connection, scope: ClaimScope) -> tuple[LockedRows, InventoryUsages]:
    """Lock all rows of the claims, then read inventories and usages under the locks."""
    if not scope.replaces:
        return _lock_and_read_at_once(connection, scope)
    names, found, held = _lock_consumers(connection, scope)
    uuids = sorted({*scope.provider_uuids, *_providers_of(held)})
    locked, inventories = fetch_groups(
        connection,
        providers.locking_providers(connection, uuids),
        allocations.reading_inventories(connection, uuids, _classes(scope, held)),
    )
    rows = LockedRows(names, found, held, providers.locked_providers(locked))
    return rows, _checked(allocations.found_inventories(inventories), names)


def read_inventories(
    connection: Connection, scope: ClaimScope, rows: LockedRows
) -> InventoryUsages:
    """Read the inventories and usages of locked providers."""
    classes = _classes(scope, rows.held)
    (found,) = fetch_groups(
        connection, allocations.reading_inventories(connection, rows.providers, classes)
    )
    return _checked(allocations.found_inventories(found), rows.names)


def _lock_consumers(
    connection: Connection, scope: ClaimScope
) -> tuple[Names, list[ConsumerRow], list[AllocationRow]]:
    names, found, held = fetch_groups(
        connection,
        consumers.looking_up_names(connection, scope.names),
        consumers.locking_consumers(connection, scope.consumers),
        allocations.reading_allocations(connection, _spellings(scope)),
    )
    rows = consumers.locked_consumers(found)
    return consumers.found_names(names), rows, _held(held, rows)


def _lock_and_read_at_once(
    connection: Connection, scope: ClaimScope
) -> tuple[LockedRows, InventoryUsages]:
    uuids = sorted(scope.provider_uuids)
    name_rows, consumer_rows, held_rows, provider_rows, inventory_rows = fetch_groups(
        connection,
        consumers.looking_up_names(connection, scope.names),
        consumers.locking_consumers(connection, scope.consumers),
        allocations.reading_allocations(connection, _spellings(scope)),
        providers.locking_providers(connection, uuids),
        allocations.reading_inventories(connection, uuids, scope.names.classes),
    )
    names = consumers.found_names(name_rows)
    found = consumers.locked_consumers(consumer_rows)
    held = _held(held_rows, found)
    locked = providers.locked_providers(provider_rows)
    inventories = allocations.found_inventories(inventory_rows)
    late = _providers_of(held) - locked.keys()
    if late:
        # These locks are out of order. If two transactions wait for each other, the database ends
        # one, which runs again. That is rare: clients that replace allocations usually say so.
        more_rows, more_inventories = fetch_groups(
            connection,
            providers.locking_providers(connection, sorted(late)),
            allocations.reading_inventories(connection, sorted(late), _classes(scope, held)),
        )
        locked |= providers.locked_providers(more_rows)
        inventories |= allocations.found_inventories(more_inventories)
    rows = LockedRows(names, found, held, locked)
    return rows, _checked(inventories, names)


def _held(rows: Rows, found: Sequence[ConsumerRow]) -> list[AllocationRow]:
    """The allocations of consumers that exist, as MySQL compares their uuids."""
    uuids = {row.uuid.lower() for row in found}
    held = allocations.found_allocations(rows)
    return [row for row in held if row.consumer_uuid.lower() in uuids]


def _checked(inventories: InventoryUsages, names: Names) -> InventoryUsages:
    """The inventories; `Retry` if a class was deleted and made again since its name was read."""
    for (_, class_id), found in inventories.items():
        if names.classes.get(found.inventory.resource_class, class_id) != class_id:
            raise Retry
    return inventories


def _spellings(scope: ClaimScope) -> list[str]:
    return [spelling for uuid in scope.consumers for spelling in uuid_spellings(uuid)]


def _providers_of(held: Sequence[AllocationRow]) -> set[str]:
    return {row.provider_uuid for row in held if row.provider_uuid is not None}


def _classes(scope: ClaimScope, held: Sequence[AllocationRow]) -> set[str]:
    return {row.resource_class for row in held if row.resource_class is not None}.union(
        scope.names.classes
    )
