"""Inventories: what each provider has to give, and how much of it is in use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.store.clock import utc_now
from roost.store.journal import ChangeKind, record_changes
from roost.store.tables import allocations, inventories, resource_classes

_INVENTORIES = (
    select(
        resource_classes.c.name,
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.min_unit,
        inventories.c.max_unit,
        inventories.c.step_size,
        inventories.c.allocation_ratio,
        func.coalesce(inventories.c.updated_at, inventories.c.created_at),
    )
    .select_from(
        inventories.join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    )
    .where(inventories.c.resource_provider_id == bindparam("provider_id"))
    .order_by(inventories.c.resource_class_id)
)
_ALLOCATED_CLASSES = (
    select(resource_classes.c.name)
    .distinct()
    .select_from(
        allocations.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    )
    .where(allocations.c.resource_provider_id == bindparam("provider_id"))
)
_USAGES = (
    select(
        resource_classes.c.name,
        func.coalesce(func.sum(allocations.c.used), 0).label("used"),
    )
    .select_from(
        inventories.join(
            resource_classes, resource_classes.c.id == inventories.c.resource_class_id
        ).outerjoin(
            allocations,
            (allocations.c.resource_provider_id == inventories.c.resource_provider_id)
            & (allocations.c.resource_class_id == inventories.c.resource_class_id),
        )
    )
    .where(inventories.c.resource_provider_id == bindparam("provider_id"))
    .group_by(inventories.c.resource_class_id, resource_classes.c.name)
    .order_by(inventories.c.resource_class_id)
)
_UPDATE = (
    update(inventories)
    .where(
        inventories.c.resource_provider_id == bindparam("_resource_provider_id"),
        inventories.c.resource_class_id == bindparam("_resource_class_id"),
    )
    .values(
        updated_at=bindparam("now"),
        **{
            name: bindparam(f"_{name}")
            for name in (
                "total",
                "reserved",
                "min_unit",
                "max_unit",
                "step_size",
                "allocation_ratio",
            )
        },
    )
)


def list_inventories(connection: Connection, provider_id: int) -> dict[str, Inventory]:
    """The provider's inventories by class, in the order of the classes' ids."""
    rows = connection.execute(_INVENTORIES, {"provider_id": provider_id})
    return {row.name: Inventory(*row) for row in rows}


def usages(connection: Connection, provider_id: int) -> dict[str, int]:
    """How much of each inventory of the provider is in use, 0 included."""
    rows = connection.execute(_USAGES, {"provider_id": provider_id})
    return {name: int(used) for name, used in rows}


def allocated_classes(connection: Connection, provider_id: int) -> set[str]:
    """The classes of which somebody holds something on this provider."""
    return set(connection.execute(_ALLOCATED_CLASSES, {"provider_id": provider_id}).scalars())


def change_inventories(
    connection: Connection,
    provider: Provider,
    *,
    wanted: Collection[Inventory] = (),
    class_ids: Mapping[str, int] | None = None,
    present: Collection[str] = (),
    removed: Collection[int] = (),
) -> None:
    """Write and remove inventories of a locked provider.

    Of the `wanted` ones those whose class is `present` are updated, the others inserted;
    `class_ids` has the ids of their classes. `removed` are ids of classes.
    """
    now = utc_now()
    rows = {
        inventory.resource_class: _values(provider.id, class_ids or {}, inventory)
        for inventory in wanted
    }
    new = [{"created_at": now, **row} for name, row in rows.items() if name not in present]
    changed = [
        {"now": now} | {f"_{column}": value for column, value in row.items()}
        for name, row in rows.items()
        if name in present
    ]
    if removed:
        connection.execute(
            delete(inventories).where(
                inventories.c.resource_provider_id == provider.id,
                inventories.c.resource_class_id.in_(list(removed)),
            )
        )
    if changed:
        connection.execute(_UPDATE, changed)
    if new:
        connection.execute(insert(inventories), new)
    record_changes(connection, ChangeKind.INVENTORIES, [(provider.id, provider.uuid)])


def _values(provider_id: int, class_ids: Mapping[str, int], inventory: Inventory) -> dict[str, Any]:
    return {
        "resource_provider_id": provider_id,
        "resource_class_id": class_ids[inventory.resource_class],
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }
