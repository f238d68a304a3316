"""Reading the journal by the numbers of its rows, which is exact where they commit in order.

SQLite has one writer at a time: whatever is new has a higher number than all that was seen. For
the same reason a file that lost changes, or was restored, lacks the newest of them in any case.
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
    too_many,
)

_ROW = (
    "changes.id || '|' || changes.kind || '|' || ifnull(changes.provider_id, '')"
    " || '|' || changes.created_at || '|' || ifnull(changes.provider_uuid, '')"
)
_PRUNED = "ifnull((SELECT value FROM roost_meta WHERE name = 'pruned'), '')"
_SELECT = (
    f"SELECT meta.value || '||' || {_PRUNED} || '||' || ifnull({_ROW}, '')"
    " FROM roost_meta AS meta LEFT JOIN roost_changes AS changes ON changes.id"
)
_START = _SELECT + " = (SELECT max(id) FROM roost_changes) WHERE meta.name = 'epoch'"
_READ = _SELECT + " >= ? WHERE meta.name = 'epoch' LIMIT ?"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database says of the journal as a whole, and rows of it by number."""

    epoch: str
    # Which server says so, and since when it runs; nothing where there is none.
    server: str
    # How far it was pruned: a number, or nothing.
    pruned: str
    # How many rows there are where they were counted; nothing where they were not.
    count: str
    rows: dict[int, str]

    @classmethod
    def of(cls, fetched: Sequence[Any]) -> Answer | None:
        """What texts like `epoch|server|pruned|count|row` say; the row may be empty."""
        if not fetched:
            return None
        epoch, server, pruned, count, _ = fetched[0][0].split(SEPARATOR, 4)
        texts = (text.split(SEPARATOR, 4)[4] for (text,) in fetched)
        return cls(epoch, server, pruned, count, {row_id(text): text for text in texts if text})


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
        """The statement that asks for the newest row and those after it, up to a limit."""
        return _READ

    @cached_property
    def unchanged(self) -> str:
        """The answer as long as nothing is new."""
        return SEPARATOR.join((self.epoch, "", self.pruned, "", self.newest or ""))

    def look(self, connection: Connection) -> Position | None:
        """How far the reader is if nothing is new, or `None` if something may be."""
        return self if self._is_unchanged(self._ask(connection, 1)) else None

    def read(self, connection: Connection, rows_max: int) -> tuple[tuple[Change, ...], Position]:
        """What is new since, and how far the reader is then."""
        fetched = self._ask(connection, rows_max + 1)
        if self._is_unchanged(fetched):
            return (), self
        if len(fetched) > rows_max + 1:
            raise too_many(rows_max)
        answer = Answer.of(fetched)
        if answer is None or answer.epoch != self.epoch:
            raise JournalLost("another database has taken the place of the one that was read")
        return self._read_on(connection, answer, rows_max)

    def _ask(self, connection: Connection, rows_max: int) -> Sequence[Any]:
        """The newest row, and up to so many after it."""
        return fetch_rows(connection, self.question, (self.last, rows_max + 1))

    def _is_unchanged(self, fetched: Sequence[Any]) -> bool:
        return len(fetched) == 1 and fetched[0][0] == self.unchanged

    def _read_on(
        self, _connection: Connection, answer: Answer, _rows_max: int
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
    return IdPosition(**started(start_answer(connection, _START)))


def start_answer(connection: Connection, statement: str) -> Answer:
    """What a statement that asks for the newest row finds."""
    answer = Answer.of(connection.exec_driver_sql(statement).fetchall())
    if answer is None:
        raise no_epoch()
    return answer


def started(answer: Answer) -> dict[str, Any]:
    """The members of a new position."""
    # Pruning always leaves a row: where there is none, somebody has emptied the table, and its
    # numbers may begin anew.
    last = max(answer.rows, default=0)
    return {
        "epoch": answer.epoch,
        "pruned": answer.pruned,
        "last": last,
        "newest": answer.rows.get(last),
    }
