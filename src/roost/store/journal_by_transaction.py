"""Reading the journal by transaction, where the database tells which ones are running.

PostgreSQL numbers transactions as well as rows. A reader remembers which transactions it could
not see: those that ran, and those to come. What it has not read yet are their rows, whatever
the numbers of the rows are, and none of them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    "concat(changes.id, '|', changes.kind, '|', changes.provider_id, '|',"
    " extract(epoch FROM changes.created_at), '|', changes.provider_uuid)"
)
# Who asks a server that was started at another time asks another server, or one that was restored:
# transactions that this reader has seen may be missing there, and their numbers used again.
_HEAD = (
    "concat(txid_current_snapshot(), '|', meta.value, ' ',"
    " extract(epoch FROM pg_postmaster_start_time()), '|',"
    " (SELECT value FROM roost_meta WHERE name = 'pruned'))"
)
_NEWEST = (
    f"SELECT {_HEAD}, {_ROW} FROM roost_meta AS meta"
    " LEFT JOIN roost_changes AS changes ON changes.id = {id} WHERE meta.name = 'epoch'"
)
_START = _NEWEST.format(id="(SELECT max(id) FROM roost_changes)")
_ROWS = f"SELECT NULL, {_ROW} FROM roost_changes AS changes WHERE transaction_id"
# A higher transaction than any so far comes from the cluster in which the database was before.
_LATER = f"{_ROWS} >= %s AND transaction_id < txid_snapshot_xmax(txid_current_snapshot())"
# Without a limit the server takes it that there are many, and thinks twice about each question.
_FEW = 10
_FEW_LATER = f"({_LATER} ORDER BY transaction_id LIMIT {_FEW})"

# What is said of a row that is not there; no row has this number.
_NO_ROW = SEPARATOR * 4
_NO_ID = 0


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Which transactions can be seen: those below `end` that were not running."""

    # The lowest that was running, or else `end`.
    horizon: int
    end: int
    running: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> _Snapshot:
        horizon, end, running = text.split(":")
        return cls(int(horizon), int(end), tuple(map(int, running.split(","))) if running else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPosition(Position):
    """The transactions that were seen, and what tells whether it is still the same journal."""

    # What the database said of the journal as a whole.
    head: str
    journal: str
    snapshot: _Snapshot
    # The highest transaction of which rows were pruned: a number, or nothing.
    pruned: str
    # The row with the highest number.
    newest: str
    newest_id: int

    def read(self, connection: Connection) -> tuple[tuple[Change, ...], Position]:
        """What is new since, and how far the reader is then."""
        rows = fetch_rows(connection, *self.question(_FEW_LATER))
        if len(rows) == 1 and tuple(rows[0]) == (self.head, self.newest):
            return (), self
        if len(rows) > _FEW:
            rows = fetch_rows(connection, *self.question())
        return self._read_on(rows)

    def question(self, later: str = _LATER) -> tuple[str, tuple[int, ...]]:
        """The statement that asks for the newest row and those that were not seen.

        An array instead of so many places would make the server plan anew each time.
        """
        running = _filled(self.snapshot.running)
        parts = [_NEWEST.format(id="%s"), later]
        if running:
            parts.append(f"{_ROWS} IN ({', '.join(['%s'] * len(running))})")
        return " UNION ALL ".join(parts), (self.newest_id, self.snapshot.end, *running)

    def _read_on(self, rows: Sequence[Any]) -> tuple[tuple[Change, ...], Position]:
        first = next((tuple(row) for row in rows if row[0] is not None), None)
        if first is None or first[1] != self.newest:
            raise JournalLost("the newest change that was read is not there any more")
        new = {row_id(row): row for head, row in rows if head is None}
        last = max(new, default=_NO_ID)
        position = _position(first[0], new[last] if last > self.newest_id else self.newest)
        self._check(position)
        return changes_of(new.values()), position

    def _check(self, now: TransactionPosition) -> None:
        """See that the reader can go on: it is the same journal, and nothing unseen was pruned."""
        if now.journal != self.journal:
            raise JournalLost("the server was replaced or started anew")
        if now.snapshot.horizon < self.snapshot.horizon or now.snapshot.end < self.snapshot.end:
            raise JournalLost("the transactions that were read have not happened yet")
        if now.pruned != self.pruned and int(now.pruned or 0) >= self.snapshot.horizon:
            raise JournalLost("changes that were not read yet have been pruned")


def start_by_transaction(connection: Connection) -> TransactionPosition:
    """The position of a reader that sees what the connection sees now."""
    row = connection.exec_driver_sql(_START).fetchone()
    if row is None:
        raise no_epoch()
    return _position(*row)


def _position(head: str, newest: str) -> TransactionPosition:
    snapshot, journal, pruned = head.split(SEPARATOR)
    return TransactionPosition(
        head=head,
        journal=journal,
        snapshot=_Snapshot.parse(snapshot),
        pruned=pruned,
        newest=newest,
        newest_id=_NO_ID if newest == _NO_ROW else row_id(newest),
    )


def _filled(running: tuple[int, ...]) -> tuple[int, ...]:
    """The same with the last repeated, so that few different statements do for all numbers.

    >>> _filled((5, 6, 7))
    (5, 6, 7, 7)
    """
    if not running:
        return ()
    places = 1 << (len(running) - 1).bit_length()
    return running + running[-1:] * (places - len(running))
