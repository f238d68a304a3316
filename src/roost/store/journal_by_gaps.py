"""Reading the journal where numbers commit out of order and transactions cannot be seen.

MySQL and MariaDB number a row when it is inserted and show it when its transaction commits, so
a row may appear below others that were there long before. A reader therefore remembers which
numbers were missing between those that it saw, and looks for them each time as well.

A number that a transaction took which was rolled back is missing for ever. A number may be
forgotten when two things are sure. First, that the statement which took it is over: an insert
takes its numbers before it has any row, but it does not last long. Second, that no transaction
holds the row: who reads with a lock would have to wait for it. The rows that are held on other
nodes of a Galera cluster do not show this way; there, only time tells.

A server that does not put every commit on disk at once loses the last ones when it crashes, perhaps
rows below others that it kept. When the server was started anew, or another one answers, the reader
looks whether what it found last is still there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.id_gaps import (
    BLOCK_LENGTH,
    Block,
    Gap,
    Gaps,
    Windows,
    gaps_after,
    gaps_in_blocks,
    is_missing,
    windows,
    without,
)
from roost.store.journal_by_id import Answer, IdPosition, start_answer, started
from roost.store.journal_positions import (
    RECENT_MAX,
    SEPARATOR,
    Change,
    JournalLost,
    Position,
    changes_of,
    check_recent,
    fetch_rows,
    recent_ids,
    row_id,
    too_many,
)

# For how long a number is looked for at least.
SECONDS_MIN = 30.0
SECONDS_MIN_IN_CLUSTER = 180.0
# How far the clocks of two hosts may be apart.
_SECONDS_APART = 30
# A reader that has to look for more than that is faster if it reads all tables anew. After that,
# it looks for half of it at most, the newest, so that it can go on.
_GAPS_MAX = 50_000
_GAPS_PER_PROBE = 200
# MariaDB and MySQL have numbers of their own for "somebody holds the row".
_HELD = frozenset({1205, 3572})

_ROW = (
    "CONCAT(changes.id, '|', changes.kind, '|', IFNULL(changes.provider_id, ''), '|',"
    " changes.created_at, '|', IFNULL(changes.provider_uuid, ''))"
)
# Such a number consists of the server's id, the second of its start, and a counter of 24 bits. The
# counter runs over after 16 million numbers: then the reader looks once more than it needs to.
_SERVER = "UUID_SHORT() >> 24"
_PRUNED = "IFNULL((SELECT value FROM roost_meta WHERE name = 'pruned'), '')"
# The other index has all numbers as well, but in an order in which every row has to be looked at.
_BY_NUMBER = "FROM roost_changes AS changes FORCE INDEX (PRIMARY)"
_SELECT = (
    f"SELECT CONCAT(meta.value, '|', {_SERVER}, '|', {{pruned}}, '|', {{count}}, '|',"
    f" IFNULL({_ROW}, ''))"
    " FROM roost_meta AS meta LEFT JOIN roost_changes AS changes ON changes.id {condition}"
    " WHERE meta.name = 'epoch'"
)
_START = _SELECT.format(
    pruned=_PRUNED, count="''", condition="= (SELECT MAX(id) FROM roost_changes)"
)
_RECENT = f"SELECT id {_BY_NUMBER} ORDER BY id DESC LIMIT {RECENT_MAX}"
# A million numbers, one by one, would be most of the time that a reader needs to start.
_BLOCKS = (
    f"SELECT id DIV {BLOCK_LENGTH}, BIT_OR(1 << (id & {BLOCK_LENGTH - 1})),"
    f" TIMESTAMPDIFF(SECOND, MAX(created_at), UTC_TIMESTAMP()) {_BY_NUMBER}"
    f" GROUP BY id DIV {BLOCK_LENGTH} ORDER BY NULL"
)


@dataclass(frozen=True, kw_only=True)
class GapPosition(IdPosition):
    """The newest row that was seen, and the numbers below it that were not."""

    server: str
    # The numbers of the rows that were found last.
    recent: tuple[int, ...]
    gaps: Gaps
    in_cluster: bool
    clock: Callable[[], float]

    @cached_property
    def windows(self) -> Windows:
        """Where to look for what is missing."""
        return windows(self.gaps)

    @cached_property
    def edge_matters(self) -> bool:
        """Whether rows that were not seen may be pruned while the newest is still there."""
        return bool(self.gaps) or self.newest is None

    @cached_property
    def question(self) -> str:
        """The statement that asks for the newest row, those after it, and whether gaps filled.

        The rows around the gaps are counted, not fetched: it is one number as long as none came.
        """
        ranges = _in_ranges(self.windows.ranges)
        return (
            _SELECT.format(
                pruned=_PRUNED if self.edge_matters else "''",
                count=f"(SELECT COUNT(*) {_BY_NUMBER} WHERE {ranges})" if self.gaps else "''",
                condition=">= %s",
            )
            + " LIMIT %s"
        )

    @cached_property
    def unchanged(self) -> str:
        """The answer as long as nothing is new."""
        pruned = self.pruned if self.edge_matters else ""
        count = str(self.windows.known) if self.gaps else ""
        return SEPARATOR.join((self.epoch, self.server, pruned, count, self.newest or ""))

    def forget_gaps(self, connection: Connection) -> Position:
        """The same without numbers that no transaction will use any more."""
        seconds = SECONDS_MIN_IN_CLUSTER if self.in_cluster else SECONDS_MIN
        limit = self.clock() - seconds
        old = [gap for gap in self.gaps if gap.noted <= limit]
        if not old:
            return self
        kept = [gap for gap in self.gaps if gap.noted > limit]
        for start in range(0, len(old), _GAPS_PER_PROBE):
            kept += self._still_open(connection, old[start : start + _GAPS_PER_PROBE])
        return replace(self, gaps=tuple(sorted(kept, key=lambda gap: gap.first)))

    def _read_on(
        self, connection: Connection, answer: Answer, rows_max: int
    ) -> tuple[tuple[Change, ...], Position]:
        rows = self.newer(answer.rows)
        pruned = answer.pruned if self.edge_matters else self.pruned
        self.check_edge(pruned, self.gaps[0].first if self.gaps else self.last + 1)
        if answer.server != self.server:
            check_recent(connection, self.recent, self.last)
        late = self._late_rows(connection, answer, rows_max - len(rows))
        gaps = (
            *without(self.gaps, sorted(late)),
            *gaps_after(self.last, sorted(rows), self.clock()),
        )
        if len(gaps) > _GAPS_MAX:
            raise JournalLost(f"{len(gaps)} ranges of changes are missing")
        changes = changes_of((*rows.values(), *late.values()))
        recent = recent_ids((*rows, *late)) or self.recent
        return changes, self.moved(
            rows, server=answer.server, pruned=pruned, recent=recent, gaps=gaps
        )

    def _late_rows(self, connection: Connection, answer: Answer, rows_max: int) -> dict[int, str]:
        """The rows that have turned up in gaps."""
        found = int(answer.count) - self.windows.known if self.gaps else 0
        if not found:
            return {}
        if found < 0:
            raise JournalLost("changes that were read are not there any more")
        if found > rows_max:
            raise too_many(rows_max)
        statement = f"SELECT {_ROW} {_BY_NUMBER} WHERE {_in_ranges(self.windows.ranges)}"
        rows = {row_id(row): row for (row,) in fetch_rows(connection, statement, ())}
        return {id_: row for id_, row in rows.items() if is_missing(self.gaps, id_)}

    def _still_open(self, connection: Connection, gaps: Sequence[Gap]) -> Iterator[Gap]:
        """What is left of gaps that are old enough: all of them while any of them is held."""
        if self.in_cluster:
            ranges = _in_ranges([(gap.first, gap.last) for gap in gaps])
            found: list[int] | None = _ids(connection, f"SELECT id {_BY_NUMBER} WHERE {ranges}")
        else:
            # The gaps between rows must not be locked, others insert there; this is for the
            # next statement only, and fails within a transaction, which would keep the locks.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            found = _locked_ids(connection, " UNION ALL ".join(map(_locking, gaps)))
        if found is None:
            yield from gaps
            return
        # These came after the last reading: they are still to be read.
        for gap in gaps:
            yield from (Gap(id_, id_, gap.noted) for id_ in found if gap.first <= id_ <= gap.last)


def start_by_gaps(
    connection: Connection, clock: Callable[[], float] = time.monotonic
) -> GapPosition:
    """The position of a reader that sees what the connection sees now.

    Which numbers are missing belongs to it: some of them may be about to be committed.
    """
    answer = start_answer(connection, _START)
    blocks = sorted(
        (
            Block(int(index), int(bits), max(0, int(age) - _SECONDS_APART))
            for index, bits, age in connection.exec_driver_sql(_BLOCKS)
        ),
        key=lambda block: block.index,
    )
    now = clock()
    gaps = gaps_in_blocks(int(answer.pruned or 0), blocks, now)
    in_cluster = _is_cluster(connection)
    if in_cluster:
        # Numbers go up in steps there: most are missing, nearly all of them for ever.
        gaps = (gap for gap in gaps if gap.noted > now - SECONDS_MIN_IN_CLUSTER)
    return GapPosition(
        **started(answer),
        server=answer.server,
        recent=recent_ids(_ids(connection, _RECENT)),
        gaps=tuple(deque(gaps, _GAPS_MAX // 2)),
        in_cluster=in_cluster,
        clock=clock,
    )


def _is_cluster(connection: Connection) -> bool:
    # Not every server has this variable.
    found = connection.exec_driver_sql("SHOW VARIABLES LIKE 'wsrep_on'").fetchall()
    return any(value == "ON" for _, value in found)


def lock_oldest(connection: Connection, count: int) -> list[int] | None:
    """Lock the oldest rows; their numbers, or nothing if somebody holds a row between them."""
    # It is the limit that keeps it from the rows after them, which somebody may well hold.
    return _locked_ids(
        connection, f"SELECT id {_BY_NUMBER} ORDER BY id LIMIT {count} FOR UPDATE NOWAIT"
    )


def _locking(gap: Gap) -> str:
    """A statement that looks for the rows of one gap, and fails if somebody holds one.

    With a statement for many gaps at once, a server may rather go through the whole table, and
    meet rows which somebody holds that have nothing to do with it.
    """
    ranges = _in_ranges([(gap.first, gap.last)])
    return f"(SELECT id {_BY_NUMBER} WHERE {ranges} FOR UPDATE NOWAIT)"


def _locked_ids(connection: Connection, statement: str) -> list[int] | None:
    try:
        return _ids(connection, statement)
    except DBAPIError as error:
        if next(iter(getattr(error.orig, "args", ())), None) not in _HELD:
            raise
        return None


def _ids(connection: Connection, statement: str) -> list[int]:
    return [int(id_) for (id_,) in connection.exec_driver_sql(statement)]


def _in_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    return " OR ".join(f"id BETWEEN {first} AND {last}" for first, last in ranges)
