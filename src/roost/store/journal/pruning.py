"""Pruning the change journal: old rows are deleted, the lowest ids first.

`roost_meta` records how far the journal was pruned: the highest id that was deleted, on
PostgreSQL the highest transaction. Readers compare it with their position, and so notice that rows
which they have not read are gone. The module of each database says which rows may be deleted.
"""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile

from sqlalchemy import Connection, delete, insert, select, update

from roost.store.journal.mysql import MysqlOldRows
from roost.store.journal.old_rows import OldRows
from roost.store.journal.postgresql import PostgresqlOldRows
from roost.store.journal.sqlite import SqliteOldRows
from roost.store.tables import roost_changes, roost_meta

_OLD_ROWS: dict[str, OldRows] = {
    "sqlite": SqliteOldRows(),
    "postgresql": PostgresqlOldRows(),
    "mysql": MysqlOldRows(),
    "mariadb": MysqlOldRows(),
}

_PRUNED = "pruned"
_IS_PRUNED = roost_meta.c.name == _PRUNED


def prune_changes(connection: Connection, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` of the oldest rows, if older than that; how many were deleted.

    The newest row always stays, however old it is: readers recognise the journal by it. To delete
    more, call it again in a transaction of its own, so that no writer waits long.
    """
    old_rows = _OLD_ROWS[connection.dialect.name]
    pruned = _lock_pruned(connection)
    # One more than may be deleted: the last of them, perhaps the newest of all, always stays.
    oldest = connection.execute(old_rows.query, {"limit": limit + 1}).all()[:-1]
    old = list(takewhile(lambda row: row.created_at < older_than, oldest))
    rows = old_rows.deletable(connection, old) if old else ()
    if not rows:
        return 0
    record = old_rows.record(pruned, rows)
    condition = old_rows.condition(rows, record) & (roost_changes.c.created_at < older_than)
    # The record before the deletion: no reader may find rows missing that are not recorded yet.
    connection.execute(update(roost_meta).where(_IS_PRUNED).values(value=str(record)))
    return connection.execute(delete(roost_changes).where(condition)).rowcount


def _lock_pruned(connection: Connection) -> int:
    """How far the journal was pruned; no other process prunes it until the transaction ends."""
    query = select(roost_meta.c.value).where(_IS_PRUNED).with_for_update()
    value = connection.scalar(query)
    if value is None:
        connection.execute(insert(roost_meta).values(name=_PRUNED, value="0"))
    return int(value or 0)
