"""Whole tables with their ids, for export and import: read in pages, and written in batches.

The tables are in an order in which foreign keys allow their rows. No table has to fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from roost.model.identifiers import is_custom
from roost.store import tables
from roost.store.dialect import dialect_of
from roost.store.statements import chunks
from roost.store.tables import resource_classes, resource_providers, traits

PAGE_ROWS = 5000
Pages = Iterator[Sequence[Any]]

_ROWS_PER_STATEMENT = 500

# The id of a provider, of its root and of its parent.
Ancestry = tuple[int, int | None, int | None]


@dataclass(frozen=True, slots=True)
class TransferTable:
    """A table, and the columns that order its rows.

    An optional table is in an export only if it has rows. The reference does not have it.
    """

    table: Table
    order: tuple[str, ...] = ("id",)
    is_optional: bool = False

    @property
    def name(self) -> str:
        """The name of the table."""
        return str(self.table.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which rows have their values."""
        return tuple(str(column.name) for column in self.table.columns)

    def positions(self, kind: type[sa.types.TypeEngine[Any]]) -> tuple[int, ...]:
        """The positions of the columns of this type."""
        return tuple(
            position
            for position, column in enumerate(self.table.columns)
            if isinstance(column.type, kind)
        )


LAYOUT = (
    TransferTable(tables.resource_classes),
    TransferTable(tables.traits),
    TransferTable(tables.placement_aggregates),
    TransferTable(tables.projects),
    TransferTable(tables.users),
    TransferTable(tables.consumer_types),
    TransferTable(tables.consumers),
    TransferTable(tables.resource_providers),
    TransferTable(tables.inventories),
    TransferTable(tables.resource_provider_traits, ("resource_provider_id", "trait_id")),
    TransferTable(tables.resource_provider_aggregates, ("resource_provider_id", "aggregate_id")),
    TransferTable(tables.allocations),
    TransferTable(tables.roost_ownership, is_optional=True),
)
# A service inserts these names at its start, in an order of its own.
VOCABULARY = frozenset({tables.resource_classes.name, tables.traits.name})


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table of an export has."""
    existing = set(sa.inspect(connection).get_table_names())
    counts = {
        part: connection.scalar(sa.select(sa.func.count()).select_from(part.table)) or 0
        for part in LAYOUT
        if part.name in existing or not part.is_optional
    }
    return {part.name: count for part, count in counts.items() if count or not part.is_optional}


def read_pages(connection: Connection, part: TransferTable, page_rows: int = PAGE_ROWS) -> Pages:
    """All rows in their order, page by page.

    The pages are consistent only in a transaction with one snapshot.
    """
    if len(part.order) == 1:
        yield from _pages_by_id(connection, part, page_rows)
    else:
        yield from _pages_by_provider(connection, part, page_rows)


def _pages_by_id(connection: Connection, part: TransferTable, page_rows: int) -> Pages:
    key = part.table.c.id
    position = part.columns.index("id")
    query = sa.select(part.table).order_by(key).limit(page_rows)
    page = connection.execute(query).all()
    while page:
        yield page
        if len(page) < page_rows:
            return
        page = connection.execute(query.where(key > page[-1][position])).all()


def _pages_by_provider(connection: Connection, part: TransferTable, page_rows: int) -> Pages:
    """Pages that end with the last row of a provider.

    MariaDB would sort the whole table for every page without an upper bound.
    """
    first, second = (part.table.c[name] for name in part.order)
    ids = sa.select(first).order_by(first).offset(page_rows - 1).limit(1)
    query = sa.select(part.table).order_by(first, second)
    is_left: sa.ColumnElement[bool] = sa.true()
    while True:
        bound = connection.scalar(ids.where(is_left))
        within = is_left if bound is None else sa.and_(is_left, first <= bound)
        page = connection.execute(query.where(within)).all()
        if page:
            yield page
        if bound is None:
            return
        is_left = first > bound


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
