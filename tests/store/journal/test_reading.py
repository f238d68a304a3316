"""Reading the journal on all databases: each committed change is reported once, no other is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.store.connections.errors import DatabaseUnusable
from roost.store.connections.sessions import fetch_directly
from roost.store.database import Database
from roost.store.databases.mysql import journal as mysql
from roost.store.databases.mysql.journal import MysqlPosition
from roost.store.databases.postgresql.journal import PostgresqlPosition
from roost.store.journal.position import (
    LOOK_ROWS_MAX,
    JournalEntry,
    JournalLost,
    Position,
    start_position,
)
from roost.store.journal.writing import ChangeKind, record_vocabulary_change
from roost.store.tables import roost_changes, roost_meta
from roost.store.transaction import Finished, Transaction
from support.store.journal import (
    Reader,
    Writers,
    empty,
    insert_change,
    newest_id,
    providers,
    prune,
    record,
    rolled_back,
    settle,
    snapshot,
    start,
    writing,
    written,
)
from support.waiting import wait_until

USAGE = ChangeKind.USAGE
SERVERS = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)

pytestmark = pytest.mark.usefixtures("meta_kept")


def record_new_trait(transaction: Transaction) -> Finished[None]:
    record_vocabulary_change(transaction, ChangeKind.TRAIT_NAMES)
    return transaction.finish()


class TestReportedChanges:
    def test_a_reader_reports_nothing_while_nothing_is_new(self, reader: Reader) -> None:
        for _ in range(3):
            assert reader.read() == []

    def test_a_reader_reports_each_change_once(self, reader: Reader) -> None:
        reader.database.write_at_once(record, 2, 3)
        assert reader.read() == [2, 3]
        assert reader.read() == []
        reader.database.write_at_once(record, 2)
        assert reader.read() == [2]
        assert reader.read() == []

    def test_an_entry_has_id_kind_and_provider(self, database: Database, reader: Reader) -> None:
        database.write_at_once(record, 7)
        database.write(record_new_trait)
        last = newest_id(database)
        entries, _ = database.read(reader.position.read, 10)
        assert entries == (
            JournalEntry(last - 1, USAGE, 7),
            JournalEntry(last, ChangeKind.TRAIT_NAMES, None),
        )

    def test_a_reader_reports_many_changes_at_once(self, reader: Reader) -> None:
        many = list(range(5000))
        reader.database.write_at_once(record, *many)
        assert reader.read() == many
        assert reader.read() == []

    def test_a_position_can_be_used_again(self, database: Database, reader: Reader) -> None:
        position = reader.position
        database.write_at_once(record, 2)
        first, _ = database.read(position.read, 10)
        second, _ = database.read(position.read, 10)
        assert first == second
        assert providers(first) == [2]

    def test_a_reader_of_an_empty_journal_reports_the_first_changes(
        self, database: Database
    ) -> None:
        empty(database)
        reader = Reader(database, start(database))
        assert reader.read() == []
        database.write_at_once(record, 1, 2)
        assert reader.read() == [1, 2]
        assert reader.read() == []

    def test_a_rolled_back_change_is_not_reported(self, database: Database, reader: Reader) -> None:
        with rolled_back(database) as connection:
            record(connection, 2)
            assert reader.read() == []
        assert reader.read() == []
        database.write_at_once(record, 3)
        assert reader.read() == [3]

    @SERVERS
    def test_a_change_that_commits_late_is_reported_late(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, 3)
            assert reader.read() == [3]
            with rolled_back(database) as connection:
                record(connection, 99)
            database.write_at_once(record, 4)
            assert reader.read() == [4]
        assert reader.read() == [2]
        assert reader.read() == []

    @SERVERS
    def test_several_late_changes_are_reported_in_any_order(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as first:
            record(first, 2, 3)
            with writing(database) as second:
                record(second, 4)
                with writing(database) as third:
                    record(third, 5, 6)
                    database.write_at_once(record, 7)
                    assert reader.read() == [7]
                assert reader.read() == [5, 6]
            database.write_at_once(record, 8)
            assert reader.read() == [4, 8]
        assert reader.read() == [2, 3]
        assert reader.read() == []

    def test_a_kind_that_only_a_newer_version_knows_loses_the_journal(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(insert_change, kind="invented")
        with pytest.raises(JournalLost, match="invented"):
            reader.read()


class TestSnapshots:
    def test_a_change_in_the_snapshot_of_the_start_is_not_reported(
        self, database: Database
    ) -> None:
        database.write_at_once(record, 1)
        with snapshot(database) as connection:
            reader = Reader(database, start_position(connection))
            database.write_at_once(record, 2)
        assert reader.read() == [2]

    @SERVERS
    def test_a_transaction_open_at_the_start_is_reported(self, database: Database) -> None:
        with writing(database) as open_:
            record(open_, 1)
            database.write_at_once(record, 2)
            reader = Reader(database, start(database))
            assert reader.read() == []
        assert reader.read() == [1]
        assert reader.read() == []

    @SERVERS
    def test_a_transaction_open_at_the_start_on_an_empty_journal_is_reported(
        self, database: Database
    ) -> None:
        empty(database)
        with writing(database) as open_:
            record(open_, 1)
            reader = Reader(database, start(database))
        assert reader.read() == [1]

    def test_a_reader_in_a_snapshot_reports_nothing_after_it(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, 2)
        with snapshot(database) as connection:
            entries, position = reader.position.read(connection, 10)
            assert providers(entries) == [2]
            database.write_at_once(record, 3)
            assert position.read(connection, 10) == ((), position)
        entries, _ = database.read(position.read, 10)
        assert providers(entries) == [3]

    def test_a_reader_sends_one_statement_while_nothing_is_new(
        self, database: Database, reader: Reader
    ) -> None:
        statements: list[str] = []

        def note(*arguments: Any) -> None:
            statements.append(arguments[2])

        with snapshot(database) as connection:
            connection.exec_driver_sql("SELECT 1")
            event.listen(connection, "before_cursor_execute", note)
            entries, _ = reader.position.read(connection, 10)
            assert entries == ()
            assert len(statements) == 1


class TestLook:
    """The cheap question whether there is anything to read."""

    def test_a_look_finds_nothing_new(self, reader: Reader) -> None:
        assert reader.sees_nothing_new()

    def test_a_look_finds_a_new_change_until_it_is_read(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, 2)
        assert not reader.sees_nothing_new()
        assert reader.read() == [2]
        assert reader.sees_nothing_new()

    @SERVERS
    def test_a_look_finds_a_change_that_commits_late(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, 3)
            assert reader.read() == [3]
            assert reader.sees_nothing_new()
        assert not reader.sees_nothing_new()
        assert reader.read() == [2]

    def test_a_look_fetches_few_rows_however_many_are_new(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fetched: list[int] = []

        def note(*arguments: Any) -> Sequence[Any]:
            found = fetch_directly(*arguments)
            fetched.append(len(found))
            return found

        monkeypatch.setattr("roost.store.journal.position.fetch_directly", note)
        database.write_at_once(record, *range(5000))
        assert not reader.sees_nothing_new()
        assert len(fetched) == 1
        # On PostgreSQL an answer has a row twice: by id, and by transaction.
        assert fetched[0] <= 2 * LOOK_ROWS_MAX + 1


class TestReadersFarBehind:
    def test_a_reader_reads_as_many_rows_as_allowed(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, *range(40))
        assert reader.read(rows_max=40) == list(range(40))
        assert reader.read() == []

    def test_one_row_more_than_allowed_loses_the_journal(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, *range(41))
        with pytest.raises(JournalLost, match="40"):
            reader.read(rows_max=40)

    @SERVERS
    def test_rows_that_commit_late_count_as_well(self, database: Database, reader: Reader) -> None:
        with writing(database) as late:
            record(late, *range(41))
            database.write_at_once(record, 99)
            assert reader.read() == [99]
        with pytest.raises(JournalLost, match="40"):
            reader.read(rows_max=40)
        assert reader.read() == list(range(41))


def elsewhere(position: Position) -> Position:
    """The position as if another server, or another of its processes, had answered so far."""
    if isinstance(position, PostgresqlPosition):
        return replace(position, backend="another", head="another")
    assert isinstance(position, MysqlPosition)
    return replace(position, server="another")


@SERVERS
class TestRestartedServers:
    """A server that was restarted may have lost what it committed last."""

    def test_a_reader_continues_if_no_row_was_lost(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, 2, 3)
        assert reader.read() == [2, 3]
        reader.position = elsewhere(reader.position)
        database.write_at_once(record, 4)
        assert reader.read() == [4]
        assert reader.sees_nothing_new()

    def test_a_lost_row_below_the_newest_loses_the_journal(
        self, database: Database, reader: Reader
    ) -> None:
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, *range(3, 30))
            assert reader.read() == list(range(3, 30))
            lost = newest_id(database) - 27
        assert reader.read() == [2]
        self.lose(database, lost)
        reader.position = elsewhere(reader.position)
        with pytest.raises(JournalLost):
            reader.read()

    def test_a_lost_row_of_the_start_loses_the_journal(self, database: Database) -> None:
        database.write_at_once(record, 1, 2, 3)
        reader = Reader(database, start(database))
        self.lose(database, newest_id(database) - 1)
        reader.position = elsewhere(reader.position)
        with pytest.raises(JournalLost):
            reader.read()

    def test_a_pruned_row_is_not_taken_for_lost(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database.write_at_once(record, 2, 3, 4)
        settle(database)
        assert reader.read() == [2, 3, 4]
        monkeypatch.setattr(mysql, "SECONDS_MIN", 0)
        reader.forget()
        assert prune(database, limit=2) == 2
        reader.position = elsewhere(reader.position)
        assert reader.read() == []

    @staticmethod
    def lose(database: Database, id_: int) -> None:
        remove = sa.delete(roost_changes).where(roost_changes.c.id == id_)
        assert database.write_at_once(lambda connection: connection.execute(remove).rowcount) == 1


class TestBrokenConnections:
    """A reader calls the driver directly, and its errors are SQLAlchemy's nevertheless."""

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
        database.write_at_once(lambda connection: connection.exec_driver_sql(end.format(id_)))
        database.write_at_once(record, 2)
        assert reader.read() == [2]

    def test_an_error_of_the_driver_is_one_of_sqlalchemy(
        self, database: Database, reader: Reader
    ) -> None:
        rename = "ALTER TABLE {} RENAME TO {}"
        database.write_at_once(
            lambda connection: connection.exec_driver_sql(rename.format("roost_meta", "hidden"))
        )
        try:
            with pytest.raises(sa.exc.DBAPIError):
                reader.read()
        finally:
            database.write_at_once(
                lambda connection: connection.exec_driver_sql(rename.format("hidden", "roost_meta"))
            )
        assert reader.read() == []


