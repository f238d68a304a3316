"""Pruning the change journal: old rows are deleted, the lowest ids first.

`roost_meta` records how far the journal was pruned: the highest id that was deleted, on
some databases the highest transaction. Readers compare it with their position, and so notice that
rows which they have not read are gone. Each database knows which rows may be deleted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from roost.store.dialect import dialect_of
from roost.store.tables import roost_changes, roost_meta

_PRUNED = "pruned"
_IS_PRUNED = roost_meta.c.name == _PRUNED


class OldRows(ABC):
    """The oldest rows of a journal. Unless a subclass differs, pruning records the highest id."""

    # The oldest rows, up to a limit.
    query: Select[Any] = (
        select(roost_changes.c.id, roost_changes.c.created_at)
        .order_by(roost_changes.c.id)
        .limit(bindparam("limit"))
    )

    @abstractmethod
    def deletable(self, connection: Connection, rows: Sequence[Any]) -> Sequence[Any]:
        """The first of these rows, as far as no transaction is open that readers will see later."""

    def record(self, _pruned: int, rows: Sequence[Any]) -> int:
        """How far the journal is pruned after the deletion of these rows."""
        return int(rows[-1].id)

    def condition(self, rows: Sequence[Any], _record: int) -> ColumnElement[bool]:
        """The condition that chooses these rows and no others."""
        last: int = rows[-1].id
        return roost_changes.c.id <= last


def prune_changes(connection: Connection, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` of the oldest rows, if older than that; how many were deleted.

    The newest row always stays, however old it is: readers recognise the journal by it. To delete
    more, call it again in a transaction of its own, so that no writer waits long.
    """
    old_rows = dialect_of(connection).old_rows
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
