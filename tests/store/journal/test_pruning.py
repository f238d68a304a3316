"""Pruning the journal: old rows are deleted, and a reader notices missing ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.database import Database
from roost.store.databases.mysql import journal as mysql
from roost.store.dialect import Dialect
from roost.store.journal.position import JournalLost, Position
from roost.store.journal.pruning import prune_changes
from roost.store.tables import roost_changes, roost_meta, utc_now
from support.store.journal import (
    Clock,
    Reader,
    Writers,
    ids,
    insert_change,
    meta_restored,
    rolled_back,
    settle,
    start,
    start_by,
    writing,
    written,
)
from support.waiting import wait_until

NOW = datetime(2026, 5, 1, 12)
OLD = NOW - timedelta(days=1)
YOUNG = NOW + timedelta(seconds=1)


@pytest.fixture(autouse=True)
def emptied(database: Database) -> Iterator[None]:
    """A journal without rows that was never pruned."""

    def empty(connection: Connection) -> None:
        connection.execute(sa.delete(roost_changes))
        connection.execute(sa.delete(roost_meta).where(roost_meta.c.name == "pruned"))

    database.write_at_once(empty)
    with meta_restored(database):
        yield


def fill(database: Database, *stamps: datetime) -> list[int]:
    """Write a row for each time; their ids."""

    def insert(connection: Connection) -> None:
        for stamp in stamps:
            insert_change(connection, created_at=stamp)

    database.write_at_once(insert)
    settle(database)
    return ids(database)[-len(stamps) :]


def test_old_rows_are_deleted(database: Database) -> None:
    rows = fill(database, OLD, OLD, NOW, YOUNG)
    assert database.write_at_once(prune_changes, NOW, 100) == 2
    assert ids(database) == rows[2:]
    assert database.write_at_once(prune_changes, NOW, 100) == 0
    assert ids(database) == rows[2:]


def test_at_most_the_limit_is_deleted_and_the_oldest_first(database: Database) -> None:
    rows = fill(database, *[OLD] * 10)
    for left in (7, 4, 1):
        assert database.write_at_once(prune_changes, NOW, 3) == 3
        assert ids(database) == rows[-left:]
    assert database.write_at_once(prune_changes, NOW, 3) == 0


def test_the_newest_row_stays_however_old_it_is(database: Database) -> None:
    rows = fill(database, OLD, OLD)
    assert database.write_at_once(prune_changes, NOW, 100) == 1
    assert ids(database) == rows[1:]
    assert database.write_at_once(prune_changes, NOW, 100) == 0
    assert ids(database) == rows[1:]


def test_an_empty_journal_stays_empty(database: Database) -> None:
    assert database.write_at_once(prune_changes, NOW, 100) == 0
    assert ids(database) == []


def test_a_row_above_a_younger_row_stays(database: Database) -> None:
    """The clocks of two hosts differ, and pruning leaves all rows from some id on."""
    rows = fill(database, OLD, YOUNG, OLD, YOUNG)
    assert database.write_at_once(prune_changes, NOW, 100) == 1
    assert ids(database) == rows[1:]


def test_a_rolled_back_pruning_does_not_affect_readers(database: Database) -> None:
    rows = fill(database, OLD, OLD)
    reader = Reader(database, start(database))
    fill(database, OLD, OLD)
    with rolled_back(database) as connection:
        assert prune_changes(connection, NOW, 100) == 3
    assert len(ids(database)) == 4
    assert reader.read() == [None, None]
    assert ids(database)[:2] == rows


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_rows_above_an_open_transaction_stay(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = fill(database, OLD, OLD)
    with writing(database) as late:
        insert_change(late, created_at=OLD)
        rows += fill(database, OLD, OLD)
        # A wait for the open transaction would end with an error.
        monkeypatch.setattr(Dialect, "lock_seconds_max", 3600)
        patient = Database(database.options)
        assert patient.write_at_once(prune_changes, NOW, 100) == 0
        patient.close()
        # The rows below the open transaction may be deleted.
        assert database.write_at_once(prune_changes, NOW, 1) == 1
    assert len(ids(database)) == 4
    assert database.write_at_once(prune_changes, NOW, 100) == 3
    assert ids(database) == rows[-1:]


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
class TestTransactions:
    def test_rows_of_transactions_after_a_running_one_stay(self, database: Database) -> None:
        """Otherwise a reader that begins now would take them for rows that it missed."""
        rows = fill(database, OLD, OLD)
        with writing(database) as long:
            long.exec_driver_sql("SELECT txid_current()")
            database.write_at_once(insert_change, created_at=OLD)
            database.write_at_once(insert_change, created_at=OLD)
            assert database.write_at_once(prune_changes, NOW, 100) == 2
            assert rows[-1] not in ids(database)
            reader = Reader(database, start(database))
            assert database.write_at_once(prune_changes, NOW, 100) == 0
            assert reader.read() == []
        settle(database)
        assert database.write_at_once(prune_changes, NOW, 100) == 1

    def test_rows_of_another_cluster_are_deleted(self, database: Database) -> None:
        database.write_at_once(insert_change, created_at=OLD, transaction_id=1 << 40)
        fill(database, OLD, OLD)
        assert database.write_at_once(prune_changes, NOW, 100) == 2
        assert database.read(pruned) < 1 << 40

    @pytest.mark.parametrize("recorded", [0, 1 << 40])
    def test_the_record_of_another_cluster_is_ignored(
        self, database: Database, recorded: int
    ) -> None:
        database.write_at_once(
            lambda connection: connection.execute(
                sa.insert(roost_meta).values(name="pruned", value=str(recorded))
            )
        )
        with writing(database) as late:
            insert_change(late, created_at=OLD)
            database.write_at_once(insert_change, created_at=OLD)
            behind = Reader(database, start(database))
        settle(database)
        up_to_date = Reader(database, start(database))
        assert database.write_at_once(prune_changes, NOW, 1) == 1
        assert up_to_date.read() == []
        with pytest.raises(JournalLost):
            behind.read()

    def test_pruning_records_the_highest_transaction_not_the_last(self, database: Database) -> None:
        """The ids of rows and those of transactions have different orders."""
        with writing(database) as first:
            first.exec_driver_sql("SELECT txid_current()")
            database.write_at_once(insert_change, created_at=OLD)
            reader = Reader(database, start(database))
            assert reader.read() == []
            insert_change(first, created_at=OLD)
        fill(database, OLD)
        settle(database)
        recorded = []
        for _ in range(2):
            assert database.write_at_once(prune_changes, NOW, 1) == 1
            recorded.append(database.read(pruned))
        assert recorded[0] == recorded[1] > 0


def pruned(connection: Connection) -> int:
    """How far the journal was pruned."""
    query = sa.select(roost_meta.c.value).where(roost_meta.c.name == "pruned")
    return int(connection.scalars(query).one())


class TestConcurrentPruning:
    def test_each_row_is_deleted_once(self, database: Database) -> None:
        rows = fill(database, *[OLD] * 400, YOUNG)
        together = threading.Barrier(4)

        def prune_all(_: int) -> int:
            together.wait()
            total = 0
            while deleted := database.write_at_once(prune_changes, NOW, 7):
                total += deleted
            return total

        with ThreadPoolExecutor(4) as pool:
            counts = list(pool.map(prune_all, range(4)))
        while deleted := database.write_at_once(prune_changes, NOW, 7):
            counts.append(deleted)
        assert sum(counts) == 400
        assert ids(database) == rows[400:]

    @pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
    def test_a_second_pruning_continues_where_the_first_ends(self, database: Database) -> None:
        for _ in range(12):
            database.write_at_once(insert_change, created_at=OLD)
        settle(database)
        assert database.write_at_once(prune_changes, NOW, 1) == 1
        with ThreadPoolExecutor(1) as pool:
            with writing(database) as connection:
                assert prune_changes(connection, NOW, 8) == 8
                before = pruned(connection)
                second = pool.submit(database.write_at_once, prune_changes, NOW, 2)
                time.sleep(0.2)
                assert not second.done()
            assert second.result() == 2
        assert database.read(pruned) > before
        assert len(ids(database)) == 1


@dataclass
class Follower:
    """Knows what was written, by following the journal. A lost journal makes it read all rows."""

    database: Database
    clock: Clock
    position: Position = field(init=False)
    known: set[int] = field(init=False)
    losses: int = 0

    def __post_init__(self) -> None:
        self._read_everything()

    def _read_everything(self) -> None:
        def read(connection: Connection) -> tuple[Position, set[int]]:
            return start_by(connection, self.clock), written(connection)

        self.position, self.known = self.database.snapshot(read)

    def follow(self) -> None:
        reader = Reader(self.database, self.position)
        try:
            self.known.update(id_ for id_ in reader.read() if id_ is not None)
            reader.forget()
        except JournalLost:
            self.losses += 1
            self._read_everything()
        else:
            self.position = reader.position


def every(seconds: float, work: Callable[[], object], writers: Writers) -> threading.Thread:
    def run() -> None:
        try:
            while writers.at_work:
                work()
                time.sleep(seconds)
        except BaseException as error:
            writers.failures.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_readers_miss_no_change_while_writers_write_and_prune(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reader forgets gaps soon, but none of a statement that still runs.
    monkeypatch.setattr(mysql, "SECONDS_MIN", 2)

    def prune() -> None:
        database.write_at_once(prune_changes, utc_now() - timedelta(seconds=0.1), 50)

    writers = Writers(database)
    busy, lazy = Follower(database, writers.clock), Follower(database, writers.clock)
    with writers:
        threads = [
            every(0.002, busy.follow, writers),
            every(0.4, lazy.follow, writers),
            every(0.01, prune, writers),
            every(0.01, prune, writers),
        ]
        wait_until(lambda: writers.failures or (lazy.losses and len(writers.committed) > 100))
    for thread in threads:
        thread.join()
    for follower in (busy, lazy):
        follower.follow()
        assert follower.known == writers.committed

    def is_pruned() -> bool:
        prune()
        return len(ids(database)) < len(writers.committed)

    wait_until(is_pruned)
