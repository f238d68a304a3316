"""The rows of `roost_meta`: what a database says of itself as a whole, a value for each name.

The epoch distinguishes its journal from all other journals. A new epoch makes every reader read all
tables again. The epoch also says whether triggers write to the journal: then other programs change
the tables too, and do not lock providers as Roost does.

The identity is a uuid that tells a database from all others. All servers of a database have its
identity, and a restored backup keeps it. So has a copy of the database, until an operator gives the
copy an identity of its own.

The mark of an import that has not finished says how far the import has come. It changes in the
transaction of each batch. As long as it is there, no service starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.model.identifiers import new_uuid
from roost.store.tables import roost_meta

_EPOCH, _IDENTITY, _IMPORT = "epoch", "identity", "import"
_WITH_TRIGGERS = "+triggers"


def read_meta(connection: Connection, name: str) -> str | None:
    """The value of this name; `None` if there is none."""
    return connection.scalar(sa.select(roost_meta.c.value).where(roost_meta.c.name == name))


def set_meta(connection: Connection, name: str, value: str) -> None:
    """Set the value of this name; `IntegrityError` if another transaction inserts it meanwhile."""
    if read_meta(connection, name) is None:
        connection.execute(sa.insert(roost_meta).values(name=name, value=value))
    else:
        connection.execute(
            sa.update(roost_meta).where(roost_meta.c.name == name).values(value=value)
        )


def has_triggers(epoch: str) -> bool:
    """Whether triggers write to the journal of this epoch.

    >>> has_triggers("0b6aa1a8-93d5-4d3c-9a5c-3a1c1f9b9a50+triggers")
    True
    """
    return epoch.endswith(_WITH_TRIGGERS)


def read_epoch(connection: Connection) -> str | None:
    """The epoch of the journal; `None` if the row is missing."""
    return read_meta(connection, _EPOCH)


def renew_epoch(connection: Connection, *, with_triggers: bool | None = None) -> None:
    """Make all readers read all tables again; `None` keeps what the epoch says of triggers."""
    if with_triggers is None:
        with_triggers = has_triggers(read_epoch(connection) or "")
    set_meta(connection, _EPOCH, new_uuid() + (_WITH_TRIGGERS if with_triggers else ""))


def read_identity(connection: Connection) -> str | None:
    """The identity; `None` before an older database has got one."""
    return read_meta(connection, _IDENTITY)


def ensure_identity(connection: Connection) -> None:
    """Give the database an identity, unless it has one; `IntegrityError` in a race."""
    if read_identity(connection) is None:
        renew_identity(connection)


def renew_identity(connection: Connection) -> None:
    """Give the database another identity, because it is a copy that goes its own way."""
    set_meta(connection, _IDENTITY, new_uuid())


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
    text = read_meta(connection, _IMPORT)
    if text is None:
        return None
    lines, _, sha256 = text.partition(":")
    return ProgressMark(int(lines), sha256)


def set_mark(connection: Connection, mark: ProgressMark) -> None:
    """Record how far the import has come."""
    set_meta(connection, _IMPORT, mark.text())


def move_mark(connection: Connection, before: ProgressMark, after: ProgressMark) -> bool:
    """Record how far this import has come; `False` if another import has moved the mark."""
    changed = connection.execute(
        sa.update(roost_meta)
        .where(roost_meta.c.name == _IMPORT, roost_meta.c.value == before.text())
        .values(value=after.text())
    )
    return bool(changed.rowcount)


def remove_mark(connection: Connection) -> None:
    """The import has finished."""
    connection.execute(sa.delete(roost_meta).where(roost_meta.c.name == _IMPORT))
