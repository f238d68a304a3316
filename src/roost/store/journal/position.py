"""What a reader of the journal does: the interface that each database implements."""

from __future__ import annotations

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self, TypeAlias

from sqlalchemy import Connection

from roost.store.connections.errors import DatabaseUnusable
from roost.store.dialect import dialect_of
from roost.store.journal.writing import ChangeKind

# How many new rows a look reads at most.
LOOK_ROWS_MAX = 64


# A text with more bytes than these is no position.
_TEXT_BYTES_MAX = 2**22
_ID_MAX = 2**63 - 1


class NoPosition(Exception):
    """A text that no position of this kind of database has."""


class JournalLost(Exception):
    """The reader cannot continue from its position: it has to read all tables again."""


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


def too_many(rows_max: int) -> JournalLost:
    """The error of a reader so far behind that reading all tables is faster."""
    return JournalLost(f"more than {rows_max} changes are new")


def no_epoch() -> DatabaseUnusable:
    """The error of a journal without the row that distinguishes it from other journals."""
    return DatabaseUnusable(
        "The table roost_meta has lost its row `epoch`. Insert it again, with a value that was "
        "never used before."
    )
