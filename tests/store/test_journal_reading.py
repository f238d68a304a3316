"""Reading the journal: what was committed is reported once, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.store import journal_by_gaps, journal_by_id, journal_by_transaction
from roost.store.clock import utc_now
from roost.store.database import Database
from roost.store.errors import DatabaseUnusable
from roost.store.journal import ChangeKind, record_vocabulary_change
from roost.store.journal_by_gaps import (
    SECONDS_MIN,
    SECONDS_MIN_IN_CLUSTER,
    GapPosition,
    start_by_gaps,
)
from roost.store.journal_by_transaction import TransactionPosition
from roost.store.journal_positions import fetch_rows
from roost.store.journal_pruning import prune_changes
from roost.store.journal_reading import (
    Change,
    JournalLost,
    Position,
    forget_gaps,
    look_for_changes,
    read_changes,
    start_position,
)
from roost.store.tables import roost_changes, roost_meta
from support.journal import (
    Reader,
    Writers,
    ids,
    insert_change,
    meta_restored,
    providers,
    record,
    rolled_back,
    settle,
    snapshot,
    start,
    writing,
    written,
)

USAGE = ChangeKind.USAGE
SERVERS = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
POSTGRESQL = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
MARIADB = pytest.mark.parametrize("kind", ["mariadb"], indirect=True)


@pytest.fixture(autouse=True)
def meta(database: Database) -> Iterator[None]:
    """What the journal says of itself is for all tests; here it is changed."""
    with meta_restored(database):
        yield


def empty(database: Database) -> None:
    database.write(lambda connection: connection.execute(sa.delete(roost_changes)))


def newest_id(database: Database) -> int:
    return ids(database)[-1]


@pytest.fixture
def reader(database: Database) -> Reader:
    """A reader that has seen the only change so far."""
    empty(database)
    database.write(record, 1)
    return Reader(database, start(database))


class TestWhatIsReported:
    def test_nothing_when_nothing_is_new(self, reader: Reader) -> None:
        for _ in range(3):
            assert reader.read() == []

    def test_what_was_committed_since_once(self, reader: Reader) -> None:
        reader.database.write(record, 2, 3)
        assert reader.read() == [2, 3]
        assert reader.read() == []
        reader.database.write(record, 2)
        assert reader.read() == [2]
        assert reader.read() == []

    def test_all_that_a_change_says(self, database: Database, reader: Reader) -> None:
        database.write(record, 7)
        database.write(record_vocabulary_change, ChangeKind.TRAIT_NAMES)
        last = newest_id(database)
        changes, _ = database.read(read_changes, reader.position)
        assert changes == (
            Change(last - 1, USAGE, 7),
            Change(last, ChangeKind.TRAIT_NAMES, None),
        )

    def test_many_at_once(self, reader: Reader) -> None:
        many = list(range(5000))
        reader.database.write(record, *many)
        assert reader.read() == many
        assert reader.read() == []

    def test_a_position_can_be_used_again(self, database: Database, reader: Reader) -> None:
        position = reader.position
        database.write(record, 2)
        first, _ = database.read(read_changes, position)
        second, _ = database.read(read_changes, position)
        assert first == second
        assert providers(first) == [2]

    def test_the_first_changes_of_an_empty_journal(self, database: Database) -> None:
        empty(database)
        reader = Reader(database, start(database))
        assert reader.read() == []
        database.write(record, 1, 2)
        assert reader.read() == [1, 2]
        assert reader.read() == []

    def test_what_is_rolled_back_is_not_reported(self, database: Database, reader: Reader) -> None:
        with rolled_back(database) as connection:
            record(connection, 2)
            assert reader.read() == []
        assert reader.read() == []
        database.write(record, 3)
        assert reader.read() == [3]

    @SERVERS
    def test_what_is_committed_late_is_reported_late(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write(record, 3)
            assert reader.read() == [3]
            with rolled_back(database) as connection:
                record(connection, 99)
            database.write(record, 4)
            assert reader.read() == [4]
        assert reader.read() == [2]
        assert reader.read() == []

    @SERVERS
    def test_several_that_are_late_come_in_any_order(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as first:
            record(first, 2, 3)
            with writing(database) as second:
                record(second, 4)
                with writing(database) as third:
                    record(third, 5, 6)
                    database.write(record, 7)
                    assert reader.read() == [7]
                assert reader.read() == [5, 6]
            database.write(record, 8)
            assert reader.read() == [4, 8]
        assert reader.read() == [2, 3]
        assert reader.read() == []

    def test_a_kind_of_a_newer_version_is_not_overlooked(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(insert_change, kind="invented")
        with pytest.raises(JournalLost, match="invented"):
            reader.read()


class TestSnapshots:
    def test_what_a_snapshot_sees_is_not_reported(self, database: Database) -> None:
        database.write(record, 1)
        with snapshot(database) as connection:
            reader = Reader(database, start_position(connection))
            database.write(record, 2)
        assert reader.read() == [2]

    @SERVERS
    def test_what_is_open_at_the_start_is_reported(self, database: Database) -> None:
        with writing(database) as open_:
            record(open_, 1)
            database.write(record, 2)
            reader = Reader(database, start(database))
            assert reader.read() == []
        assert reader.read() == [1]
        assert reader.read() == []

    @SERVERS
    def test_what_is_open_is_reported_also_if_it_is_the_first_of_all(
        self, database: Database
    ) -> None:
        empty(database)
        with writing(database) as open_:
            record(open_, 1)
            reader = Reader(database, start(database))
        assert reader.read() == [1]

    def test_within_a_snapshot_nothing_after_it_is_reported(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(record, 2)
        with snapshot(database) as connection:
            changes, position = read_changes(connection, reader.position)
            assert providers(changes) == [2]
            database.write(record, 3)
            assert read_changes(connection, position) == ((), position)
        changes, _ = database.read(read_changes, position)
        assert providers(changes) == [3]

    def test_one_statement_when_nothing_is_new(self, database: Database, reader: Reader) -> None:
        statements: list[str] = []

        def note(*arguments: Any) -> None:
            statements.append(arguments[2])

        with snapshot(database) as connection:
            connection.exec_driver_sql("SELECT 1")
            event.listen(connection, "before_cursor_execute", note)
            changes, _ = read_changes(connection, reader.position)
            assert changes == ()
            assert len(statements) == 1


class TestLooking:
    """The cheap question whether there is anything to read."""

    def test_nothing_is_new(self, database: Database, reader: Reader) -> None:
        assert database.read(look_for_changes, reader.position) is not None

    def test_something_is_new(self, database: Database, reader: Reader) -> None:
        database.write(record, 2)
        assert database.read(look_for_changes, reader.position) is None
        assert reader.read() == [2]
        assert database.read(look_for_changes, reader.position) is not None

    @SERVERS
    def test_something_came_late(self, database: Database, reader: Reader) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write(record, 3)
            assert reader.read() == [3]
            assert database.read(look_for_changes, reader.position) is not None
        assert database.read(look_for_changes, reader.position) is None
        assert reader.read() == [2]

    @POSTGRESQL
    def test_it_goes_on_with_transactions_that_changed_nothing(
        self, database: Database, reader: Reader
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 90)
        position = database.read(look_for_changes, reader.position)
        assert position is not None
        assert position != reader.position

    def test_it_costs_the_same_however_much_is_new(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fetched: list[int] = []

        def note(*arguments: Any) -> Sequence[Any]:
            rows = fetch_rows(*arguments)
            fetched.append(len(rows))
            return rows

        for module in (journal_by_id, journal_by_transaction):
            monkeypatch.setattr(module, "fetch_rows", note)
        database.write(record, *range(5000))
        assert database.read(look_for_changes, reader.position) is None
        assert len(fetched) == 1
        assert fetched[0] < 50


class TestTooFarBehind:
    def test_a_reader_reads_as_much_as_it_was_told(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(record, *range(40))
        changes, position = database.read(read_changes, reader.position, 40)
        assert providers(changes) == list(range(40))
        assert database.read(read_changes, position)[0] == ()

    def test_a_reader_that_would_have_to_read_more_is_told(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(record, *range(41))
        with pytest.raises(JournalLost, match="more than 40 changes are new"):
            database.read(read_changes, reader.position, 40)

    @SERVERS
    def test_what_came_late_counts_as_well(self, database: Database, reader: Reader) -> None:
        with writing(database) as late:
            record(late, *range(41))
            database.write(record, 99)
            assert reader.read() == [99]
        with pytest.raises(JournalLost, match="more than 40 changes are new"):
            database.read(read_changes, reader.position, 40)
        assert reader.read() == list(range(41))


def elsewhere(position: Position) -> Position:
    """The position as if another server, or another of its processes, had answered so far."""
    if isinstance(position, TransactionPosition):
        return replace(position, backend="another", head="another")
    assert isinstance(position, GapPosition)
    return replace(position, server="another")


@SERVERS
class TestOtherServers:
    """A server that was started anew may have lost what it committed last."""

    def test_a_reader_goes_on_if_nothing_was_lost(self, database: Database, reader: Reader) -> None:
        database.write(record, 2, 3)
        assert reader.read() == [2, 3]
        reader.position = elsewhere(reader.position)
        database.write(record, 4)
        assert reader.read() == [4]
        assert database.read(look_for_changes, reader.position) is not None

    def test_a_lost_row_below_the_newest_is_noticed(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write(record, *range(3, 30))
            assert reader.read() == list(range(3, 30))
            lost = newest_id(database) - 27
        assert reader.read() == [2]
        self.lose(database, lost)
        reader.position = elsewhere(reader.position)
        with pytest.raises(JournalLost, match="lost"):
            reader.read()

    def test_a_row_that_was_there_at_the_start_and_is_lost_is_noticed(
        self, database: Database
    ) -> None:
        database.write(record, 1, 2, 3)
        reader = Reader(database, start(database))
        self.lose(database, newest_id(database) - 1)
        reader.position = elsewhere(reader.position)
        with pytest.raises(JournalLost, match="lost"):
            reader.read()

    def test_what_was_pruned_was_not_lost(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database.write(record, 2, 3, 4)
        assert reader.read() == [2, 3, 4]
        monkeypatch.setattr(journal_by_gaps, "SECONDS_MIN", 0)
        reader.forget()
        assert prune(database, limit=2) == 2
        reader.position = elsewhere(reader.position)
        assert reader.read() == []

    @staticmethod
    def lose(database: Database, id_: int) -> None:
        remove = sa.delete(roost_changes).where(roost_changes.c.id == id_)
        assert database.write(lambda connection: connection.execute(remove).rowcount) == 1


class TestBrokenConnections:
    """The driver is asked directly, but its errors come out like all others."""

    @SERVERS
    def test_a_connection_that_broke_in_the_pool_is_replaced(
        self, database: Database, reader: Reader
    ) -> None:
        own = {"postgresql": "SELECT pg_backend_pid()"}.get(
            database.engine.dialect.name, "SELECT connection_id()"
        )
        end = {"postgresql": "SELECT pg_terminate_backend({})"}.get(
            database.engine.dialect.name, "KILL {}"
        )
        database.reader.dispose()
        id_ = database.read(lambda connection: connection.exec_driver_sql(own).scalar_one())
        database.write(lambda connection: connection.exec_driver_sql(end.format(id_)))
        database.write(record, 2)
        assert reader.read() == [2]

    def test_an_error_is_one_of_sqlalchemy(self, database: Database, reader: Reader) -> None:
        rename = "ALTER TABLE {} RENAME TO {}"
        database.write(
            lambda connection: connection.exec_driver_sql(rename.format("roost_meta", "hidden"))
        )
        try:
            with pytest.raises(sa.exc.DBAPIError):
                reader.read()
        finally:
            database.write(
                lambda connection: connection.exec_driver_sql(rename.format("hidden", "roost_meta"))
            )
        assert reader.read() == []


class TestLostJournals:
    def test_another_database(self, database: Database, reader: Reader) -> None:
        database.write(
            lambda connection: connection.execute(
                sa.update(roost_meta).where(roost_meta.c.name == "epoch").values(value=str(uuid4()))
            )
        )
        with pytest.raises(JournalLost):
            reader.read()
        reader.position = start(database)
        assert reader.read() == []

    def test_an_older_state(self, database: Database, reader: Reader) -> None:
        database.write(record, 2)
        assert reader.read() == [2]
        remove = sa.delete(roost_changes).where(roost_changes.c.id == newest_id(database))
        database.write(lambda connection: connection.execute(remove))
        with pytest.raises(JournalLost):
            reader.read()

    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_an_older_state_in_which_others_went_on(
        self, database: Database, reader: Reader, length: int
    ) -> None:
        """The numbers are used again, for less, as many or more changes."""
        database.write(record, 2)
        assert reader.read() == [2]
        last = newest_id(database)

        def restore(connection: Connection) -> None:
            connection.execute(sa.delete(roost_changes))
            for offset in range(length):
                insert_change(connection, id=last - 1 + offset, provider_id=2)

        database.write(restore)
        with pytest.raises(JournalLost):
            reader.read()

    def test_no_epoch(self, database: Database, reader: Reader) -> None:
        database.write(
            lambda connection: connection.execute(
                sa.delete(roost_meta).where(roost_meta.c.name == "epoch")
            )
        )
        with pytest.raises(JournalLost):
            reader.read()
        with pytest.raises(DatabaseUnusable, match="epoch"):
            start(database)


def prune(database: Database, limit: int = 1000) -> int:
    """Delete all that can be."""
    settle(database)
    return database.write(prune_changes, utc_now() + timedelta(hours=1), limit)


class TestPrunedJournals:
    def test_who_has_read_all_goes_on(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 90)
        database.write(record, 2, 3)
        # As if time had passed: what may still come must not be pruned.
        settle(database)
        assert reader.read() == [2, 3]
        monkeypatch.setattr(journal_by_gaps, "SECONDS_MIN", 0)
        reader.forget()
        assert prune(database) == 2
        assert reader.read() == []
        database.write(record, 4)
        assert reader.read() == [4]

    def test_who_has_not_read_what_is_gone_is_told(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(record, 2, 3)
        assert prune(database) == 2
        with pytest.raises(JournalLost):
            reader.read()
        reader.position = start(database)
        assert reader.read() == []
        database.write(record, 4)
        assert reader.read() == [4]

    def test_who_began_without_any_row_is_told(self, database: Database) -> None:
        empty(database)
        reader = Reader(database, start(database))
        database.write(record, 1, 2)
        assert prune(database) == 1
        with pytest.raises(JournalLost):
            reader.read()

    @SERVERS
    def test_who_has_not_read_what_came_late_and_is_gone_is_told(
        self, database: Database, reader: Reader
    ) -> None:
        """The newest row that the reader knows is still there."""
        with writing(database) as late:
            record(late, 2)
            database.write(record, 3)
            assert reader.read() == [3]
        assert prune(database) == 2
        with pytest.raises(JournalLost):
            reader.read()


@POSTGRESQL
class TestTransactions:
    def test_a_cluster_that_is_behind(self, reader: Reader) -> None:
        position = reader.position
        assert isinstance(position, TransactionPosition)
        now = position.snapshot
        for ahead in (replace(now, horizon=1 << 40), replace(now, end=1 << 40)):
            reader.position = replace(position, snapshot=ahead, head="")
            with pytest.raises(JournalLost):
                reader.read()

    def test_another_server(self, reader: Reader) -> None:
        assert isinstance(reader.position, TransactionPosition)
        reader.position = replace(reader.position, journal="another", head="another")
        with pytest.raises(JournalLost):
            reader.read()

    def test_rows_of_another_cluster_are_left_alone(
        self, database: Database, reader: Reader
    ) -> None:
        database.write(insert_change, transaction_id=1 << 40, provider_id=2)
        assert reader.read() == []
        reader.position = start(database)
        database.write(record, 3)
        assert reader.read() == [3]
        assert prune(database) == 2

    def test_a_transaction_whose_number_is_used_again_is_read_once(
        self, database: Database, reader: Reader
    ) -> None:
        """As after a crash that the server survived."""
        for id_ in (2, 3):
            database.write(insert_change, transaction_id=3, provider_id=id_)
            assert reader.read() == [id_]
            assert reader.read() == []
        database.write(record, 4)
        assert reader.read() == [4]

    def test_a_transaction_whose_number_is_used_again_is_not_pruned_unnoticed(
        self, database: Database
    ) -> None:
        empty(database)
        reader = Reader(database, start(database))
        for id_ in (1, 2):
            database.write(insert_change, transaction_id=3, provider_id=id_)
        assert prune(database) == 1
        with pytest.raises(JournalLost, match="pruned"):
            reader.read()

    def test_a_long_transaction_makes_nobody_read_twice(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as long:
            record(long, 1)
            for id_ in range(2, 12):
                database.write(record, id_)
                assert reader.read() == [id_]
            position = reader.position
            assert isinstance(position, TransactionPosition)
            # The newest, and nothing that was read while the long one ran.
            assert len(database.read(fetch_rows, *position.question())) == 1
        assert reader.read() == [1]


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class GapReader(Reader):
    """A reader whose time passes when it is told to."""

    position: GapPosition
    clock: Clock = field(default_factory=Clock)

    def gaps(self) -> int:
        return sum(gap.last - gap.first + 1 for gap in self.position.gaps)


@pytest.fixture
def gap_reader(database: Database) -> GapReader:
    clock = Clock()
    # Whatever else is missing in the journal is none of this.
    empty(database)
    database.write(record, 1)
    with snapshot(database) as connection:
        position = replace(start_by_gaps(connection, clock), gaps=())
    return GapReader(database, position, clock)


@MARIADB
class TestGaps:
    def test_a_gap_of_a_rolled_back_transaction_is_forgotten_in_time(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write(record, 4)
        assert gap_reader.read() == [4]
        assert gap_reader.gaps() == 2
        gap_reader.clock.now += SECONDS_MIN - 1
        gap_reader.forget()
        assert gap_reader.gaps() == 2
        gap_reader.clock.now += 1
        gap_reader.forget()
        assert gap_reader.gaps() == 0
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
            database.write(record, 3)
            assert gap_reader.read() == [3]
            gap_reader.clock.now += 10 * SECONDS_MIN_IN_CLUSTER
            gap_reader.forget()
            assert gap_reader.gaps() == before + 1
        assert gap_reader.read() == [2]
        gap_reader.forget()
        assert gap_reader.gaps() == 0

    def test_gaps_are_not_kept_by_transactions_that_came_later(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        for id_ in (2, 3):
            with rolled_back(database) as connection:
                record(connection, 90, 91)
            database.write(record, id_)
        assert gap_reader.read() == [2, 3]
        gap_reader.clock.now += SECONDS_MIN
        with writing(database) as open_:
            record(open_, 4)
            gap_reader.forget()
            assert gap_reader.gaps() == 0

    def test_what_was_committed_but_not_read_is_not_forgotten(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with writing(database) as late:
            record(late, 2, 3)
            with rolled_back(database) as connection:
                record(connection, 90, 91)
            database.write(record, 4)
            assert gap_reader.read() == [4]
        gap_reader.clock.now += SECONDS_MIN
        gap_reader.forget()
        assert gap_reader.gaps() == 2
        assert gap_reader.read() == [2, 3]
        assert gap_reader.gaps() == 0

    def test_in_a_cluster_only_a_longer_time_counts(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        gap_reader.position = replace(gap_reader.position, in_cluster=True)
        with writing(database) as late:
            record(late, 2)
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write(record, 3)
            assert gap_reader.read() == [3]
        gap_reader.clock.now += SECONDS_MIN_IN_CLUSTER - 1
        gap_reader.forget()
        assert gap_reader.gaps() == 2
        gap_reader.clock.now += 1
        gap_reader.forget()
        assert gap_reader.gaps() == 1
        assert gap_reader.read() == [2]

    def test_a_start_in_a_cluster_leaves_out_what_is_old_enough(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journal_by_gaps, "_is_cluster", lambda _connection: True)
        old = utc_now() - timedelta(seconds=SECONDS_MIN_IN_CLUSTER + 60)
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write(insert_change, provider_id=4, created_at=old)
        with rolled_back(database) as connection:
            record(connection, 5)
        # A long way off, so that it does not lend its age to the one before.
        database.write(insert_change, provider_id=6, id=newest_id(database) + 1000)
        position = database.snapshot(start_by_gaps)
        assert [gap.last - gap.first + 1 for gap in position.gaps] == [999]

    def test_nobody_has_to_wait_for_forgetting(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 2)
        with writing(database) as late:
            record(late, 3)
            database.write(record, 4)
            assert gap_reader.read() == [4]
            gap_reader.clock.now += SECONDS_MIN
            began = time.monotonic()
            gap_reader.forget()
            assert time.monotonic() - began < 2
            record(late, 5)
        assert gap_reader.read() == [3, 5]

    def test_it_is_not_done_within_a_transaction(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 2)
        database.write(record, 3)
        gap_reader.read()
        gap_reader.clock.now += SECONDS_MIN
        with snapshot(database) as connection:
            read_changes(connection, gap_reader.position)
            with pytest.raises(sa.exc.OperationalError, match="transaction is in progress"):
                forget_gaps(connection, gap_reader.position)

    def test_gaps_at_the_start_are_as_old_as_the_rows_after_them(self, database: Database) -> None:
        clock = Clock()
        with rolled_back(database) as connection:
            record(connection, 2, 3)
        database.write(record, 4)
        old = utc_now() - timedelta(seconds=SECONDS_MIN + 60)
        database.write(lambda c: c.execute(sa.update(roost_changes).values(created_at=old)))
        with rolled_back(database) as connection:
            record(connection, *range(5, 105))
        database.write(record, 6)
        with snapshot(database) as connection:
            reader = GapReader(database, start_by_gaps(connection, clock), clock)
        assert reader.gaps() >= 102
        reader.forget()
        assert reader.gaps() == 100
        clock.now += SECONDS_MIN
        reader.forget()
        assert reader.gaps() == 0

    def test_numbers_in_steps(self, database: Database, gap_reader: GapReader) -> None:
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
                database.write(record_in_steps, 1 + id_ % 3, id_)
                assert gap_reader.read() == [id_]
        assert gap_reader.read() == [1]
        # They are many, but near to each other.
        assert len(gap_reader.position.gaps) > 50
        assert len(gap_reader.position.windows.ranges) == 1
        assert gap_reader.read() == []

    def test_a_jump_is_one_gap(self, database: Database, gap_reader: GapReader) -> None:
        database.write(insert_change, id=newest_id(database) + 10_000_000, provider_id=2)
        assert gap_reader.read() == [2]
        assert len(gap_reader.position.gaps) == 1
        gap_reader.clock.now += SECONDS_MIN
        gap_reader.forget()
        assert gap_reader.gaps() == 0

    def test_too_many_gaps_are_not_kept(
        self, database: Database, gap_reader: GapReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journal_by_gaps, "_GAPS_MAX", 10)
        for _ in range(11):
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write(record, 2)
        with pytest.raises(JournalLost):
            gap_reader.read()
        with snapshot(database) as connection:
            position = start_by_gaps(connection)
        assert len(position.gaps) <= 5
        assert database.read(read_changes, position)[0] == ()

    def test_what_came_late_and_was_pruned_alone_is_not_overlooked(
        self, database: Database, gap_reader: GapReader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write(record, 3)
            assert gap_reader.read() == [3]
        assert gap_reader.position.windows.known == 0
        assert prune(database) == 2
        with pytest.raises(JournalLost, match="pruned"):
            gap_reader.read()

    def test_a_known_row_that_is_gone(self, database: Database, gap_reader: GapReader) -> None:
        for id_ in (2, 3):
            with rolled_back(database) as connection:
                record(connection, 90)
            database.write(record, id_)
        assert gap_reader.read() == [2, 3]
        remove = sa.delete(roost_changes).where(roost_changes.c.id == newest_id(database) - 2)
        database.write(lambda connection: connection.execute(remove))
        with pytest.raises(JournalLost):
            gap_reader.read()


class NaiveReader(Reader):
    """Asks for higher numbers than the highest so far."""

    last = 0

    def read(self) -> list[int | None]:
        columns = roost_changes.c
        query = sa.select(columns.id, columns.provider_id).where(columns.id > self.last)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        self.last = max([self.last, *(row.id for row in rows)])
        return [row.provider_id for row in rows]


class TestManyWriters:
    def test_a_reader_misses_nothing_where_a_naive_one_does(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Far longer than a transaction lasts here: forgetting is tried out as well.
        monkeypatch.setattr(journal_by_gaps, "SECONDS_MIN", 0.5)
        reader, naive = (kind(database, start(database)) for kind in (Reader, NaiveReader))
        # What is there already, such as that there are new names, concerns neither.
        naive.read()
        reported: list[int | None] = []
        found_naively: set[int | None] = set()
        with Writers(database, seconds=2) as writers:
            while writers.at_work:
                reported += reader.read()
                reader.forget()
                found_naively.update(naive.read())
                time.sleep(0.002)
        reported += reader.read()
        found_naively.update(naive.read())
        assert len(writers.committed) > 100
        assert set(reported) == writers.committed
        assert len(reported) == len(set(reported))
        is_sqlite = database.engine.dialect.name == "sqlite"
        assert (found_naively == writers.committed) == is_sqlite
        assert found_naively <= writers.committed

    def test_a_start_among_writers_misses_nothing(self, database: Database) -> None:
        starts: list[tuple[set[int], Position]] = []
        with Writers(database, seconds=1) as writers:
            while writers.at_work:
                with snapshot(database) as connection:
                    position = start_position(connection)
                    time.sleep(0.005)
                    starts.append((written(connection), position))
                time.sleep(0.02)
        for seen, position in starts:
            reported = providers(database.read(read_changes, position)[0])
            assert seen | set(reported) == writers.committed
            assert len(reported) == len(writers.committed) - len(seen)
