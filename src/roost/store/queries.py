"""Queries: statements that read, compiled once, whose rows come from the driver itself.

SQLAlchemy's execution and its result take 30 to 60 microseconds for each statement. Most of these
statements take SQLite less than 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from roost.store.sessions import fetch_directly
from roost.store.statements import Statement, Values


class Query(Statement):
    """A statement that only reads, in a transaction or without one.

    Its rows are those of the driver. A time is a text on SQLite (`stored_time`), and a sum is a
    decimal number on MySQL.
    """

    def fetch(self, connection: Connection, values: Values) -> Sequence[Any]:
        """All rows."""
        return fetch_directly(connection, *self.bound(connection, values))

    def fetch_one(self, connection: Connection, values: Values) -> Any | None:
        """The first row; `None` if there is none."""
        rows = self.fetch(connection, values)
        return rows[0] if rows else None

    def fetch_members(self, connection: Connection, members: Iterable[Any]) -> list[Any]:
        """All rows for the members of its only list, by as many executions as necessary."""
        return [
            row
            for statement in self.bound_chunks(connection, members)
            for row in fetch_directly(connection, *statement)
        ]
