"""The mark of an import that has not finished: how far it has come.

The mark changes in the transaction of each batch. As long as it is there, no service starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.tables import roost_meta

_NAME = "import"


@dataclass(frozen=True, slots=True)
class ProgressMark:
    """How many lines of a file are in the database, and the SHA-256 of these lines."""

    lines: int
    sha256: str

    def text(self) -> str:
        """The mark as one text."""
        return f"{self.lines}:{self.sha256}"


def read_mark(connection: Connection) -> ProgressMark | None:
    """The mark; `None` if no import is unfinished, or the database has no tables of Roost."""
    return stored_mark(connection) if sa.inspect(connection).has_table(roost_meta.name) else None


def stored_mark(connection: Connection) -> ProgressMark | None:
    """The mark in a database that has the tables of Roost."""
    query = sa.select(roost_meta.c.value).where(roost_meta.c.name == _NAME)
    text: str | None = connection.scalar(query)
    if text is None:
        return None
    lines, _, sha256 = text.partition(":")
    return ProgressMark(int(lines), sha256)


def set_mark(connection: Connection, mark: ProgressMark) -> None:
    """Record how far the import has come."""
    changed = connection.execute(
        sa.update(roost_meta).where(roost_meta.c.name == _NAME).values(value=mark.text())
    )
    if not changed.rowcount and stored_mark(connection) is None:
        connection.execute(sa.insert(roost_meta).values(name=_NAME, value=mark.text()))


def move_mark(connection: Connection, before: ProgressMark, after: ProgressMark) -> bool:
    """Record how far this import has come; `False` if another import has moved the mark."""
    changed = connection.execute(
        sa.update(roost_meta)
        .where(roost_meta.c.name == _NAME, roost_meta.c.value == before.text())
        .values(value=after.text())
    )
    return bool(changed.rowcount)


def remove_mark(connection: Connection) -> None:
    """The import has finished."""
    connection.execute(sa.delete(roost_meta).where(roost_meta.c.name == _NAME))
