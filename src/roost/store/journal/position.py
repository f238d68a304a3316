"""What a reader of the journal does: the interface that each database implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from sqlalchemy import Connection

from roost.store.errors import DatabaseUnusable
from roost.store.journal.writing import ChangeKind


class JournalLost(Exception):
    """The reader cannot continue from its position: it has to read all tables again."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A row of the journal: what a reader has to read again.

    `provider_id` is `None` where the names of resource classes or traits changed.
    """

    id: int
    kind: ChangeKind
    provider_id: int | None


class Position(ABC):
    """How far a reader has read. A position never changes: reading on makes another."""

    @classmethod
    @abstractmethod
    def start(cls, connection: Connection) -> Self:
        """The position of a reader that sees what the connection sees now."""

    @abstractmethod
    def look(self, connection: Connection) -> Position | None:
        """The position if nothing is new, or `None` if something may be.

        It is one round trip while nothing is new. Its cost does not grow with what is new.
        """

    @abstractmethod
    def read(
        self, connection: Connection, rows_max: int
    ) -> tuple[tuple[JournalEntry, ...], Position]:
        """What was committed since, by id, and the position after that.

        In a transaction with a snapshot, it reads what is new in that snapshot. `JournalLost` is
        raised when the position is no longer valid, or when more than `rows_max` rows are new.
        """

    def forget_gaps(self, connection: Connection) -> Position:
        """The same position without missing ids that can no longer appear.

        A reader calls it after its start and then every few seconds, because missing ids make
        reading slower. The connection must have no transaction: rows may be locked for a moment.
        Only MySQL and MariaDB have missing ids; without any, no statement is sent.
        """
        return self


def too_many(rows_max: int) -> JournalLost:
    """The error of a reader so far behind that reading all tables is faster."""
    return JournalLost(f"more than {rows_max} changes are new")


def no_epoch() -> DatabaseUnusable:
    """The error of a journal without the row that distinguishes it from other journals."""
    return DatabaseUnusable(
        "The table roost_meta has lost its row `epoch`. Insert it again, with a value that was "
        "never used before."
    )
