"""The old rows of a journal: which of them may be deleted, and what pruning records.

A reader must notice that rows which it has not read are gone. Each database has a subclass, which
knows the rows that readers may not have seen yet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from roost.store.tables import roost_changes


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
