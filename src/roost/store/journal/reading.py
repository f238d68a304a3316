"""Where a reader of the journal begins: at a position of the kind that its database needs."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.store.journal.mysql import MysqlPosition
from roost.store.journal.position import Position
from roost.store.journal.postgresql import PostgresqlPosition
from roost.store.journal.sqlite import SqlitePosition

_POSITIONS: dict[str, type[Position]] = {
    "sqlite": SqlitePosition,
    "postgresql": PostgresqlPosition,
    "mysql": MysqlPosition,
    "mariadb": MysqlPosition,
}


def start_position(connection: Connection) -> Position:
    """The position of a reader that is about to read all tables.

    The reader calls it first in the transaction whose snapshot it reads the tables from. Changes
    that the snapshot contains are not reported later. All other changes are.
    """
    return _POSITIONS[connection.dialect.name].start(connection)
