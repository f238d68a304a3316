"""Reading and pruning the journal of MySQL and MariaDB, where rows become visible in any order.

The server gives a row its id at the INSERT and shows the row after the COMMIT. So a row may appear
below rows that the reader saw long before. The reader therefore remembers the gaps: the ids that
are missing below the highest id it has seen. It looks into the gaps each time that it reads.

A transaction that is rolled back leaves its ids missing for ever. The reader forgets a missing id
when two things are certain. First, the INSERT that took the id is over: an INSERT takes its ids
before it has any row, but it does not last long, so the reader waits `SECONDS_MIN`. Second, no
transaction holds the row: the reader tries to lock the rows of the gap, and a held row refuses the
lock. Nodes of a Galera cluster do not see each other's locks. There, the reader waits longer, and
does not lock.

A server that does not flush each COMMIT to disk loses the last ones when it crashes, perhaps below
rows that it kept. When the server was restarted, or another server answers, the reader checks
that the rows which it found most recently are still there.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.dialect import dialect_of
from roost.store.journal.position import (
    RECENT_MAX,
    SEPARATOR,
    IdPosition,
    JournalAnswer,
    JournalLost,
    Position,
    Reading,
    check_recent,
    checked_text,
    entries_of,
    fetch_rows,
    ids_of,
    recent_ids,
    row_id,
    steps_of,
    too_many,
    without_usages,
)
from roost.store.journal.pruning import OldRows
from roost.store.meta import has_triggers

# One more range costs a database as much as counting about this many rows.
NEAR = 32
# With many more ranges, a statement takes longer to parse than to execute.
WINDOWS_MAX = 200

RUN_LENGTH = 64
_FULL = (1 << RUN_LENGTH) - 1

# The least time for which a reader looks for a missing id.
SECONDS_MIN = 30.0
SECONDS_MIN_IN_CLUSTER = 180.0
# How far the clocks of two hosts may differ.
_CLOCK_DIFFERENCE_SECONDS = 30
# With more gaps than this, a reader reads all tables again, which is faster. A reader that starts
# keeps only the newest half of this number.
GAPS_MAX = 50_000
_GAPS_PER_PROBE = 200
# MariaDB and MySQL each have an error code for a row that another transaction holds.
_ROW_HELD = frozenset({1205, 3572})

_ROW = (
    "CONCAT(changes.id, '|', changes.kind, '|', IFNULL(changes.provider_id, ''), '|',"
    " changes.created_at, '|', IFNULL(changes.provider_uuid, ''), '|', IFNULL(changes.usages, ''))"
)
# UUID_SHORT() consists of the server's id, the second of its start, and a counter of 24 bits. The
# counter overflows after 16 million calls: then the reader checks once more than necessary.
SERVER = "UUID_SHORT() >> 24"
_PRUNED = "IFNULL((SELECT value FROM roost_meta WHERE name = 'pruned'), '')"
# The index of transactions contains all ids as well, but in an order that makes the server look at
# every row.
_BY_ID = "FROM roost_changes AS changes FORCE INDEX (PRIMARY)"
_SELECT = (
    f"SELECT CONCAT(meta.value, '|', {SERVER}, '|', {{pruned}}, '|', {{count}}, '|',"
    f" IFNULL({_ROW}, ''))"
    " FROM roost_meta AS meta LEFT JOIN roost_changes AS changes ON changes.id {condition}"
    " WHERE meta.name = 'epoch'"
)
_START = _SELECT.format(
    pruned=_PRUNED, count="''", condition="= (SELECT MAX(id) FROM roost_changes)"
)
_RECENT = f"SELECT id {_BY_ID} ORDER BY id DESC LIMIT {RECENT_MAX}"
# Fetching a million ids one by one would take most of the time that a reader needs to start.
_RUNS = (
    f"SELECT id DIV {RUN_LENGTH}, BIT_OR(1 << (id & {RUN_LENGTH - 1})),"
    f" TIMESTAMPDIFF(SECOND, MAX(created_at), UTC_TIMESTAMP()) {_BY_ID}"
    f" GROUP BY id DIV {RUN_LENGTH} ORDER BY NULL"
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of missing ids, both ends included, and when the reader noted it."""

    first: int
    last: int
    noted: float


