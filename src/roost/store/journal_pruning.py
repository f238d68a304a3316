"""Pruning the change journal: old rows go, the lowest numbers first.

How far it was pruned is noted in `roost_meta`, as readers need it to know whether they missed
something: the highest number that is gone, on PostgreSQL the highest transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, delete, func, insert, select, update

from roost.store.journal_by_gaps import lock_oldest
from roost.store.tables import roost_changes, roost_meta

_EDGE = "pruned"
_OF_EDGE = roost_meta.c.name == _EDGE
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

    The newest row always stays, however old it is: by it, readers know the journal. To delete
    more, call it again, each time in a transaction of its own, so that nobody has to wait long.
    """
    pruned = _lock_edge(connection)
    is_postgresql = connection.dialect.name == "postgresql"
    query = _OLDEST_WITH_TRANSACTIONS if is_postgresql else _OLDEST
    # One more than may go: the last of them, perhaps the newest of all, stays in any case.
    oldest = connection.execute(query, {"limit": limit + 1}).all()[:-1]
    old = list(takewhile(lambda row: row.created_at < older_than, oldest))
    if is_postgresql:
        old = list(takewhile(_is_settled, old))
    if not old or not _all_committed(connection, [row.id for row in old]):
        return 0
    edge = last = old[-1].id
    gone = (roost_changes.c.id <= last) & (roost_changes.c.created_at < older_than)
    if is_postgresql:
        edge = _highest_transaction(pruned, old)
        gone &= ~_TRANSACTION.between(edge + 1, _END - 1)
    # First the note, then the deed: nobody may find rows missing that are not noted yet.
    connection.execute(update(roost_meta).where(_OF_EDGE).values(value=str(edge)))
    return connection.execute(delete(roost_changes).where(gone)).rowcount


def _lock_edge(connection: Connection) -> int:
    """How far the journal was pruned; nobody else prunes it until the transaction ends."""
    query = select(roost_meta.c.value).where(_OF_EDGE).with_for_update()
    value = connection.scalar(query)
    if value is None:
        connection.execute(insert(roost_meta).values(name=_EDGE, value="0"))
    return int(value or 0)


def _is_settled(row: Any) -> bool:
    """Whether all readers to come will see the transaction of the row.

    A transaction that is still to come was written by another cluster: nobody waits for it.
    """
    return bool(row.transaction_id < row.horizon or row.transaction_id >= row.end)


def _all_committed(connection: Connection, oldest: list[int]) -> bool:
    """Whether nobody still holds a row between the oldest, which readers could not see yet.

    Only MySQL and MariaDB have to be asked: SQLite has no other writer, and PostgreSQL counts by
    transaction.
    """
    if connection.dialect.name in ("sqlite", "postgresql"):
        return True
    return lock_oldest(connection, len(oldest)) == oldest


def _highest_transaction(pruned: int, rows: Sequence[Any]) -> int:
    """The highest transaction of which rows are gone, of those that this cluster has had."""
    horizon = rows[0].horizon
    return max(
        (id_ for id_ in (pruned, *(row.transaction_id for row in rows)) if id_ < horizon), default=0
    )
