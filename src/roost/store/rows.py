"""Rows by the thousand and one by one: what statements are executed with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Table, insert

T = TypeVar("T")

# SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535.
CHUNK_LENGTH = 10_000


def chunks(values: Iterable[T]) -> Iterator[Sequence[T]]:
    """The values in pieces that fit into one statement; nothing for no values.

    >>> [len(chunk) for chunk in chunks(range(10_001))]
    [10000, 1]
    """
    everything = list(values)
    for start in range(0, len(everything), CHUNK_LENGTH):
        yield everything[start : start + CHUNK_LENGTH]


def insert_row(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Insert one row; the number that the database gave it."""
    key = connection.execute(insert(table), values).inserted_primary_key
    assert key is not None, "every table has a key of its own"
    id_: int = key[0]
    return id_


def select_in_chunks(
    connection: Connection, query: Executable, name: str, values: Iterable[Any]
) -> list[Any]:
    """All rows of a query with one expanding parameter, however long its list is."""
    rows: list[Any] = []
    for chunk in chunks(values):
        rows += connection.execute(query, {name: chunk}).all()
    return rows