# Ascending, without overlap.
Gaps: TypeAlias = tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """Ranges of ids that cover all gaps, and how many ids in them are not missing."""

    ranges: tuple[tuple[int, int], ...]
    known: int


@dataclass(frozen=True, slots=True)
class IdRun:
    """Which of the ids from `index * RUN_LENGTH` on there are, lowest bit first."""

    index: int
    bits: int
    # The age of the youngest of their rows, in seconds.
    age: float


def gaps_after(last: int, ids: Iterable[int], noted: float) -> Iterator[Gap]:
    """The gaps between `last` and the ids, which ascend from there.

    >>> [(gap.first, gap.last) for gap in gaps_after(3, [4, 7, 8, 10], noted=0)]
    [(5, 6), (9, 9)]
    """
    for id_ in ids:
        if id_ > last + 1:
            yield Gap(last + 1, id_ - 1, noted)
        last = id_


def gaps_in_runs(after: int, runs: Iterable[IdRun], now: float) -> Iterator[Gap]:
    """The gaps between `after` and the highest id of ascending runs.

    A gap is as old as the rows after it.
    """
    last = after
    for run in runs:
        start = run.index * RUN_LENGTH
        if run.bits == _FULL and start == last + 1:
            last += RUN_LENGTH
            continue
        ids = [start + bit for bit in range(RUN_LENGTH) if run.bits >> bit & 1]
        yield from gaps_after(last, ids, now - run.age)
        last = ids[-1]


def is_missing(gaps: Gaps, id_: int) -> bool:
    """Whether an id lies in a gap."""
    following = bisect_right(gaps, id_, key=lambda gap: gap.first)
    return following > 0 and id_ <= gaps[following - 1].last


def without(gaps: Gaps, ids: Sequence[int]) -> Gaps:
    """The gaps that are left when these ids, which ascend, have appeared."""
    if not ids:
        return gaps
    left: list[Gap] = []
    for gap in gaps:
        found = ids[bisect_left(ids, gap.first) : bisect_right(ids, gap.last)]
        if found:
            left += gaps_after(gap.first - 1, (*found, gap.last + 1), gap.noted)
        else:
            left.append(gap)
    return tuple(left)


def windows(gaps: Gaps) -> Windows:
    """Few ranges that cover all gaps: gaps near to each other share a range."""
    ranges = [(gap.first, gap.last) for gap in gaps]
    near = NEAR
    while True:
        ranges = list(_joined(ranges, near))
        if len(ranges) <= WINDOWS_MAX:
            break
        near *= 4
    covered = sum(last - first + 1 for first, last in ranges)
    missing = sum(gap.last - gap.first + 1 for gap in gaps)
    return Windows(tuple(ranges), covered - missing)


def _joined(ranges: Iterable[tuple[int, int]], near: int) -> Iterator[tuple[int, int]]:
    first, last = None, 0
    for next_first, next_last in ranges:
        if first is None:
            first = next_first
        elif next_first - last > near:
            yield first, last
            first = next_first
        last = next_last
    if first is not None:
        yield first, last


