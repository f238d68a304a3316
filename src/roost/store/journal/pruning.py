"""Pruning the change journal: old rows are deleted, the lowest ids first.

`roost_meta` records how far the journal was pruned: the highest id that was deleted, on
PostgreSQL the highest transaction. Readers compare it with their position, and so notice that rows
which they have not read are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, delete, func, insert, select, update

from roost.store.journal.mysql import lock_oldest
from roost.store.tables import roost_changes, roost_meta

_PRUNED = "pruned"
_IS_PRUNED = roost_meta.c.name == _PRUNED
_OLDEST = (
    select(roost_changes.c.id, roost_changes.c.created_at)
    .order_by(roost_changes.c.id)
    .limit(bindparam("limit"))
)
_TRANSACTION = func.coalesce(roost_changes.c.transaction_id, 0)
_SNAPSHOT = func.txid_current_snapshot()
_HORIZON = func.txid_snapshot_xmin(_SNAPSHOT, type_=BigInteger)
_END = func.txid_snapshot_xmax(_SNAPSHOT, type_=BigInteger)
_OLDEST_WITH_TRANSACTIONS = _OLDEST.add_columns(
    _TRANSACTION.label("transaction_id"), _HORIZON.label("horizon"), _END.label("end")
)


def prune_changes(connection: Connection, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` of the oldest rows, if older than that; how many were deleted.

    The newest row always stays, however old it is: readers recognise the journal by it. To delete
    more, call it again in a transaction of its own, so that no writer waits long.
    """
    pruned = _lock_pruned(connection)
    is_postgresql = connection.dialect.name == "postgresql"
    query = _OLDEST_WITH_TRANSACTIONS if is_postgresql else _OLDEST
    # One more than may be deleted: the last of them, perhaps the newest of all, always stays.
    oldest = connection.execute(query, {"limit": limit + 1}).all()[:-1]
    old = list(takewhile(lambda row: row.created_at < older_than, oldest))
    if is_postgresql:
        old = list(takewhile(_is_settled, old))
    if not old or not _all_committed(connection, [row.id for row in old]):
        return 0
    pruned_now = last = old[-1].id
    condition = (roost_changes.c.id <= last) & (roost_changes.c.created_at < older_than)
    if is_postgresql:
        pruned_now = _highest_transaction(pruned, old)
        condition &= ~_TRANSACTION.between(pruned_now + 1, _END - 1)
    # The record before the deletion: no reader may find rows missing that are not recorded yet.
    connection.execute(update(roost_meta).where(_IS_PRUNED).values(value=str(pruned_now)))
    return connection.execute(delete(roost_changes).where(condition)).rowcount


def _lock_pruned(connection: Connection) -> int:
    """How far the journal was pruned; no other process prunes it until the transaction ends."""
    query = select(roost_meta.c.value).where(_IS_PRUNED).with_for_update()
    value = connection.scalar(query)
    if value is None:
        connection.execute(insert(roost_meta).values(name=_PRUNED, value="0"))
    return int(value or 0)


def _is_settled(row: Any) -> bool:
    """Whether each reader that begins from now on sees the transaction of the row.

    A transaction that this cluster has not reached comes from another cluster, and never runs here.
    """
    return bool(row.transaction_id < row.horizon or row.transaction_id >= row.end)


def _all_committed(connection: Connection, oldest: list[int]) -> bool:
    """Whether no transaction holds a row among the oldest, which readers could not see yet.

    The question arises only on MySQL and MariaDB: SQLite has no other writer, and PostgreSQL
    records pruning by transaction.
    """
    if connection.dialect.name in ("sqlite", "postgresql"):
        return True
    return lock_oldest(connection, len(oldest)) == oldest


def _highest_transaction(pruned: int, rows: Sequence[Any]) -> int:
    """The highest transaction of this cluster of which rows are deleted."""
    horizon = rows[0].horizon
    return max(
        (id_ for id_ in (pruned, *(row.transaction_id for row in rows)) if id_ < horizon), default=0
    )
