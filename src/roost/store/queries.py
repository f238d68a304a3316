"""Queries: statements that read, compiled once, whose rows come from the driver itself.

SQLAlchemy's execution and its result take 30 to 60 microseconds for each statement. Most of these
statements take SQLite less than 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection

from roost.store.sessions import fetch_directly
from roost.store.statements import Statement, Values, chunks


class Query(Statement):
    """A statement that only reads, in a transaction or without one.

    Its rows are those of the driver. A time is a text on SQLite (`stored_time`), and a sum is a
    decimal number on MySQL.
    """

    def fetch(self, connection: Connection, values: Values) -> Sequence[Any]:
        """All rows. No parameter of the query is a list."""
        compiled = self._for(connection, ())
        return fetch_directly(connection, compiled.text, compiled.parameters(values))

    def fetch_one(self, connection: Connection, values: Values) -> Any | None:
        """The first row; `None` if there is none."""
        rows = self.fetch(connection, values)
        return rows[0] if rows else None

    def fetch_members(self, connection: Connection, members: Iterable[Any]) -> list[Any]:
        """All rows for the members of its only list, by as many executions as necessary."""
        (name,) = self._lists
        rows: list[Any] = []
        for chunk in chunks(members):
            # A power of two, so that texts are few. The last member fills what is left over.
            length = 1 << (len(chunk) - 1).bit_length()
            compiled = self._for(connection, (length,))
            padded = (*chunk, *[chunk[-1]] * (length - len(chunk)))
            # The list is the only parameter, so its members are in order.
            parameters = (
                dict(zip(_names(name, length), padded, strict=True))
                if compiled.order is None
                else padded
            )
            rows += fetch_directly(connection, compiled.text, parameters)
        return rows


@lru_cache
def _names(name: str, length: int) -> tuple[str, ...]:
    return tuple(f"{name}_{index}" for index in range(length))
