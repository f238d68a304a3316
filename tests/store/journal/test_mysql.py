"""Reading the journal of MySQL and MariaDB: gaps, and when a reader forgets them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.database import Database
from roost.store.databases.mysql import journal as mysql
from roost.store.databases.mysql.journal import SECONDS_MIN, SECONDS_MIN_IN_CLUSTER, MysqlPosition
from roost.store.dialect import Dialect
from roost.store.journal.position import JournalLost
from roost.store.tables import roost_changes, utc_now
from support.store.journal import (
    Reader,
    empty,
    insert_change,
    newest_id,
    prune,
    record,
    rolled_back,
    snapshot,
    writing,
)

pytestmark = [
    pytest.mark.usefixtures("meta_kept"),
    pytest.mark.parametrize("kind", ["mariadb"], indirect=True),
]


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class GapReader(Reader):
    """A reader whose clock the test moves."""

    position: MysqlPosition
    clock: Clock = field(default_factory=Clock)

    def missing(self) -> int:
        """How many ids are missing."""
        return sum(gap.last - gap.first + 1 for gap in self.position.gaps)


@pytest.fixture
def gap_reader(database: Database) -> GapReader:
    clock = Clock()
    empty(database)
    database.write_at_once(record, 1)
    with snapshot(database) as connection:
        # Earlier tests have left gaps as well.
        position = replace(MysqlPosition.start(connection, clock), gaps=())
    return GapReader(database, position, clock)


class TestForgetting:
    def test_a_gap_of_a_rolled_back_transaction_is_forgotten_in_time(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write_at_once(record, 4)
        assert gap_reader.read() == [4]
        assert gap_reader.missing() == 2
        gap_reader.clock.now += SECONDS_MIN - 1
        gap_reader.forget()
        assert gap_reader.missing() == 2
        gap_reader.clock.now += 1
        gap_reader.forget()
        assert gap_reader.missing() == 0
        assert gap_reader.read() == []

    @pytest.mark.parametrize("before", [0, 1])
    def test_a_gap_is_kept_as_long_as_its_transaction_is_open(
        self, database: Database, gap_reader: GapReader, before: int
    ) -> None:
        for _ in range(before):
            with rolled_back(database) as connection:
                record(connection, 90)
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, 3)
            assert gap_reader.read() == [3]
            gap_reader.clock.now += 10 * SECONDS_MIN_IN_CLUSTER
            gap_reader.forget()
            assert gap_reader.missing() == before + 1
        assert gap_reader.read() == [2]
        gap_reader.forget()
        assert gap_reader.missing() == 0

    def test_a_gap_is_not_kept_by_a_transaction_that_began_later(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        for id_ in (2, 3):
            with rolled_back(database) as connection:
                record(connection, 90, 91)
            database.write_at_once(record, id_)
        assert gap_reader.read() == [2, 3]
        gap_reader.clock.now += SECONDS_MIN
        with writing(database) as open_:
            record(open_, 4)
            gap_reader.forget()
            assert gap_reader.missing() == 0

    def test_a_committed_row_that_was_not_read_is_not_forgotten(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with writing(database) as late:
            record(late, 2, 3)
            with rolled_back(database) as connection:
                record(connection, 90, 91)
            database.write_at_once(record, 4)
            assert gap_reader.read() == [4]
        gap_reader.clock.now += SECONDS_MIN
        gap_reader.forget()
        assert gap_reader.missing() == 2
        assert gap_reader.read() == [2, 3]
        assert gap_reader.missing() == 0

    def test_a_reader_that_forgets_makes_no_writer_wait(
        self, database: Database, gap_reader: GapReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 2)
        with writing(database) as late:
            record(late, 3)
            database.write_at_once(record, 4)
            assert gap_reader.read() == [4]
            gap_reader.clock.now += SECONDS_MIN
            # A wait for the open transaction would end with an error.
            monkeypatch.setattr(Dialect, "lock_seconds_max", 3600)
            gap_reader.database = Database(database.options)
            gap_reader.forget()
            gap_reader.database.close()
            gap_reader.database = database
            record(late, 5)
        assert gap_reader.read() == [3, 5]

    def test_a_transaction_refuses_forgetting(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        """It would keep the locks."""
        with rolled_back(database) as connection:
            record(connection, 2)
        database.write_at_once(record, 3)
        gap_reader.read()
        gap_reader.clock.now += SECONDS_MIN
        with snapshot(database) as connection:
            gap_reader.position.read(connection, 10)
            with pytest.raises(sa.exc.OperationalError, match="transaction is in progress"):
                gap_reader.position.forget_gaps(connection)


class TestClusters:
    def test_a_gap_in_a_cluster_is_forgotten_after_a_longer_time(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        gap_reader.position = replace(gap_reader.position, in_cluster=True)
        with writing(database) as late:
            record(late, 2)
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write_at_once(record, 3)
            assert gap_reader.read() == [3]
        gap_reader.clock.now += SECONDS_MIN_IN_CLUSTER - 1
        gap_reader.forget()
        assert gap_reader.missing() == 2
        gap_reader.clock.now += 1
        gap_reader.forget()
        assert gap_reader.missing() == 1
        assert gap_reader.read() == [2]

    def test_a_start_in_a_cluster_leaves_out_old_gaps(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mysql, "is_cluster", lambda _connection: True)
        old = utc_now() - timedelta(seconds=SECONDS_MIN_IN_CLUSTER + 60)
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write_at_once(insert_change, provider_id=4, created_at=old)
        with rolled_back(database) as connection:
            record(connection, 5)
        # Its id lies in another block than the gap before, so the age of that gap stays.
        database.write_at_once(insert_change, provider_id=6, id=newest_id(database) + 1000)
        position = database.snapshot(MysqlPosition.start)
        assert [gap.last - gap.first + 1 for gap in position.gaps] == [999]


class TestManyGaps:
    def test_a_gap_at_the_start_is_as_old_as_the_rows_after_it(self, database: Database) -> None:
        clock = Clock()
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write_at_once(record, 4)
        old = utc_now() - timedelta(seconds=SECONDS_MIN + 60)
        database.write_at_once(lambda c: c.execute(sa.update(roost_changes).values(created_at=old)))
        with rolled_back(database) as connection:
            record(connection, *range(5, 105))
        database.write_at_once(record, 6)
        with snapshot(database) as connection:
            reader = GapReader(database, MysqlPosition.start(connection, clock), clock)
        assert reader.missing() >= 102
        reader.forget()
        assert reader.missing() == 100
        clock.now += SECONDS_MIN
        reader.forget()
        assert reader.missing() == 0

    def test_gaps_of_ids_in_steps_share_a_range(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        def record_in_steps(connection: Connection, offset: int, id_: int) -> None:
            connection.exec_driver_sql("SET SESSION auto_increment_increment = 3")
            connection.exec_driver_sql(f"SET SESSION auto_increment_offset = {offset}")
            try:
                record(connection, id_)
            finally:
                connection.exec_driver_sql("SET SESSION auto_increment_increment = 1")
                connection.exec_driver_sql("SET SESSION auto_increment_offset = 1")

        with writing(database) as late:
            record_in_steps(late, 2, 1)
            for id_ in range(2, 102):
                database.write_at_once(record_in_steps, 1 + id_ % 3, id_)
                assert gap_reader.read() == [id_]
        assert gap_reader.read() == [1]
        assert len(gap_reader.position.gaps) > 50
        assert len(gap_reader.position.windows.ranges) == 1
        assert gap_reader.read() == []

    def test_a_jump_is_one_gap(self, database: Database, gap_reader: GapReader) -> None:
        database.write_at_once(insert_change, id=newest_id(database) + 10_000_000, provider_id=2)
        assert gap_reader.read() == [2]
        assert len(gap_reader.position.gaps) == 1
        gap_reader.clock.now += SECONDS_MIN
        gap_reader.forget()
        assert gap_reader.missing() == 0

    def test_too_many_gaps_lose_the_journal(
        self, database: Database, gap_reader: GapReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mysql, "GAPS_MAX", 10)
        for _ in range(11):
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write_at_once(record, 2)
        with pytest.raises(JournalLost):
            gap_reader.read()
        with snapshot(database) as connection:
            position = MysqlPosition.start(connection)
        assert len(position.gaps) <= 5
        assert Reader(database, position).read() == []


class TestRowsThatAreGone:
    def test_a_pruned_row_that_committed_late_loses_the_journal(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        """The reader knows no row around the gap, so the count of rows there is the same."""
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, 3)
            assert gap_reader.read() == [3]
        assert gap_reader.position.windows.known == 0
        assert prune(database) == 2
        with pytest.raises(JournalLost):
            gap_reader.read()

    def test_a_lost_row_between_gaps_loses_the_journal(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        for id_ in (2, 3):
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write_at_once(record, id_)
        assert gap_reader.read() == [2, 3]
        remove = sa.delete(roost_changes).where(roost_changes.c.id == newest_id(database) - 2)
        database.write_at_once(lambda connection: connection.execute(remove))
        with pytest.raises(JournalLost):
            gap_reader.read()
