"""Writes rows with their ids into empty tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.model.identifiers import is_custom
from roost.store.sessions import raise_translated
from roost.store.statement_log import log_statements
from roost.store.statements import chunks
from roost.store.tables import resource_classes, resource_providers, traits
from roost.store.transfer.layout import LAYOUT, VOCABULARY, TransferTable
from roost.store.transfer.values import for_driver

# SQLite takes 32,766 parameters in a statement.
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
    convert = for_driver(part, connection.dialect.name)
    if connection.dialect.name == "postgresql":
        _copy_batch(connection, part, [convert(list(row)) for row in rows])
        return
    columns = ", ".join(part.columns)
    holder = "?" if connection.dialect.name == "sqlite" else "%s"
    values = f"({', '.join([holder] * len(part.columns))})"
    for chunk in chunks(rows, _ROWS_PER_STATEMENT):
        statement = f"INSERT INTO {part.name} ({columns}) VALUES {', '.join([values] * len(chunk))}"
        parameters = tuple(value for row in chunk for value in convert(list(row)))
        connection.exec_driver_sql(statement, parameters)


def _copy_batch(connection: Connection, part: TransferTable, rows: Sequence[list[Any]]) -> None:
    """Insert rows with COPY, which takes half the time of INSERT."""
    driver: Any = connection.connection
    statement = f"COPY {part.name} ({', '.join(part.columns)}) FROM STDIN"
    log_statements(connection, statement)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise_translated(connection, error)


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


def advance_sequences(connection: Connection) -> None:
    """Let PostgreSQL generate ids above those that were written."""
    if connection.dialect.name != "postgresql":
        return
    for part in LAYOUT:
        # A service chooses the ids of classes itself.
        if part.order != ("id",) or part.table is resource_classes:
            continue
        largest = connection.scalar(sa.select(sa.func.max(part.table.c.id)))
        if largest is not None:
            sequence = sa.func.pg_get_serial_sequence(part.name, "id")
            connection.execute(sa.select(sa.func.setval(sequence, largest)))
