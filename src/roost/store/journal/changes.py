"""Reading the journal for clients: in pages of whole transactions, from a cursor that clients keep.

A reader of a forest reads everything that is new, or all tables again. A client reads pages. Its
cursor is a position; or two positions and how far the client is between them, while more is new
than one page has. Rows between two positions are those that the second has seen, and the first has
not. They come in the order of the last rows of their transactions: a writer locks a provider before
it inserts a row about it, so for one provider this is the order of commits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, select

from roost.store.journal.position import (
    NoPosition,
    Position,
    TooManyChanges,
    checked_id,
    start_position,
)
from roost.store.journal.writing import ChangeDetail, Writer, parse_usages
from roost.store.statements import chunks
from roost.store.tables import roost_changes

# Up to so many new rows, a position that has seen them costs less than a new one.
_READ_AT_ONCE = 10_000
# How many rows between two positions are looked at together, and how often for one page.
_SCANNED_ROWS = 2_000
_SCANS_MAX = 50
# Characters that no position has in its text.
_SEPARATOR = "."

_COLUMNS = roost_changes.c
_SELECT = select(
    _COLUMNS.id,
    _COLUMNS.transaction_id,
    _COLUMNS.created_at,
    _COLUMNS.kind,
    _COLUMNS.provider_id,
    _COLUMNS.provider_uuid,
    _COLUMNS.usages,
    _COLUMNS.writer,
    _COLUMNS.detail,
)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A row of the journal with all that it says."""

    id: int
    transaction_id: int | None
    at: datetime
    kind: str
    provider_id: int | None
    provider_uuid: str | None
    # The ids of the resource classes; empty if the writer did not tell.
    classes: tuple[int, ...]
    writer: Writer
    detail: ChangeDetail

    @classmethod
    def of(cls, row: Any) -> ChangeRow:
        """The row as the database returns it."""
        detail: ChangeDetail = json.loads(row.detail) if row.detail else {}
        return cls(
            id=row.id,
            transaction_id=row.transaction_id,
            at=row.created_at,
            kind=row.kind,
            provider_id=row.provider_id,
            provider_uuid=row.provider_uuid,
            classes=tuple(parse_usages(row.usages or "") or detail.get("classes", ())),
            writer=Writer.parse(row.writer),
            detail=detail,
        )


