"""What a reader of the journal does: the interface that each database implements.

A reader gets each row as one text: `id|kind|provider_id|created_at|provider_uuid|usages`. Drivers
spend more on each further column than the database spends on joining the columns. Whether a row is
still the same is then one comparison. Each database has its own SQL for the text.
"""

from __future__ import annotations

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self, TypeAlias

from sqlalchemy import Connection

from roost.store.connections.errors import DatabaseUnusable
from roost.store.connections.sessions import fetch_directly
from roost.store.dialect import dialect_of
from roost.store.journal.writing import ChangeKind, parse_usages

SEPARATOR = "|"

# How many rows, at most, a reader looks for again after a server may have lost some.
RECENT_MAX = 1000
# How many new rows a look reads at most.
LOOK_ROWS_MAX = 64
# A text with more bytes than these is no position.
_TEXT_BYTES_MAX = 2**22
_ID_MAX = 2**63 - 1


class NoPosition(Exception):
    """A text that no position of this kind of database has."""


class JournalLost(Exception):
    """The reader cannot continue from its position: it has to read all tables again."""


class TooManyChanges(JournalLost):
    """More rows are new than the reader wants to read at once."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A row of the journal: what a reader has to read again.

    `provider_id` is `None` where the names of resource classes or traits changed. `usages` has the
    new usages by resource class, if the writer knows them: then nothing is to be read again.
    """

    id: int
    kind: ChangeKind
    provider_id: int | None
    usages: Mapping[int, int] | None = None


# New rows by id, and the position after them.
Reading: TypeAlias = tuple[tuple[JournalEntry, ...], "Position"]


