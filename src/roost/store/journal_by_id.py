"""Reading the journal by the numbers of its rows, which is exact where they commit in order.

SQLite has one writer at a time: whatever is new has a higher number than all that was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from roost.store.journal_positions import (
    SEPARATOR,
    Change,
    JournalLost,
    Position,
    changes_of,
    fetch_rows,
    no_epoch,
    row_id,
)

_ROW = (
    "changes.id || '|' || changes.kind || '|' || ifnull(changes.provider_id, '')"
    " || '|' || changes.created_at || '|' || ifnull(changes.provider_uuid, '')"
)
_PRUNED = "ifnull((SELECT value FROM roost_meta WHERE name = 'pruned'), '')"
_SELECT = (
    f"SELECT meta.value || '|' || {_PRUNED} || '||' || ifnull({_ROW}, '')"
    " FROM roost_meta AS meta LEFT JOIN roost_changes AS changes ON changes.id"
)
_START = _SELECT + " = (SELECT max(id) FROM roost_changes) WHERE meta.name = 'epoch'"
_READ = _SELECT + " >= ? WHERE meta.name = 'epoch'"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database says of the journal as a whole, and rows of it by number."""

    epoch: str
    # How far it was pruned: a number, or nothing.
    pruned: str
    # How many rows there are where they were counted; nothing where they were not.
    count: str
    rows: dict[int, str]

    @classmethod
    def of(cls, fetched: Sequence[Any]) -> Answer | None:
        """What texts like `epoch|pruned|count|row` say; the row may be empty."""
        if not fetched:
            return None
        epoch, pruned, count, _ = fetched[0][0].split(SEPARATOR, 3)
        texts = (text.split(SEPARATOR, 3)[3] for (text,) in fetched)
        return cls(epoch, pruned, count, {row_id(text): text for text in texts if text})


@dataclass(frozen=True, kw_only=True)
class IdPosition(Position):
    """The newest row that was seen, with all that tells whether it is still the same journal.

    That row is asked for again each time: if it is missing or says something else, then the
    database was restored, or the reader was away until what it did not see had been pruned.
    """

    epoch: str
    pruned: str
    # The number of the newest row, and the row; a journal without rows has none.
    last: int
    newest: str | None

    @cached_property
    def question(self) -> str:
        """The statement that asks for the newest row and all after it."""
        return _READ

    @cached_property
    def unchanged(self) -> str:
        """The answer as long as nothing is new."""
        return SEPARATOR.join((self.epoch, self.pruned, "", self.newest or ""))

    def read(self, connection: Connection) -> tuple[tuple[Change, ...], Position]:
        """What is new since, and how far the reader is then."""
        fetched = fetch_rows(connection, self.question, (self.last,))
        if len(fetched) == 1 and fetched[0][0] == self.unchanged:
            return (), self
        answer = Answer.of(fetched)
        if answer is None or answer.epoch != self.epoch:
            raise JournalLost("another database has taken the place of the one that was read")
        return self._read_on(connection, answer)

    def _read_on(
        self, _connection: Connection, answer: Answer
    ) -> tuple[tuple[Change, ...], Position]:
        self.check_edge(answer.pruned, self.last + 1)
        rows = self.newer(answer.rows)
        return changes_of(rows.values()), self.moved(rows, pruned=answer.pruned)

    def check_edge(self, pruned: str, first_unseen: int) -> None:
        """See that nothing was pruned from this number on, which may not have been read."""
        if pruned != self.pruned and int(pruned or 0) >= first_unseen:
            raise JournalLost("changes that were not read yet have been pruned")

    def newer(self, rows: dict[int, str]) -> dict[int, str]:
        """Those of the rows that are newer than the newest, which must be among them."""
        newer = dict(rows)
        if self.newest is not None and newer.pop(self.last, None) != self.newest:
            raise JournalLost("the newest change that was read is not there any more")
        return newer

    def moved(self, rows: dict[int, str], **members: Any) -> IdPosition:
        """The position after these newer rows."""
        last = max(rows, default=self.last)
        return replace(self, last=last, newest=rows.get(last, self.newest), **members)


def start_by_id(connection: Connection) -> IdPosition:
    """The position of a reader that sees what the connection sees now."""
    return IdPosition(**started(connection, _START))


def started(connection: Connection, statement: str) -> dict[str, Any]:
    """The members of a new position, by a statement that asks for the newest row."""
    answer = Answer.of(connection.exec_driver_sql(statement).fetchall())
    if answer is None:
        raise no_epoch()
    # Pruning always leaves a row: where there is none, somebody has emptied the table, and its
    # numbers may begin anew.
    last = max(answer.rows, default=0)
    return {
        "epoch": answer.epoch,
        "pruned": answer.pruned,
        "last": last,
        "newest": answer.rows.get(last),
    }
