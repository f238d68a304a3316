"""Pages of changes: ordered, unique, reliable, atomic and resumable, however writers commit."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace

import pytest

from roost.store.database import Database
from roost.store.journal import changes
from roost.store.journal.changes import ChangeCursor, read_changes
from roost.store.journal.position import JournalLost, NoPosition
from roost.store.journal.writing import ChangeKind, Writer, record_changes
from roost.store.transaction import Finished, Transaction
from support.store.change_writers import SHARED, ChangeWriters, PageReader
from support.store.journal import empty, insert_change, prune, record, start
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("meta_kept")

SERVERS = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)


def reader_from_now(*databases: Database) -> PageReader:
    """A reader that has seen everything so far."""
    empty(databases[0])
    databases[0].write_at_once(record, 1)
    return PageReader(list(databases), start(databases[0]).to_text())


def write(transaction: Transaction, request: str, *providers: int) -> Finished[None]:
    """A transaction of a request that changes these providers."""
    transaction.writer = Writer(request).text()
    for provider in providers:
        record_changes(transaction, ChangeKind.TRAITS, [(provider, "uuid")])
    return transaction.finish()


@pytest.mark.parametrize("scanned", [3, 2000], ids=["in-small-steps", "usual"])
def test_pages_have_each_transaction_once_whole_and_in_order(
    database: Database, scanned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small steps make pages begin and end in the middle of transactions that overlap.
    monkeypatch.setattr(changes, "_SCANNED_ROWS", scanned)
    chance = random.Random(7)
    with closing(Database(database.options)) as second:
        reader = reader_from_now(database, second)
        with ChangeWriters(database) as writers:
            wait_until(lambda: len(writers.committed) > 20)
            # What is new now has many pages, and more is committed while they are read.
            while len(writers.committed) < 250:
                reader.read(chance.choice((1, 2, 5, 40)))
        reader.read_all(7)
    # Reliable, and nothing that was rolled back; atomic: each with all its rows.
    assert reader.seen == writers.committed
    # Ordered: for one provider, in the order of commits.
    for provider in SHARED:
        assert reader.heights[provider] == sorted(reader.heights[provider])
        assert len(reader.heights[provider]) > 20


@SERVERS
def test_a_transaction_that_commits_late_comes_after_those_before_it(database: Database) -> None:
    reader = reader_from_now(database)
    with database.engine.connect() as late, late.begin():
        part = Transaction(late)
        part.writer = Writer("late").text()
        record_changes(part, ChangeKind.TRAITS, [(5, "uuid")])
        _ = part.connection
        database.write(write, "early", 6)
        reader.read_all(10)
        assert list(reader.seen) == ["early"]
        part.finish()
    reader.read_all(10)
    assert list(reader.seen) == ["early", "late"]


def test_a_transaction_larger_than_a_page_is_a_page_of_its_own(database: Database) -> None:
    reader = reader_from_now(database)
    database.write(write, "small", 1)
    database.write(write, "large", *range(40))
    database.write(write, "last", 2)
    pages = [[len(rows) for rows in reader.read(3).transactions] for _ in range(3)]
    assert pages == [[1], [40], [1]]


def test_a_cursor_in_the_middle_is_valid_on_another_server(database: Database) -> None:
    with closing(Database(database.options)) as second:
        reader = reader_from_now(database, second)
        for number in range(6):
            database.write(write, f"req-{number}", number)
        assert not reader.read(2).is_last
        reader.read_all(2)
    assert list(reader.seen) == [f"req-{number}" for number in range(6)]


def test_pages_end_at_a_position_that_another_reader_has(database: Database) -> None:
    reader = reader_from_now(database)
    cursor = ChangeCursor.from_text(database.dialect.position, reader.text)
    for number in range(4):
        database.write(write, f"req-{number}", number)
    until = start(database)
    database.write(write, "later", 9)
    for rows_max in (2, 100):
        found, page = [], None
        while page is None or not page.is_last:
            page = database.snapshot(read_changes, page.cursor if page else cursor, rows_max, until)
            found += [rows[0].writer.request_id for rows in page.transactions]
        assert found == [f"req-{number}" for number in range(4)]
        assert page.cursor.position is until


def test_rows_of_other_programs_are_transactions_of_their_own(database: Database) -> None:
    reader = reader_from_now(database)
    for provider in (3, 4):
        database.write_at_once(insert_change, provider_id=provider, transaction_id=None)
    cursor = ChangeCursor.from_text(database.dialect.position, reader.text)
    page = database.snapshot(read_changes, cursor, 10)
    told = [(row.provider_id, row.writer) for rows in page.transactions for row in rows]
    # A row without a number on PostgreSQL comes from another cluster.
    assert told == (
        [] if database.engine.dialect.name == "postgresql" else [(3, Writer()), (4, Writer())]
    )


@pytest.mark.parametrize("rows_max", [1, 100])
def test_a_cursor_before_pruned_rows_has_expired(database: Database, rows_max: int) -> None:
    reader = reader_from_now(database)
    for number in range(4):
        database.write(write, f"req-{number}", number)
    middle = replace(reader)
    middle.read(1)
    prune(database)
    for expired in (reader, middle):
        with pytest.raises(JournalLost):
            expired.read(rows_max)


@pytest.mark.parametrize("text", ["", ".", "a.b.c", "a.b.1", "eNo", "..", "a.b.-1", "a.b.c.d"])
def test_any_other_text_is_no_cursor(database: Database, text: str) -> None:
    with pytest.raises(NoPosition):
        ChangeCursor.from_text(database.dialect.position, text)


@pytest.mark.parametrize("through", ["-1", "9" * 30, "x", "1.5", ""])
def test_a_cursor_with_an_odd_middle_is_none(database: Database, through: str) -> None:
    text = start(database).to_text()
    with pytest.raises(NoPosition):
        ChangeCursor.from_text(database.dialect.position, f"{text}.{text}.{through}")
