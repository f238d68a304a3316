"""Writes rows with their ids into empty tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.model.identifiers import is_custom
from roost.store.dialect import dialect_of
from roost.store.statements import chunks
from roost.store.tables import resource_classes, resource_providers, traits
from roost.store.transfer.layout import LAYOUT, VOCABULARY, TransferTable

_ROWS_PER_STATEMENT = 500

# The id of a provider, of its root and of its parent.
Ancestry = tuple[int, int | None, int | None]


def occupied_tables(connection: Connection) -> dict[str, int]:
    """The tables that have rows, apart from standard names, and how many."""
    found: dict[str, int] = {}
    existing = set(sa.inspect(connection).get_table_names())
    for part in LAYOUT:
        if part.name not in existing:
            continue
        if part.name in VOCABULARY:
            names = connection.scalars(sa.select(part.table.c.name))
            count = sum(is_custom(name) for name in names)
        else:
            count = connection.scalar(sa.select(sa.func.count()).select_from(part.table)) or 0
        if count:
            found[part.name] = count
    return found


def delete_standard_names(connection: Connection) -> None:
    """Make room for the names of the import, which have ids of their own."""
    for table in (traits, resource_classes):
        connection.execute(sa.delete(table))


def insert_batch(connection: Connection, part: TransferTable, rows: Sequence[list[Any]]) -> None:
    """Insert rows, which have a value for each column of the table."""
    dialect, times = dialect_of(connection), part.positions(sa.DateTime)

    def for_driver(row: list[Any]) -> list[Any]:
        values = list(row)
        for position in times:
            if values[position] is not None:
                values[position] = dialect.time_for_driver(values[position])
        return values

    dialect.insert_batch(connection, part, [for_driver(row) for row in rows])


def set_ancestries(connection: Connection, ancestries: Sequence[Ancestry]) -> None:
    """Give providers the roots and parents that were written after them."""
    columns = resource_providers.c
    statement = (
        sa.update(resource_providers)
        .where(columns.id == sa.bindparam("provider"))
        .values(root_provider_id=sa.bindparam("root"), parent_provider_id=sa.bindparam("parent"))
    )
    for chunk in chunks(ancestries, _ROWS_PER_STATEMENT):
        connection.execute(
            statement,
            [{"provider": id_, "root": root, "parent": parent} for id_, root, parent in chunk],
        )