# The rows of one transaction, by id.
WrittenTogether: TypeAlias = tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True)
class ChangeCursor:
    """How far a client has read: at a position, or between two of them.

    Between two positions, the client has all transactions whose last row is not above `through`.
    """

    position: Position
    target: Position | None = None
    through: int = 0

    def to_text(self) -> str:
        """The cursor for a client; at a position it is the text of the position."""
        if self.target is None:
            return self.position.to_text()
        parts = (self.position.to_text(), self.target.to_text(), str(self.through))
        return _SEPARATOR.join(parts)

    @classmethod
    def from_text(cls, kind: type[Position], text: str) -> ChangeCursor:
        """The cursor in a text; `NoPosition` if the text is none of this kind of database."""
        match text.split(_SEPARATOR):
            case [position]:
                return cls(kind.from_text(position))
            case [position, target, through] if through.isascii() and through.isdigit():
                try:
                    number = checked_id(int(through))
                except ValueError:
                    raise NoPosition from None
                return cls(kind.from_text(position), kind.from_text(target), number)
        raise NoPosition


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Whole transactions, and the cursor after them."""

    transactions: tuple[WrittenTogether, ...]
    cursor: ChangeCursor

    @property
    def is_last(self) -> bool:
        """Whether nothing more was new when the page was read."""
        return self.cursor.target is None


def look_for_changes(connection: Connection, position: Position) -> ReadPage | None:
    """What is new since a position, in one round trip if nothing is; `None` if much is new."""
    looked = position.look(connection)
    if looked is None:
        return None
    entries, now = looked
    rows = _rows_with(connection, _COLUMNS.id, [entry.id for entry in entries])
    return ReadPage(_transactions(rows), ChangeCursor(now))


def read_changes(
    connection: Connection, cursor: ChangeCursor, rows_max: int, until: Position | None = None
) -> ReadPage:
    """A page after the cursor, in one snapshot; `JournalLost` if the cursor is no longer valid.

    A page has up to `rows_max` rows, or one transaction with more. With `until`, the pages end at
    that position. It must have seen everything that the cursor has seen.
    """
    if cursor.target is None:
        try:
            entries, now = cursor.position.read(connection, rows_max)
        except TooManyChanges:
            cursor = replace(
                cursor,
                target=until or _newest(connection, cursor.position),
                through=cursor.position.seen_below(connection),
            )
        else:
            rows = _rows_with(connection, _COLUMNS.id, [entry.id for entry in entries])
            if until is None:
                return ReadPage(_transactions(rows), ChangeCursor(now))
            seen = [row for row in rows if until.has_seen(row.id, row.transaction_id)]
            return ReadPage(_transactions(seen), ChangeCursor(until))
    cursor.position.check(connection)
    page = _scan(connection, cursor, rows_max)
    if page.transactions or not page.is_last or page.cursor.position is until:
        return page
    # Nothing was left between the two positions: only an empty page after all may be empty.
    return read_changes(connection, page.cursor, rows_max, until)


def _newest(connection: Connection, position: Position) -> Position:
    """A position that has seen everything that the connection sees."""
    try:
        return position.read(connection, _READ_AT_ONCE)[1]
    except TooManyChanges:
        return start_position(connection)


def _scan(connection: Connection, cursor: ChangeCursor, rows_max: int) -> ReadPage:
    """The next page between the two positions of a cursor."""
    position, target, through = cursor.position, cursor.target, cursor.through
    assert target is not None, "the cursor is between two positions"
    for _ in range(_SCANS_MAX):
        query = _SELECT.where(_COLUMNS.id > through).order_by(_COLUMNS.id).limit(_SCANNED_ROWS)
        rows = [ChangeRow.of(row) for row in connection.execute(query)]
        is_end = len(rows) < _SCANNED_ROWS
        end = rows[-1].id if rows else through
        # Rows of these transactions may stand before and after the rows that were looked at.
        numbers = {row.transaction_id for row in rows if row.transaction_id is not None}
        whole = [
            *_rows_with(connection, _COLUMNS.transaction_id, numbers),
            *(row for row in rows if row.transaction_id is None),
        ]
        between = (
            row
            for row in whole
            if target.has_seen(row.id, row.transaction_id)
            and not position.has_seen(row.id, row.transaction_id)
        )
        # A transaction belongs to the page that has its last row.
        ready = [one for one in _transactions(between) if through < one[-1].id <= end]
        page = _cut(ready, rows_max)
        if len(page) < len(ready):
            return ReadPage(page, replace(cursor, through=page[-1][-1].id))
        if is_end:
            return ReadPage(page, ChangeCursor(target))
        through = end
        if page:
            break
    return ReadPage(page, replace(cursor, through=through))


def _cut(transactions: Sequence[WrittenTogether], rows_max: int) -> tuple[WrittenTogether, ...]:
    """The first transactions that have so many rows together; at least one."""
    count, rows = 0, 0
    for transaction in transactions:
        rows += len(transaction)
        if count and rows > rows_max:
            break
        count += 1
    return tuple(transactions[:count])


def _transactions(rows: Iterable[ChangeRow]) -> tuple[WrittenTogether, ...]:
    """The rows by transaction, in the order of their last rows."""
    together: dict[object, list[ChangeRow]] = {}
    for row in sorted(rows, key=lambda each: each.id):
        # A row without a number is alone: a trigger or an older version wrote it. Numbers that
        # writers draw may meet once in a long time, but not with the same request.
        number = row.transaction_id
        key = row.id if number is None else (number, row.writer)
        together.setdefault(key, []).append(row)
    return tuple(tuple(each) for each in sorted(together.values(), key=lambda each: each[-1].id))


def _rows_with(
    connection: Connection, column: ColumnElement[int], values: Collection[int]
) -> list[ChangeRow]:
    return [
        ChangeRow.of(row)
        for chunk in chunks(values)
        for row in connection.execute(_SELECT.where(column.in_(chunk)))
    ]


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
    query = _SELECT.order_by(_COLUMNS.id.desc()).limit(rows_max + 1)
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
