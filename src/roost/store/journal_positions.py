"""How far a reader has read the change journal: what all databases have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from roost.store.errors import DatabaseUnusable
from roost.store.journal import ChangeKind
from roost.store.sessions import fetch_directly

# A row of the journal is asked for as one text, `id|kind|provider_id|created_at|provider_uuid`:
# drivers spend more on each further column than the database on putting them together, and
# whether a row is still the same is then one comparison. Each database has its own words for it.
SEPARATOR = "|"

# How many rows are looked for when a server may have lost some, at most.
RECENT_MAX = 1000


class JournalLost(Exception):
    """The reader cannot go on from where it was: it has to read all tables anew."""


@dataclass(frozen=True, slots=True)
class Change:
    """That something has to be read again; names that changed belong to no provider."""

    id: int
    kind: ChangeKind
    provider_id: int | None


class Position(ABC):
    """How far a reader has read. It never changes: reading on makes another."""

    @abstractmethod
    def look(self, connection: Connection) -> Position | None:
        """How far the reader is if nothing is new, or `None` if something may be."""

    @abstractmethod
    def read(self, connection: Connection, rows_max: int) -> tuple[tuple[Change, ...], Position]:
        """What is new since, and how far the reader is then."""

    def forget_gaps(self, connection: Connection) -> Position:
        """The same without numbers that no transaction will use any more."""
        return self


def no_epoch() -> DatabaseUnusable:
    """What is wrong with a journal that nobody could tell from another."""
    return DatabaseUnusable(
        "The table roost_meta has lost its row `epoch`. Insert it again, with a value that was "
        "never used before."
    )


def fetch_rows(connection: Connection, statement: str, parameters: Sequence[Any]) -> Sequence[Any]:
    """All rows of a statement in the words of the driver.

    Outside a transaction the driver is asked directly: SQLAlchemy's way around it takes longer
    than SQLite needs in all.
    """
    if connection.in_transaction():
        return connection.exec_driver_sql(statement, tuple(parameters)).fetchall()
    return fetch_directly(connection, statement, parameters)


def too_many(rows_max: int) -> JournalLost:
    """What to say when a reader is so far behind that it is faster to read all tables."""
    return JournalLost(f"more than {rows_max} changes are new")


def recent_ids(ids: Iterable[int]) -> tuple[int, ...]:
    """The numbers by which a reader sees later that nothing of what it read was lost.

    A server that crashes loses what it committed last. This is always among the rows that the
    reader found when it last found any, whatever their numbers are.
    """
    return tuple(sorted(ids)[-RECENT_MAX:])


def check_recent(connection: Connection, recent: Collection[int], newest: int) -> None:
    """See that the rows with these numbers are still there, apart from the pruned.

    The newest row need not be looked for, as each answer has it.
    """
    wanted = [id_ for id_ in recent if id_ != newest]
    if not wanted:
        return
    statement = (
        "SELECT (SELECT MIN(id) FROM roost_changes), COUNT(*)"
        f" FROM roost_changes WHERE id IN ({', '.join(map(str, wanted))})"
    )
    ((oldest, found),) = fetch_rows(connection, statement, ())
    # Pruning takes the lowest numbers, so all that is missing above was lost.
    if found != sum(oldest is not None and id_ >= oldest for id_ in wanted):
        raise JournalLost("the server has lost changes that were read")


def row_id(row: str) -> int:
    """The number of a row of the journal.

    >>> row_id("7|usage|3|2026-01-01 00:00:00|")
    7
    """
    return int(row.partition(SEPARATOR)[0])


def changes_of(rows: Iterable[str]) -> tuple[Change, ...]:
    """What rows of the journal say, in the order of their numbers."""
    return tuple(sorted(map(_change_of, rows), key=lambda change: change.id))


def _change_of(row: str) -> Change:
    id_, kind, provider_id, _ = row.split(SEPARATOR, 3)
    try:
        known_kind = ChangeKind(kind)
    except ValueError:
        # A newer version writes to the same database; it cannot be asked what that means.
        raise JournalLost(f"this version does not know what a change of {kind!r} is") from None
    return Change(int(id_), known_kind, int(provider_id) if provider_id else None)
