"""Rows of the journal as one text each: `id|kind|provider_id|created_at|provider_uuid|usages`.

Drivers spend more on each further column than the database spends on joining the columns.
Whether a row is still the same is then one comparison. Each database has its own SQL for the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from roost.store.connections.sessions import fetch_directly
from roost.store.journal.position import JournalEntry, JournalLost
from roost.store.journal.writing import ChangeKind, parse_usages

SEPARATOR = "|"

# How many rows, at most, a reader looks for again after a server may have lost some.
RECENT_MAX = 1000


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
