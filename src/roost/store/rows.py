"""Rows by the thousand and one by one: what statements are executed with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, insert

T = TypeVar("T")

# MariaDB turns a list of a thousand members into a join, which locks rows that it does not name.
# SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535.
CHUNK_LENGTH = 512


def chunks(values: Iterable[T], length: int = CHUNK_LENGTH) -> Iterator[Sequence[T]]:
    """The values in pieces that fit into one statement; nothing for no values.

    >>> [len(chunk) for chunk in chunks(range(513))]
    [512, 1]
    """
    everything = list(values)
    for start in range(0, len(everything), length):
        yield everything[start : start + length]


def insert_row(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Insert one row; the number that the database gave it."""
    key = connection.execute(insert(table), values).inserted_primary_key
    assert key is not None, "every table has a key of its own"
    id_: int = key[0]
    return id_
