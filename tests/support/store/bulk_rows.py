"""Thousands of rows, written straight into the tables because requests would take too long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from roost.store import tables
from roost.store.statements import chunks
from roost.store.tables import utc_now

_VCPU = 0


def numbered_uuid(number: int) -> str:
    """A uuid for each number, in the order of the numbers.

    >>> numbered_uuid(255)
    '000000ff-0000-4000-8000-000000000000'
    """
    return f"{number:08x}-0000-4000-8000-000000000000"


def write_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with the present time as `created_at`."""
    now = utc_now()
    for chunk in chunks(rows, 5000):
        connection.execute(insert(table), [{"created_at": now, **row} for row in chunk])


def next_id(connection: Connection, table: Table) -> int:
    """The first id that no row of the table has."""
    newest: int | None = connection.execute(select(func.max(table.c.id))).scalar()
    return (newest or 0) + 1


def write_providers(
    connection: Connection, numbers: Sequence[int], *, root: int | None = None, total: int = 0
) -> None:
    """Write a provider for each number, as a root or below `root`, with an inventory of VCPU."""
    first = next_id(connection, tables.resource_providers)
    ids = range(first, first + len(numbers))
    now = utc_now()
    write_rows(
        connection,
        tables.resource_providers,
        (
            {
                "updated_at": now,
                "id": id_,
                "uuid": numbered_uuid(number),
                "name": f"provider {number}",
                "generation": 0,
                "root_provider_id": root or id_,
                "parent_provider_id": root,
            }
            for id_, number in zip(ids, numbers, strict=True)
        ),
    )
    if total:
        write_inventories(connection, ids, total)


def write_inventories(connection: Connection, provider_ids: Iterable[int], total: int) -> None:
    """Give the providers an inventory of VCPU."""
    numbers = {"total": total, "max_unit": total, "reserved": 0, "min_unit": 1, "step_size": 1}
    write_rows(
        connection,
        tables.inventories,
        (
            {
                "resource_provider_id": id_,
                "resource_class_id": _VCPU,
                "allocation_ratio": 1.0,
                **numbers,
            }
            for id_ in provider_ids
        ),
    )