class TestLostJournals:
    def test_another_epoch_loses_the_journal(self, database: Database, reader: Reader) -> None:
        database.write_at_once(
            lambda connection: connection.execute(
                sa.update(roost_meta).where(roost_meta.c.name == "epoch").values(value=str(uuid4()))
            )
        )
        with pytest.raises(JournalLost):
            reader.read()
        reader.position = start(database)
        assert reader.read() == []

    def test_an_older_state_loses_the_journal(self, database: Database, reader: Reader) -> None:
        database.write_at_once(record, 2)
        assert reader.read() == [2]
        remove = sa.delete(roost_changes).where(roost_changes.c.id == newest_id(database))
        database.write_at_once(lambda connection: connection.execute(remove))
        with pytest.raises(JournalLost):
            reader.read()

    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_an_older_state_with_other_changes_since_loses_the_journal(
        self, database: Database, reader: Reader, length: int
    ) -> None:
        """The ids are used again, for fewer, as many or more changes."""
        database.write_at_once(record, 2)
        assert reader.read() == [2]
        last = newest_id(database)

        def restore(connection: Connection) -> None:
            connection.execute(sa.delete(roost_changes))
            for offset in range(length):
                insert_change(connection, id=last - 1 + offset, provider_id=2)

        database.write_at_once(restore)
        with pytest.raises(JournalLost):
            reader.read()

    def test_a_missing_epoch_loses_the_journal_and_refuses_a_start(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(
            lambda connection: connection.execute(
                sa.delete(roost_meta).where(roost_meta.c.name == "epoch")
            )
        )
        with pytest.raises(JournalLost):
            reader.read()
        with pytest.raises(DatabaseUnusable, match="epoch"):
            start(database)


class TestPrunedJournals:
    def test_a_reader_that_has_read_all_continues(
        self, database: Database, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with rolled_back(database) as connection:
            record(connection, 90)
        database.write_at_once(record, 2, 3)
        settle(database)
        assert reader.read() == [2, 3]
        # As if time had passed: rows that may still appear are not pruned.
        monkeypatch.setattr(mysql, "SECONDS_MIN", 0)
        reader.forget()
        assert prune(database) == 2
        assert reader.read() == []
        database.write_at_once(record, 4)
        assert reader.read() == [4]

    def test_a_pruned_row_that_was_not_read_loses_the_journal(
        self, database: Database, reader: Reader
    ) -> None:
        database.write_at_once(record, 2, 3)
        assert prune(database) == 2
        with pytest.raises(JournalLost):
            reader.read()
        reader.position = start(database)
        assert reader.read() == []
        database.write_at_once(record, 4)
        assert reader.read() == [4]

    def test_a_pruned_row_after_a_start_on_an_empty_journal_loses_the_journal(
        self, database: Database
    ) -> None:
        empty(database)
        reader = Reader(database, start(database))
        database.write_at_once(record, 1, 2)
        assert prune(database) == 1
        with pytest.raises(JournalLost):
            reader.read()

    @SERVERS
    def test_a_pruned_row_that_committed_late_loses_the_journal(
        self, database: Database, reader: Reader
    ) -> None:
        """The newest row that the reader knows is still there."""
        with writing(database) as late:
            record(late, 2)
            database.write_at_once(record, 3)
            assert reader.read() == [3]
        assert prune(database) == 2
        with pytest.raises(JournalLost):
            reader.read()


class NaiveReader(Reader):
    """Asks only for ids above the highest so far."""

    last = 0

    def read(self, rows_max: int = 0) -> list[int | None]:
        columns = roost_changes.c
        query = sa.select(columns.id, columns.provider_id).where(columns.id > self.last)
        found = self.database.read(lambda connection: connection.execute(query).all())
        self.last = max([self.last, *(row.id for row in found)])
        return [row.provider_id for row in found]


class TestManyWriters:
    def test_a_reader_misses_no_change_where_a_naive_reader_does(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The reader forgets gaps soon, but none of a statement that still runs.
        monkeypatch.setattr(mysql, "SECONDS_MIN", 2)
        writers = Writers(database)
        reader = Reader(database, start(database, writers.clock))
        naive = NaiveReader(database, reader.position)
        # Rows of earlier changes, such as new names, count for neither.
        naive.read()
        reported: list[int | None] = []
        found_naively: set[int | None] = set()
        is_sqlite = database.engine.dialect.name == "sqlite"

        def read_often() -> bool:
            """Whether there were many changes, and the naive reader missed one."""
            reported.extend(reader.read())
            reader.forget()
            before = set(writers.committed)
            found_naively.update(naive.read())
            has_missed = is_sqlite or not before <= found_naively
            return has_missed and len(before) > 100 and writers.clock() > 5

        with writers:
            wait_until(read_often)
        reported += reader.read()
        found_naively.update(naive.read())
        assert set(reported) == writers.committed
        assert len(reported) == len(set(reported))
        assert (found_naively == writers.committed) == is_sqlite
        assert found_naively <= writers.committed

    def test_a_reader_that_starts_among_writers_misses_no_change(self, database: Database) -> None:
        starts: list[tuple[set[int], Position]] = []
        with Writers(database) as writers:
            while len(starts) < 20 or len(writers.committed) < 50:
                with snapshot(database) as connection:
                    position = start_position(connection)
                    time.sleep(0.005)
                    starts.append((written(connection), position))
                time.sleep(0.02)
        for seen, position in starts:
            reported = Reader(database, position).read()
            assert seen | set(reported) == writers.committed
            assert len(reported) == len(writers.committed) - len(seen)
