"""Inventories of providers, and their usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, delete, func, literal_column, select

from roost.model.inventory import Inventory
from roost.store.journal.writing import ChangeKind, record_details
from roost.store.rows.providers import VISIBLE_PROVIDERS
from roost.store.statements import BoundStatement, InsertRows, Query, Statement, UpdateRows
from roost.store.tables import (
    allocations,
    inventories,
    resource_classes,
    resource_providers,
    stored_time,
)
from roost.store.transaction import Transaction

# The columns of an inventory, which are the fields of `Inventory`.
AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
AMOUNT_COLUMNS = [inventories.c[name] for name in AMOUNTS]
# The sum of the allocations of all consumers from an inventory.
USED = (
    select(func.coalesce(func.sum(allocations.c.used), literal_column("0")))
    .where(
        allocations.c.resource_provider_id == inventories.c.resource_provider_id,
        allocations.c.resource_class_id == inventories.c.resource_class_id,
    )
    .scalar_subquery()
)

# A provider without inventories has one row, whose inventory is null.
_WITH_CLASSES = VISIBLE_PROVIDERS.outerjoin(
    inventories, inventories.c.resource_provider_id == resource_providers.c.id
).outerjoin(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
_BY_UUID = (
    select(resource_providers.c.generation, resource_classes.c.name)
    .select_from(_WITH_CLASSES)
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(inventories.c.resource_class_id)
)
_INVENTORIES = Query(
    _BY_UUID.add_columns(
        *AMOUNT_COLUMNS, func.coalesce(inventories.c.updated_at, inventories.c.created_at)
    )
)
_USAGES = Query(_BY_UUID.add_columns(USED))
_PRESENT = Statement.among(
    inventories.c.resource_provider_id,
    select(inventories.c.resource_provider_id, inventories.c.resource_class_id, inventories.c.id),
)
_ALLOCATED = Statement.among(
    allocations.c.resource_provider_id,
    select(allocations.c.resource_provider_id, allocations.c.resource_class_id).distinct(),
)
_INSERT = InsertRows(inventories)
_UPDATE = UpdateRows(inventories, AMOUNTS, common=["updated_at"])
_DELETE = Statement.among(inventories.c.id, delete(inventories))

# Provider's id and resource class's id.
InventoryKey: TypeAlias = tuple[int, int]


def provider_inventories(
    connection: Connection, uuid: str
) -> tuple[int, dict[str, Inventory]] | None:
    """The provider's generation, and its inventories by class in the order of the classes' ids.

    One statement reads both, so that both are of one moment. `None` if there is no such provider.
    """
    rows = _INVENTORIES.fetch(connection, {"uuid": uuid})
    if not rows:
        return None
    return rows[0][0], {
        name: Inventory(name, *(*amounts, stored_time(modified_at)))
        for _, name, *amounts, modified_at in rows
        if name is not None
    }


def provider_usages(connection: Connection, uuid: str) -> tuple[int, dict[str, int]] | None:
    """The provider's generation, and the usage of each of its inventories, 0 included."""
    rows = _USAGES.fetch(connection, {"uuid": uuid})
    if not rows:
        return None
    return rows[0][0], {name: int(used) for _, name, used in rows if name is not None}


def present_inventories(
    transaction: Transaction, provider_ids: Iterable[int]
) -> dict[InventoryKey, int]:
    """The ids of the rows of all inventories of locked providers."""
    (rows,) = transaction.read(_PRESENT.bound_chunks(transaction, provider_ids))
    return {(provider_id, class_id): id_ for provider_id, class_id, id_ in rows}


def allocation_queries(
    transaction: Transaction, provider_ids: Iterable[int]
) -> list[BoundStatement]:
    """The queries for the classes of these providers of which there are allocations."""
    return _ALLOCATED.bound_chunks(transaction, provider_ids)


def allocated_classes(transaction: Transaction, provider_ids: Iterable[int]) -> set[InventoryKey]:
    """The classes of these providers of which there are allocations."""
    (rows,) = transaction.read(allocation_queries(transaction, provider_ids))
    return set(rows)


def change_inventories(
    transaction: Transaction,
    providers: Iterable[tuple[int, str]],
    *,
    wanted: Mapping[InventoryKey, Inventory] | None = None,
    present: Mapping[InventoryKey, int],
    removed: Iterable[InventoryKey] = (),
) -> None:
    """Write and delete inventories of locked providers, which are given as (id, uuid).

    A `wanted` inventory that is `present` is updated. Any other wanted inventory is inserted.
    """
    now, gone = transaction.now, list(removed)
    changed, new = [], []
    for key, inventory in (wanted or {}).items():
        values = {name: getattr(inventory, name) for name in AMOUNTS}
        if key in present:
            changed.append({"id": present[key], **values})
        else:
            ids = dict(zip(("resource_provider_id", "resource_class_id"), key, strict=True))
            new.append({"created_at": now, **ids, **values})
    transaction.write(
        [
            *_DELETE.bound_chunks(transaction, sorted(present[key] for key in gone)),
            *_UPDATE.bound(transaction, changed, {"updated_at": now}),
            *_INSERT.bound(transaction, new),
        ]
    )
    classes: dict[int, set[int]] = {}
    for provider_id, class_id in (*(wanted or ()), *gone):
        classes.setdefault(provider_id, set()).add(class_id)
    record_details(
        transaction,
        ChangeKind.INVENTORIES,
        ((id_, uuid, {"classes": sorted(classes.get(id_, ()))}) for id_, uuid in providers),
    )