@dataclass(frozen=True, kw_only=True)
class MysqlPosition(IdPosition):
    """The newest row that the reader has seen, and the ids below it that are missing."""

    server: str
    # The ids of the rows that the reader found most recently.
    recent: tuple[int, ...]
    gaps: Gaps
    in_cluster: bool
    clock: Callable[[], float]

    @classmethod
    def start(cls, connection: Connection, clock: Callable[[], float] = time.monotonic) -> Self:
        """The position of a reader that sees what the connection sees now.

        The ids that are missing now belong to the position: a transaction may commit them later.
        """
        answer = JournalAnswer.at_start(connection, _START)
        runs = sorted(_id_runs(connection), key=lambda run: run.index)
        now = clock()
        gaps = gaps_in_runs(int(answer.pruned or 0), runs, now)
        in_cluster = is_cluster(connection)
        if in_cluster:
            # Ids ascend in steps in a cluster: most are missing, nearly all of them for ever.
            gaps = (gap for gap in gaps if gap.noted > now - SECONDS_MIN_IN_CLUSTER)
        return cls.at(
            answer,
            server=answer.server,
            recent=recent_ids(_ids(connection, _RECENT)),
            gaps=tuple(deque(gaps, GAPS_MAX // 2)),
            in_cluster=in_cluster,
            clock=clock,
        )

    def values(self) -> list[Any]:
        """What the position consists of, in terms of JSON; the age of a gap is left out."""
        bounds = (bound for gap in self.gaps for bound in (gap.first, gap.last))
        return [
            *super().values(),
            self.server,
            steps_of(self.recent),
            steps_of(bounds),
            self.in_cluster,
        ]

    @classmethod
    def _further_members(cls, *values: Any) -> dict[str, Any]:
        server, recent, bounds, in_cluster = values
        bounds, now = ids_of(bounds), time.monotonic()
        gaps = (Gap(*pair, noted=now) for pair in zip(bounds[::2], bounds[1::2], strict=True))
        return {
            "server": checked_text(server),
            "recent": recent_ids(ids_of(recent)),
            "gaps": tuple(gaps),
            "in_cluster": bool(in_cluster),
            "clock": time.monotonic,
        }

    @cached_property
    def windows(self) -> Windows:
        """The ranges of ids that the reader looks into for missing ids."""
        return windows(self.gaps)

    @cached_property
    def pruning_matters(self) -> bool:
        """Whether rows that the reader has not seen may be pruned before the newest row is."""
        return bool(self.gaps) or self.newest is None

    @cached_property
    def question(self) -> str:
        """The statement that asks for the newest row, those after it, and rows in gaps.

        The server counts the rows around the gaps. The count is the same until a row appears.
        """
        ranges = _in_ranges(self.windows.ranges)
        return (
            _SELECT.format(
                pruned=_PRUNED if self.pruning_matters else "''",
                count=f"(SELECT COUNT(*) {_BY_ID} WHERE {ranges})" if self.gaps else "''",
                condition=">= %s",
            )
            + " LIMIT %s"
        )

    @cached_property
    def unchanged(self) -> str:
        """The one row of the answer as long as nothing is new."""
        pruned = self.pruned if self.pruning_matters else ""
        count = str(self.windows.known) if self.gaps else ""
        return SEPARATOR.join((self.epoch, self.server, pruned, count, self.newest or ""))

    def forget_gaps(self, connection: Connection) -> Position:
        """The same position without missing ids that can no longer appear."""
        seconds = SECONDS_MIN_IN_CLUSTER if self.in_cluster else SECONDS_MIN
        limit = self.clock() - seconds
        old = [gap for gap in self.gaps if gap.noted <= limit]
        if not old:
            return self
        kept = [gap for gap in self.gaps if gap.noted > limit]
        for start in range(0, len(old), _GAPS_PER_PROBE):
            kept += self._still_open(connection, old[start : start + _GAPS_PER_PROBE])
        return replace(self, gaps=tuple(sorted(kept, key=lambda gap: gap.first)))

    def has_seen(self, id_: int, transaction_id: int | None) -> bool:
        """Whether the reader has seen the row with this id."""
        return super().has_seen(id_, transaction_id) and not is_missing(self.gaps, id_)

    def seen_below(self, connection: Connection) -> int:
        """An id up to which the reader has seen all rows."""
        return self.gaps[0].first - 1 if self.gaps else super().seen_below(connection)

    def _read_on(self, connection: Connection, answer: JournalAnswer, rows_max: int) -> Reading:
        rows = self.newer(answer.rows)
        pruned = answer.pruned if self.pruning_matters else self.pruned
        self.check_pruned(pruned, self.gaps[0].first if self.gaps else self.last + 1)
        if answer.server != self.server:
            check_recent(connection, self.recent, self.last)
        late = self._late_rows(connection, answer, rows_max - len(rows))
        gaps = (
            *without(self.gaps, sorted(late)),
            *gaps_after(self.last, sorted(rows), self.clock()),
        )
        if len(gaps) > GAPS_MAX:
            raise JournalLost(f"{len(gaps)} ranges of changes are missing")
        entries = entries_of((*rows.values(), *late.values()))
        if self.in_cluster or has_triggers(self.epoch):
            # Locks are local to a node, so two nodes may have written sums without each other.
            entries = without_usages(entries)
        recent = recent_ids((*rows, *late)) or self.recent
        return entries, self.moved(
            rows, server=answer.server, pruned=pruned, recent=recent, gaps=gaps
        )

    def _is_whole(self, answer: JournalAnswer) -> bool:
        """Whether an answer has all rows that are new: none has appeared in a gap."""
        return not self.gaps or int(answer.count) == self.windows.known

    def _late_rows(
        self, connection: Connection, answer: JournalAnswer, rows_max: int
    ) -> dict[int, str]:
        """The rows that have appeared in gaps."""
        found = int(answer.count) - self.windows.known if self.gaps else 0
        if not found:
            return {}
        if found < 0:
            raise JournalLost("changes that were read are not there any more")
        if found > rows_max:
            raise too_many(rows_max)
        statement = f"SELECT {_ROW} {_BY_ID} WHERE {_in_ranges(self.windows.ranges)}"
        rows = {row_id(row): row for (row,) in fetch_rows(connection, statement, ())}
        return {id_: row for id_, row in rows.items() if is_missing(self.gaps, id_)}

    def _still_open(self, connection: Connection, gaps: Sequence[Gap]) -> Iterator[Gap]:
        """What is left of old gaps: all of them while a transaction holds a row in any of them."""
        if self.in_cluster:
            ranges = _in_ranges([(gap.first, gap.last) for gap in gaps])
            found: list[int] | None = _ids(connection, f"SELECT id {_BY_ID} WHERE {ranges}")
        else:
            # REPEATABLE READ would lock the ranges between rows, where other transactions insert.
            # This sets the level of the next statement. It fails within a transaction, which
            # would keep the locks.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            found = _locked_ids(connection, " UNION ALL ".join(map(_locking, gaps)))
        if found is None:
            yield from gaps
            return
        # These rows appeared after the last reading, so the reader has not read them.
        for gap in gaps:
            yield from (Gap(id_, id_, gap.noted) for id_ in found if gap.first <= id_ <= gap.last)


class MysqlOldRows(OldRows):
    """The oldest rows, among which an open transaction may hold a row that no reader sees yet."""

    def deletable(self, connection: Connection, rows: Sequence[Any]) -> Sequence[Any]:
        """All of these rows, which are the oldest; none if a transaction holds one among them."""
        # The limit keeps the statement from later rows, which a transaction may well hold.
        locking = f"SELECT id {_BY_ID} ORDER BY id LIMIT {len(rows)} FOR UPDATE NOWAIT"
        return rows if _locked_ids(connection, locking) == [row.id for row in rows] else ()


def is_cluster(connection: Connection) -> bool:
    """Whether the server is a node of a Galera cluster."""
    # Not every server has this variable.
    found = connection.exec_driver_sql("SHOW VARIABLES LIKE 'wsrep_on'").fetchall()
    return any(value == "ON" for _, value in found)


def _id_runs(connection: Connection) -> Iterator[IdRun]:
    for index, bits, age in connection.exec_driver_sql(_RUNS):
        yield IdRun(int(index), int(bits), max(0, int(age) - _CLOCK_DIFFERENCE_SECONDS))


def _locking(gap: Gap) -> str:
    """A statement that locks the rows of one gap, and fails if a transaction holds one.

    With one condition for many gaps, a server may scan the whole table. It would fail at held rows
    outside the gaps.
    """
    ranges = _in_ranges([(gap.first, gap.last)])
    return f"(SELECT id {_BY_ID} WHERE {ranges} FOR UPDATE NOWAIT)"


def _locked_ids(connection: Connection, statement: str) -> list[int] | None:
    try:
        return _ids(connection, statement)
    except DBAPIError as error:
        if dialect_of(connection).code_of(error.orig) not in _ROW_HELD:
            raise
        return None


def _ids(connection: Connection, statement: str) -> list[int]:
    return [int(id_) for (id_,) in connection.exec_driver_sql(statement)]


def _in_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    return " OR ".join(f"id BETWEEN {first} AND {last}" for first, last in ranges)
