"""Reading and pruning the journal of SQLite, which has one writer at a time.

So a new row of the journal has a higher id than all rows that a reader has seen. For the same
reason, a file that lost changes or was restored always lacks the newest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from sqlalchemy import Connection

from roost.store.journal.position import (
    SEPARATOR,
    IdPosition,
    JournalAnswer,
    Reading,
    entries_of,
)
from roost.store.journal.pruning import OldRows

_ROW = (
    "changes.id || '|' || changes.kind || '|' || ifnull(changes.provider_id, '')"
    " || '|' || changes.created_at || '|' || ifnull(changes.provider_uuid, '')"
    " || '|' || ifnull(changes.usages, '')"
)
_PRUNED = "ifnull((SELECT value FROM roost_meta WHERE name = 'pruned'), '')"
_SELECT = (
    f"SELECT meta.value || '||' || {_PRUNED} || '||' || ifnull({_ROW}, '')"
    " FROM roost_meta AS meta LEFT JOIN roost_changes AS changes ON changes.id"
)
_START = _SELECT + " = (SELECT max(id) FROM roost_changes) WHERE meta.name = 'epoch'"
_READ = _SELECT + " >= ? WHERE meta.name = 'epoch' LIMIT ?"


@dataclass(frozen=True, kw_only=True)
class SqlitePosition(IdPosition):
    """The newest row that the reader has seen: all other rows that it has seen are below."""

    @classmethod
    def start(cls, connection: Connection) -> Self:
        """The position of a reader that sees what the connection sees now."""
        return cls.at(JournalAnswer.at_start(connection, _START))

    @property
    def question(self) -> str:
        """The statement that asks for the newest row and the rows after it, up to a limit."""
        return _READ

    @cached_property
    def unchanged(self) -> str:
        """The one row of the answer as long as nothing is new."""
        return SEPARATOR.join((self.epoch, "", self.pruned, "", self.newest or ""))

    def _read_on(self, _connection: Connection, answer: JournalAnswer, _rows_max: int) -> Reading:
        self.check_pruned(answer.pruned, self.last + 1)
        rows = self.newer(answer.rows)
        return entries_of(rows.values()), self.moved(rows, pruned=answer.pruned)


class SqliteOldRows(OldRows):
    """The oldest rows. Pruning is the one writer, so all rows that it sees are committed."""

    def deletable(self, _connection: Connection, rows: Sequence[Any]) -> Sequence[Any]:
        """All of these rows."""
        return rows
