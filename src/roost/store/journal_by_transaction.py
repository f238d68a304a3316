"""Reading the journal by transaction, where the database tells which ones are running.

PostgreSQL numbers transactions as well as rows. A reader remembers which transactions it could
not see: those that ran, and those to come. What it has not read yet are their rows, whatever
the numbers of the rows are, and none of them twice.

When a server process is killed, all of them end, and the server recovers from its log. It then
gives numbers of transactions again that were not in the log, so what is new may look as if it had
been seen. Numbers of rows are in the log before a row can be seen: what is new after a crash has a
higher number than all that was seen before, and a reader asks for these rows as well.

With `synchronous_commit` off, rows can be seen before they are in the log, and a crash loses them.
No process of the server outlives a crash: when another one answers, the reader looks whether what
it found last is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from roost.store.journal_positions import (
    RECENT_MAX,
    SEPARATOR,
    Change,
    JournalLost,
    Position,
    changes_of,
    check_recent,
    fetch_rows,
    no_epoch,
    recent_ids,
    row_id,
    too_many,
)

_ROW = (
    "concat(changes.id, '|', changes.kind, '|', changes.provider_id, '|',"
    " extract(epoch FROM changes.created_at), '|', changes.provider_uuid)"
)
# Who asks a server that was started at another time asks another server, or one that was restored:
# transactions that this reader has seen may be missing there, and their numbers used again.
_HEAD = (
    "concat(txid_current_snapshot(), '|', meta.value, ' ',"
    " extract(epoch FROM pg_postmaster_start_time()), '|', pg_backend_pid(), '|',"
    " (SELECT value FROM roost_meta WHERE name = 'pruned'))"
)
_NEWEST = (
    f"SELECT {_HEAD}, {_ROW} FROM roost_meta AS meta"
    " LEFT JOIN roost_changes AS changes ON changes.id = {id} WHERE meta.name = 'epoch'"
)
_START = _NEWEST.format(id="(SELECT max(id) FROM roost_changes)")
_RECENT = f"SELECT id FROM roost_changes ORDER BY id DESC LIMIT {RECENT_MAX}"
_ROWS = f"SELECT NULL, {_ROW} FROM roost_changes AS changes WHERE"
# A higher transaction than any so far comes from the cluster in which the database was before.
_THIS_CLUSTER = "transaction_id < txid_snapshot_xmax(txid_current_snapshot())"
_HIGHER = f"({_ROWS} id > %s AND {_THIS_CLUSTER} ORDER BY id LIMIT {{limit}})"
_LATER = (
    f"({_ROWS} transaction_id >= %s AND {_THIS_CLUSTER} ORDER BY transaction_id LIMIT {{limit}})"
)
# Without a low limit the server takes it that there are many, and thinks twice about each question.
_FEW = 10

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
    # The process of the server that answered.
    backend: str
    snapshot: _Snapshot
    # The highest transaction of which rows were pruned: a number, or nothing.
    pruned: str
    # The row with the highest number.
    newest: str
    newest_id: int
    # The numbers of the rows that were found last.
    recent: tuple[int, ...]

    def look(self, connection: Connection) -> Position | None:
        """How far the reader is if nothing is new, or `None` if something may be."""
        rows = fetch_rows(connection, *self.question())
        if self._is_unchanged(rows):
            return self
        return None if _new(rows) else self._read_on(connection, rows)[1]

    def read(self, connection: Connection, rows_max: int) -> tuple[tuple[Change, ...], Position]:
        """What is new since, and how far the reader is then."""
        rows = fetch_rows(connection, *self.question())
        if self._is_unchanged(rows):
            return (), self
        if len(_new(rows)) >= _FEW:
            rows = fetch_rows(connection, *self.question(rows_max + 1))
        if len(_new(rows)) > rows_max:
            raise too_many(rows_max)
        return self._read_on(connection, rows)

    def question(self, limit: int = _FEW) -> tuple[str, tuple[int, ...]]:
        """The statement that asks for the newest row and those that were not seen.

        It finds most of these twice, by row and by transaction. An array instead of so many places
        would make the server plan anew each time.
        """
        running = _filled(self.snapshot.running)
        parts = [_NEWEST.format(id="%s"), _HIGHER.format(limit=limit), _LATER.format(limit=limit)]
        if running:
            places = ", ".join(["%s"] * len(running))
            parts.append(f"({_ROWS} transaction_id IN ({places}) LIMIT {limit})")
        return " UNION ALL ".join(parts), (
            self.newest_id,
            self.newest_id,
            self.snapshot.end,
            *running,
        )

    def _is_unchanged(self, rows: Sequence[Any]) -> bool:
        return len(rows) == 1 and tuple(rows[0]) == (self.head, self.newest)

    def _read_on(
        self, connection: Connection, rows: Sequence[Any]
    ) -> tuple[tuple[Change, ...], Position]:
        first = next((tuple(row) for row in rows if row[0] is not None), None)
        if first is None or first[1] != self.newest:
            raise JournalLost("the newest change that was read is not there any more")
        new = _new(rows)
        last = max(new, default=_NO_ID)
        position = _position(
            first[0],
            new[last] if last > self.newest_id else self.newest,
            recent_ids(new) or self.recent,
        )
        self._check(position)
        if position.backend != self.backend:
            check_recent(connection, self.recent, self.newest_id)
        return changes_of(new.values()), position

    def _check(self, now: TransactionPosition) -> None:
        """See that the reader can go on: it is the same journal, and nothing unseen was pruned."""
        if now.journal != self.journal:
            raise JournalLost("the server was replaced or started anew")
        if now.snapshot.horizon < self.snapshot.horizon or now.snapshot.end < self.snapshot.end:
            raise JournalLost("the transactions that were read have not happened yet")
        # After a crash, what was not read may have lower transactions. It has higher numbers than
        # the newest row, which is pruned before, if there is one.
        may_be_unread = self.newest_id == _NO_ID or int(now.pruned or 0) >= self.snapshot.horizon
        if now.pruned != self.pruned and may_be_unread:
            raise JournalLost("changes that were not read yet have been pruned")


def start_by_transaction(connection: Connection) -> TransactionPosition:
    """The position of a reader that sees what the connection sees now."""
    row = connection.exec_driver_sql(_START).fetchone()
    if row is None:
        raise no_epoch()
    head, newest = row
    return _position(head, newest, recent_ids(connection.exec_driver_sql(_RECENT).scalars()))


def _new(rows: Sequence[Any]) -> dict[int, str]:
    """The rows of an answer that were not seen, by number."""
    return {row_id(row): row for head, row in rows if head is None}


def _position(head: str, newest: str, recent: tuple[int, ...]) -> TransactionPosition:
    snapshot, journal, backend, pruned = head.split(SEPARATOR)
    return TransactionPosition(
        head=head,
        journal=journal,
        backend=backend,
        snapshot=_Snapshot.parse(snapshot),
        pruned=pruned,
        newest=newest,
        newest_id=_NO_ID if newest == _NO_ROW else row_id(newest),
        recent=recent,
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
