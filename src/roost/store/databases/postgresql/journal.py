"""Reading and pruning the journal of PostgreSQL, whose server tells which transactions run.

PostgreSQL gives ids to transactions as well as to rows. The reader remembers which transactions it
could not see: those that ran, and those to come. It has not read their rows yet, whatever the ids
of the rows are, and has read all other rows.

When a process of the server is killed, all its processes end, and the server recovers from its log.
It then gives ids to transactions again that were not in the log. So the rows of a new transaction
may look as if the reader had seen them. The id of a row is in the log before the row can be seen.
So a new row has, after a crash, a higher id than all rows that the reader saw before. The reader
therefore asks for rows with higher ids as well.

With `synchronous_commit` off, rows can be seen before they are in the log, and a crash loses them.
No process of the server survives a crash. When another process answers, the reader checks that the
rows which it found most recently are still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Self

from sqlalchemy import BigInteger, ColumnElement, Connection, func

from roost.store.journal.position import (
    RECENT_MAX,
    SEPARATOR,
    JournalLost,
    Position,
    Reading,
    check_recent,
    checked_id,
    checked_text,
    entries_of,
    fetch_rows,
    ids_of,
    no_epoch,
    recent_ids,
    row_id,
    steps_of,
    too_many,
    without_usages,
)
from roost.store.journal.pruning import OldRows
from roost.store.meta import has_triggers
from roost.store.tables import roost_changes

_ROW = (
    "concat(changes.id, '|', changes.kind, '|', changes.provider_id, '|',"
    " extract(epoch FROM changes.created_at), '|', changes.provider_uuid, '|', changes.usages)"
)
# A different start time means another server, or one that was restored. Transactions that the
# reader has seen may be missing there, and other transactions may have their ids.
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
# A transaction id that this cluster has not reached comes from the cluster that the database was
# copied from.
_THIS_CLUSTER = "transaction_id < txid_snapshot_xmax(txid_current_snapshot())"
_HIGHER = f"({_ROWS} id > %s AND {_THIS_CLUSTER} ORDER BY id LIMIT {{limit}})"
_LATER = (
    f"({_ROWS} transaction_id >= %s AND {_THIS_CLUSTER} ORDER BY transaction_id LIMIT {{limit}})"
)
# Without a low limit, the server expects many rows and takes longer to plan each statement.
_FEW = 10

# The same in terms of SQLAlchemy, for pruning.
_TRANSACTION = func.coalesce(roost_changes.c.transaction_id, 0)
_SNAPSHOT = func.txid_current_snapshot()
_HORIZON = func.txid_snapshot_xmin(_SNAPSHOT, type_=BigInteger)
_END = func.txid_snapshot_xmax(_SNAPSHOT, type_=BigInteger)

# The text of a row that is not there. No row has the id 0.
_NO_ROW = SEPARATOR * 5
_NO_ID = 0


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Which transactions the reader sees: those below `end` that were not running."""

    # The lowest transaction that was running, or else `end`.
    horizon: int
    end: int
    running: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> _Snapshot:
        horizon, end, running = text.split(":")
        return cls(int(horizon), int(end), tuple(map(int, running.split(","))) if running else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresqlPosition(Position):
    """The transactions that the reader has seen, and what identifies the journal."""

    # What the database said of the journal as a whole.
    head: str
    journal: str
    # The id of the server's process that answered.
    backend: str
    snapshot: _Snapshot
    # The highest transaction of which rows were pruned; empty if the journal was never pruned.
    pruned: str
    # The row with the highest id.
    newest: str
    newest_id: int
    # The ids of the rows that the reader found most recently.
    recent: tuple[int, ...]

    @classmethod
    def start(cls, connection: Connection) -> Self:
        """The position of a reader that sees what the connection sees now."""
        row = connection.exec_driver_sql(_START).fetchone()
        if row is None:
            raise no_epoch()
        head, newest = row
        return cls._at(head, newest, recent_ids(connection.exec_driver_sql(_RECENT).scalars()))

    @classmethod
    def _at(cls, head: str, newest: str, recent: tuple[int, ...]) -> Self:
        snapshot, journal, backend, pruned = head.split(SEPARATOR)
        return cls(
            head=head,
            journal=journal,
            backend=backend,
            snapshot=_Snapshot.parse(snapshot),
            pruned=pruned,
            newest=newest,
            newest_id=_NO_ID if newest == _NO_ROW else row_id(newest),
            recent=recent,
        )

    def values(self) -> list[Any]:
        """What the position consists of, in terms of JSON."""
        return [self.head, self.newest, steps_of(self.recent)]

    @classmethod
    def of_values(cls, *values: Any) -> Self:
        """The position of such values."""
        head, newest, recent = values
        found = cls._at(checked_text(head), checked_text(newest), recent_ids(ids_of(recent)))
        for id_ in (found.newest_id, found.snapshot.end, *found.snapshot.running):
            checked_id(id_)
        return found

    def look(self, connection: Connection) -> Reading | None:
        """What was committed since, by id, and the position after that, in one round trip."""
        rows = fetch_rows(connection, *self.question())
        if self._is_unchanged(rows):
            return (), self
        new = _new(rows)
        return self._read_on(connection, rows, new) if len(new) < _FEW else None

    def read(self, connection: Connection, rows_max: int) -> Reading:
        """What was committed since, by id, and the position after that."""
        rows = fetch_rows(connection, *self.question())
        if self._is_unchanged(rows):
            return (), self
        new = _new(rows)
        if len(new) >= _FEW:
            rows = fetch_rows(connection, *self.question(rows_max + 1))
            new = _new(rows)
        if len(new) > rows_max:
            raise too_many(rows_max)
        return self._read_on(connection, rows, new)

    def check(self, connection: Connection) -> None:
        """Raise `JournalLost` if a reader cannot continue from here, however much is new."""
        self._read_on(connection, fetch_rows(connection, *self.question(1)), {})

    def has_seen(self, id_: int, transaction_id: int | None) -> bool:
        """Whether the reader has seen the row with this id, of this transaction."""
        snapshot = self.snapshot
        return id_ <= self.newest_id and (
            transaction_id is None
            or (transaction_id < snapshot.end and transaction_id not in snapshot.running)
        )

    def seen_below(self, connection: Connection) -> int:
        """An id up to which the reader has seen all rows."""
        statement = "SELECT min(id) FROM roost_changes WHERE transaction_id >= %s AND id <= %s"
        ((lowest,),) = fetch_rows(connection, statement, (self.snapshot.horizon, self.newest_id))
        return self.newest_id if lowest is None else int(lowest) - 1

    def question(self, limit: int = _FEW) -> tuple[str, tuple[int, ...]]:
        """The statement that asks for the newest row and for the rows that were not seen.

        It finds most of these rows twice: by row id and by transaction. An array instead of one
        placeholder for each transaction would make the server plan the statement anew each time.
        """
        running = _filled(self.snapshot.running)
        parts = [_NEWEST.format(id="%s"), _HIGHER.format(limit=limit), _LATER.format(limit=limit)]
        if running:
            placeholders = ", ".join(["%s"] * len(running))
            parts.append(f"({_ROWS} transaction_id IN ({placeholders}) LIMIT {limit})")
        return " UNION ALL ".join(parts), (
            self.newest_id,
            self.newest_id,
            self.snapshot.end,
            *running,
        )

    def _is_unchanged(self, rows: Sequence[Any]) -> bool:
        return len(rows) == 1 and tuple(rows[0]) == (self.head, self.newest)

    def _read_on(
        self, connection: Connection, rows: Sequence[Any], new: Mapping[int, str]
    ) -> Reading:
        first = next((tuple(row) for row in rows if row[0] is not None), None)
        if first is None or first[1] != self.newest:
            raise JournalLost("the newest change that was read is not there any more")
        last = max(new, default=_NO_ID)
        position = self._at(
            first[0],
            new[last] if last > self.newest_id else self.newest,
            recent_ids(new) or self.recent,
        )
        self._check(position)
        if position.backend != self.backend:
            check_recent(connection, self.recent, self.newest_id)
        entries = entries_of(new.values())
        return without_usages(entries) if has_triggers(self._epoch) else entries, position

    @property
    def _epoch(self) -> str:
        return self.journal.partition(" ")[0]

    def _check(self, now: Self) -> None:
        """Raise `JournalLost` if it is another journal, or if rows not yet read were pruned."""
        if now.journal != self.journal:
            raise JournalLost("the server was replaced or restarted")
        if now.snapshot.horizon < self.snapshot.horizon or now.snapshot.end < self.snapshot.end:
            raise JournalLost("the transactions that were read have not happened yet")
        # After a crash, unread rows may have lower transactions, but their ids are higher than that
        # of the newest row. So pruning deletes the newest row, if there is one, before them.
        may_be_unread = self.newest_id == _NO_ID or int(now.pruned or 0) >= self.snapshot.horizon
        if now.pruned != self.pruned and may_be_unread:
            raise JournalLost("changes that were not read yet have been pruned")


class PostgresqlOldRows(OldRows):
    """The oldest rows with their transactions. Pruning records the highest transaction."""

    query = OldRows.query.add_columns(
        _TRANSACTION.label("transaction_id"), _HORIZON.label("horizon"), _END.label("end")
    )

    def deletable(self, _connection: Connection, rows: Sequence[Any]) -> Sequence[Any]:
        """The first of these rows, as far as each reader that begins now sees them."""
        return list(takewhile(_is_settled, rows))

    def record(self, pruned: int, rows: Sequence[Any]) -> int:
        """The highest transaction of this cluster of which rows are deleted."""
        horizon = rows[0].horizon
        ids = (pruned, *(row.transaction_id for row in rows))
        return max((id_ for id_ in ids if id_ < horizon), default=0)

    def condition(self, rows: Sequence[Any], record: int) -> ColumnElement[bool]:
        """The rows up to the last of these, but for rows of later transactions."""
        return super().condition(rows, record) & ~_TRANSACTION.between(record + 1, _END - 1)


def _is_settled(row: Any) -> bool:
    """Whether each reader that begins from now on sees the transaction of the row.

    A transaction that this cluster has not reached comes from another cluster, and never runs here.
    """
    return bool(row.transaction_id < row.horizon or row.transaction_id >= row.end)


def _new(rows: Sequence[Any]) -> dict[int, str]:
    """The rows of an answer that were not seen, by id."""
    return {row_id(row): row for head, row in rows if head is None}


def _filled(running: tuple[int, ...]) -> tuple[int, ...]:
    """The same with the last repeated, so that a few statements serve for all lengths.

    >>> _filled((5, 6, 7))
    (5, 6, 7, 7)
    """
    if not running:
        return ()
    length = 1 << (len(running) - 1).bit_length()
    return running + running[-1:] * (length - len(running))
