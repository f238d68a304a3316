"""Reading the change journal: everything that was committed, once, and nothing else.

The number of a row says when it was written, not when it was committed: a reader that asks for
numbers above the highest it has seen loses a third of all changes when several write at once.
Each kind of database has a way of its own to miss none.
"""

from __future__ import annotations

from sqlalchemy import Connection

from roost.store.journal_by_gaps import start_by_gaps
from roost.store.journal_by_id import start_by_id
from roost.store.journal_by_transaction import start_by_transaction
from roost.store.journal_positions import Change, JournalLost, Position

__all__ = [
    "Change",
    "JournalLost",
    "Position",
    "forget_gaps",
    "look_for_changes",
    "read_changes",
    "start_position",
]

_ROWS_MAX = 100_000
_STARTS = {"sqlite": start_by_id, "postgresql": start_by_transaction}


def start_position(connection: Connection) -> Position:
    """The position of a reader that is about to read all tables.

    To be asked for first, in the transaction with one snapshot in which the tables are read:
    what is committed before that snapshot is not reported later, everything else is.
    """
    return _STARTS.get(connection.dialect.name, start_by_gaps)(connection)


def look_for_changes(connection: Connection, position: Position) -> Position | None:
    """The position of a reader for which nothing is new, or `None` if something may be.

    It is one round trip while nothing is new, and costs the same however much is.
    """
    return position.look(connection)


def read_changes(
    connection: Connection, position: Position, rows_max: int = _ROWS_MAX
) -> tuple[tuple[Change, ...], Position]:
    """What was committed since the position, and the position after that.

    With or without a transaction; in one, it says what is new in its snapshot. `JournalLost` is
    raised when the position is good no longer, or when more than `rows_max` rows are new.
    """
    return position.read(connection, rows_max)


def forget_gaps(connection: Connection, position: Position) -> Position:
    """The same position, without what makes reading slower and cannot come any more.

    To be called once after the start and then every few seconds, on a connection without a
    transaction: to find out, rows may be locked for a moment. It asks the database nothing
    unless there is something to forget, which only MySQL and MariaDB ever have.
    """
    return position.forget_gaps(connection)
