"""What the readers of several databases have in common: they read on by the ids of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sqlalchemy import Connection

from roost.store.journal.position import (
    LOOK_ROWS_MAX,
    JournalLost,
    Position,
    Reading,
    checked_id,
    checked_text,
    no_epoch,
    too_many,
)
from roost.store.journal.rows import SEPARATOR, fetch_rows, row_id


@dataclass(frozen=True, slots=True)
class JournalAnswer:
    """What the database says of the journal as a whole, and rows of the journal by id."""

    epoch: str
    # Which server answers and since when it runs; empty for a file.
    server: str
    # The highest id that pruning has deleted; empty if the journal was never pruned.
    pruned: str
    # How many rows there are in the gaps; empty where they were not counted.
    count: str
    rows: dict[int, str]

    @classmethod
    def of(cls, fetched: Sequence[Any]) -> JournalAnswer | None:
        """What texts like `epoch|server|pruned|count|row` say; the row may be empty."""
        if not fetched:
            return None
        epoch, server, pruned, count, _ = fetched[0][0].split(SEPARATOR, 4)
        texts = (text.split(SEPARATOR, 4)[4] for (text,) in fetched)
        return cls(epoch, server, pruned, count, {row_id(text): text for text in texts if text})

    @classmethod
    def at_start(cls, connection: Connection, statement: str) -> JournalAnswer:
        """The answer to a statement that asks for the newest row."""
        answer = cls.of(connection.exec_driver_sql(statement).fetchall())
        if answer is None:
            raise no_epoch()
        return answer


@dataclass(frozen=True, kw_only=True)
class IdPosition(Position):
    """The newest row that the reader has seen, and what identifies the journal.

    The reader asks for that row again each time. If the row is missing or different, the database
    was restored, or rows that the reader has not seen were pruned.
    """

    epoch: str
    pruned: str
    # The id of the newest row, and the row; `None` in a journal without rows.
    last: int
    newest: str | None

    @classmethod
    def at(cls, answer: JournalAnswer, **members: Any) -> Self:
        """The position of a reader that has got this answer at its start."""
        # Pruning always leaves a row. A journal without rows was emptied by hand, and its ids may
        # begin again.
        last = max(answer.rows, default=0)
        return cls(
            epoch=answer.epoch,
            pruned=answer.pruned,
            last=last,
            newest=answer.rows.get(last),
            **members,
        )

    def values(self) -> list[Any]:
        """What the position consists of, in terms of JSON."""
        return [self.epoch, self.pruned, self.last, self.newest]

    @classmethod
    def of_values(cls, *values: Any) -> Self:
        """The position of such values."""
        epoch, pruned, last, newest, *others = values
        return cls(
            epoch=checked_text(epoch),
            pruned=str(checked_id(int(pruned))) if pruned else "",
            last=checked_id(last),
            newest=None if newest is None else checked_text(newest),
            **cls._further_members(*others),
        )

    @classmethod
    def _further_members(cls, *values: Any) -> dict[str, Any]:
        """The members of a subclass, of values that follow those of every such position."""
        if values:
            raise ValueError(values)
        return {}

    @property
    @abstractmethod
    def question(self) -> str:
        """The statement that asks for the newest row and the rows after it, up to a limit."""

    @property
    @abstractmethod
    def unchanged(self) -> str:
        """The one row of the answer as long as nothing is new."""

    @abstractmethod
    def _read_on(self, connection: Connection, answer: JournalAnswer, rows_max: int) -> Reading:
        """What an answer says that is not `unchanged`, and the position after that."""

    def look(self, connection: Connection) -> Reading | None:
        """What was committed since, by id, and the position after that, in one round trip."""
        fetched = self._ask(connection, LOOK_ROWS_MAX)
        if self._is_unchanged(fetched):
            return (), self
        if len(fetched) > LOOK_ROWS_MAX:
            return None
        answer = self._checked(fetched)
        return self._read_on(connection, answer, 0) if self._is_whole(answer) else None

    def read(self, connection: Connection, rows_max: int) -> Reading:
        """What was committed since, by id, and the position after that."""
        fetched = self._ask(connection, rows_max + 1)
        if self._is_unchanged(fetched):
            return (), self
        if len(fetched) > rows_max + 1:
            raise too_many(rows_max)
        return self._read_on(connection, self._checked(fetched), rows_max)

    def _checked(self, fetched: Sequence[Any]) -> JournalAnswer:
        answer = JournalAnswer.of(fetched)
        if answer is None or answer.epoch != self.epoch:
            raise JournalLost("another database has taken the place of the one that was read")
        return answer

    def _is_whole(self, answer: JournalAnswer) -> bool:
        """Whether an answer has all rows that are new."""
        return True

    def _ask(self, connection: Connection, rows_max: int) -> Sequence[Any]:
        """The newest row, and up to this number of rows after it."""
        return fetch_rows(connection, self.question, (self.last, rows_max + 1))

    def _is_unchanged(self, fetched: Sequence[Any]) -> bool:
        return len(fetched) == 1 and fetched[0][0] == self.unchanged

    def check_pruned(self, pruned: str, first_unread: int) -> None:
        """Raise `JournalLost` if rows from this id on, which were not read, have been pruned."""
        if pruned != self.pruned and int(pruned or 0) >= first_unread:
            raise JournalLost("changes that were not read yet have been pruned")

    def newer(self, rows: dict[int, str]) -> dict[int, str]:
        """The rows after the newest; `JournalLost` is raised unless that is among the rows."""
        newer = dict(rows)
        if self.newest is not None and newer.pop(self.last, None) != self.newest:
            raise JournalLost("the newest change that was read is not there any more")
        return newer

    def moved(self, rows: dict[int, str], **members: Any) -> Self:
        """The position after these newer rows."""
        last = max(rows, default=self.last)
        return replace(self, last=last, newest=rows.get(last, self.newest), **members)
