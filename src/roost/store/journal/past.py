"""Reading the journal backwards: the rows that it still has, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select

from roost.store.journal.changes import ChangeRow
from roost.store.journal.position import Position, start_position
from roost.store.tables import roost_changes

_COLUMNS = roost_changes.c


@dataclass(frozen=True, slots=True)
class PastRows:
    """Rows of the journal, the newest first, and what the journal has in all."""

    rows: tuple[ChangeRow, ...]
    # Whether there are older rows.
    has_more: bool
    # When the oldest and the newest row were written; `None` in a journal without rows.
    oldest: datetime | None
    newest: datetime | None
    # Later changes follow from here.
    now: Position


def read_past(
    connection: Connection, before: int | None, until: datetime | None, rows_max: int
) -> PastRows:
    """Up to `rows_max` rows below an id, written at a time or earlier, in one snapshot."""
    now = start_position(connection)
    query = select(roost_changes).order_by(_COLUMNS.id.desc()).limit(rows_max + 1)
    if before is not None:
        query = query.where(_COLUMNS.id < before)
    if until is not None:
        query = query.where(_COLUMNS.created_at <= until)
    rows = [ChangeRow.of(row) for row in connection.execute(query)]
    return PastRows(
        rows=tuple(rows[:rows_max]),
        has_more=len(rows) > rows_max,
        oldest=_written_at(connection, _COLUMNS.id.asc()),
        newest=_written_at(connection, _COLUMNS.id.desc()),
        now=now,
    )


def _written_at(connection: Connection, order: ColumnElement[int]) -> datetime | None:
    """When the first row in an order was written."""
    return connection.scalar(select(_COLUMNS.created_at).order_by(order).limit(1))