class Position(ABC):
    """How far a reader has read. A position never changes: reading on makes another."""

    @classmethod
    @abstractmethod
    def start(cls, connection: Connection) -> Self:
        """The position of a reader that sees what the connection sees now."""

    @abstractmethod
    def look(self, connection: Connection) -> Reading | None:
        """What was committed since, by id, and the position after that, in one round trip.

        `None` if one round trip does not suffice, or if much is new: then the reader calls `read`.
        """

    @abstractmethod
    def read(self, connection: Connection, rows_max: int) -> Reading:
        """What was committed since, by id, and the position after that.

        In a transaction with a snapshot, it reads what is new in that snapshot. `JournalLost` is
        raised when the position is no longer valid, or when more than `rows_max` rows are new.
        """

    @abstractmethod
    def check(self, connection: Connection) -> None:
        """Raise `JournalLost` if a reader cannot continue from here, however much is new."""

    @abstractmethod
    def has_seen(self, id_: int, transaction_id: int | None) -> bool:
        """Whether the reader has seen the row with this id, of this transaction."""

    @abstractmethod
    def seen_below(self, connection: Connection) -> int:
        """An id up to which the reader has seen all rows."""

    def to_text(self) -> str:
        """The position for a client that keeps it, in the characters of a URL.

        `from_text` makes an equal position of it, in any process on the same database.
        """
        packed = zlib.compress(json.dumps(self.values(), separators=(",", ":")).encode())
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The position in a text; `NoPosition` if the text is none of this kind of database."""
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            inflating = zlib.decompressobj()
            return cls.of_values(*json.loads(inflating.decompress(packed, _TEXT_BYTES_MAX)))
        except (ValueError, TypeError, zlib.error, RecursionError):
            raise NoPosition from None

    @abstractmethod
    def values(self) -> list[Any]:
        """What the position consists of, in terms of JSON."""

    @classmethod
    @abstractmethod
    def of_values(cls, *values: Any) -> Self:
        """The position of such values; `ValueError` or `TypeError` if no position has them."""

    def forget_gaps(self, connection: Connection) -> Position:
        """The same position without missing ids that can no longer appear.

        A reader calls it after its start and then every few seconds, because missing ids make
        reading slower. The connection must have no transaction: rows may be locked for a moment.
        Without missing ids, no statement is sent.
        """
        return self


def start_position(connection: Connection) -> Position:
    """The position of a reader that is about to read all tables.

    The reader calls it first in the transaction whose snapshot it reads the tables from. Changes
    that the snapshot contains are not reported later. All other changes are.
    """
    return dialect_of(connection).position.start(connection)


def steps_of(ids: Iterable[int]) -> list[int]:
    """Ascending ids as the steps between them, which make a shorter text.

    >>> steps_of([7, 8, 12]), ids_of([7, 1, 4])
    ([7, 1, 4], [7, 8, 12])
    """
    steps, before = [], 0
    for id_ in ids:
        steps.append(id_ - before)
        before = id_
    return steps


def ids_of(steps: Iterable[int]) -> list[int]:
    """The ids with these steps between them; `ValueError` if these are no ids that ascend."""
    return list(accumulate(map(checked_id, steps), lambda before, step: checked_id(before + step)))


def checked_id(value: Any) -> int:
    """The same value; `ValueError` if no row of a database has it as its id, not even none."""
    if type(value) is not int or not 0 <= value <= _ID_MAX:
        raise ValueError(value)
    return value


def checked_text(value: Any) -> str:
    """The same value; `ValueError` if it is no text."""
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def too_many(rows_max: int) -> TooManyChanges:
    """The error of a reader so far behind that reading all tables is faster."""
    return TooManyChanges(f"more than {rows_max} changes are new")


def no_epoch() -> DatabaseUnusable:
    """The error of a journal without the row that distinguishes it from other journals."""
    return DatabaseUnusable(
        "The table roost_meta has lost its row `epoch`. Insert it again, with a value that was "
        "never used before."
    )


def row_id(row: str) -> int:
    """The id of a row.

    >>> row_id("7|usage|3|2026-01-01 00:00:00||0:4")
    7
    """
    return int(row.partition(SEPARATOR)[0])


def entries_of(rows: Iterable[str]) -> tuple[JournalEntry, ...]:
    """What rows say, in the order of their ids."""
    return tuple(sorted(map(_entry_of, rows), key=lambda entry: entry.id))


def _entry_of(row: str) -> JournalEntry:
    id_, kind, provider_id, _, _, usages = row.split(SEPARATOR)
    try:
        known_kind = ChangeKind(kind)
    except ValueError:
        # A newer version writes to the same database.
        raise JournalLost(f"this version does not know what a change of {kind!r} is") from None
    return JournalEntry(
        int(id_), known_kind, int(provider_id) if provider_id else None, parse_usages(usages)
    )


def without_usages(entries: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """The same entries without usages: a reader then reads the usages again.

    Sums rest on the lock of the provider. Programs that do not take this lock make them wrong.
    """
    return tuple(replace(entry, usages=None) for entry in entries)


def fetch_rows(connection: Connection, statement: str, parameters: Sequence[Any]) -> Sequence[Any]:
    """All rows of a statement that has the driver's own placeholders.

    Outside a transaction, the driver is called directly: SQLAlchemy's overhead would be longer
    than the whole statement takes on SQLite.
    """
    if connection.in_transaction():
        return connection.exec_driver_sql(statement, tuple(parameters)).fetchall()
    return fetch_directly(connection, statement, parameters)


def recent_ids(ids: Iterable[int]) -> tuple[int, ...]:
    """The ids by which a reader notices later that the server has lost a row it read.

    A server that crashes loses what it committed last. The rows that the reader found most
    recently always include it, whatever their ids are.
    """
    return tuple(sorted(ids)[-RECENT_MAX:])


def check_recent(connection: Connection, recent: Collection[int], newest_id: int) -> None:
    """Raise `JournalLost` unless the rows with these ids, apart from pruned ones, are there.

    The row with the id `newest_id` is left out, as each answer to a reader contains it.
    """
    wanted = [id_ for id_ in recent if id_ != newest_id]
    if not wanted:
        return
    statement = (
        "SELECT (SELECT MIN(id) FROM roost_changes), COUNT(*)"
        f" FROM roost_changes WHERE id IN ({', '.join(map(str, wanted))})"
    )
    ((oldest, found),) = fetch_rows(connection, statement, ())
    # Pruning deletes the lowest ids, so a row that is missing above the lowest was lost.
    if found != sum(oldest is not None and id_ >= oldest for id_ in wanted):
        raise JournalLost("the server has lost changes that were read")


# What the readers of several databases have in common: they read on by the ids of rows.


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

    def check(self, connection: Connection) -> None:
        """Raise `JournalLost` if a reader cannot continue from here, however much is new."""
        fetched = self._ask(connection, 1)
        if not self._is_unchanged(fetched):
            with suppress(TooManyChanges):
                self._read_on(connection, self._checked(fetched), 0)

    def has_seen(self, id_: int, _transaction_id: int | None) -> bool:
        """Whether the reader has seen the row with this id."""
        return id_ <= self.last

    def seen_below(self, _connection: Connection) -> int:
        """An id up to which the reader has seen all rows."""
        return self.last

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
