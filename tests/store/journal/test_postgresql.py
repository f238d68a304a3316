"""Reading the journal of PostgreSQL: transactions, and servers that use their ids again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.store.database import Database
from roost.store.databases.postgresql.journal import PostgresqlPosition
from roost.store.journal.position import JournalLost, fetch_rows
from support.store.journal import (
    Reader,
    empty,
    insert_change,
    meta_restored,
    never_pruned,
    prune,
    record,
    rolled_back,
    start,
    writing,
)

pytestmark = [
    pytest.mark.usefixtures("meta_kept"),
    pytest.mark.parametrize("kind", ["postgresql"], indirect=True),
]


def test_a_cluster_that_is_behind_loses_the_journal(reader: Reader) -> None:
    position = reader.position
    assert isinstance(position, PostgresqlPosition)
    now = position.snapshot
    for ahead in (replace(now, horizon=1 << 40), replace(now, end=1 << 40)):
        reader.position = replace(position, snapshot=ahead, head="")
        with pytest.raises(JournalLost):
            reader.read()


def test_another_server_loses_the_journal(reader: Reader) -> None:
    assert isinstance(reader.position, PostgresqlPosition)
    reader.position = replace(reader.position, journal="another", head="another")
    with pytest.raises(JournalLost):
        reader.read()


def test_a_row_of_another_cluster_is_not_reported(database: Database, reader: Reader) -> None:
    database.write_at_once(insert_change, transaction_id=1 << 40, provider_id=2)
    assert reader.read() == []
    reader.position = start(database)
    database.write_at_once(record, 3)
    assert reader.read() == [3]
    assert prune(database) == 2


def test_a_look_moves_past_transactions_that_changed_nothing(
    database: Database, reader: Reader
) -> None:
    with rolled_back(database) as connection:
        record(connection, 90)
    looked = database.read(reader.position.look)
    assert looked is not None
    entries, position = looked
    assert entries == ()
    assert position != reader.position


def test_a_transaction_id_that_is_used_again_is_read_once(
    database: Database, reader: Reader
) -> None:
    """A server uses ids again after a crash that it survived."""
    for id_ in (2, 3):
        database.write_at_once(insert_change, transaction_id=3, provider_id=id_)
        assert reader.read() == [id_]
        assert reader.read() == []
    database.write_at_once(record, 4)
    assert reader.read() == [4]


def test_a_pruned_transaction_whose_id_was_used_again_loses_the_journal(
    database: Database,
) -> None:
    with meta_restored(database):
        empty(database)
        never_pruned(database)
        reader = Reader(database, start(database))
        for id_ in (1, 2):
            database.write_at_once(insert_change, transaction_id=3, provider_id=id_)
        assert prune(database) == 1
        with pytest.raises(JournalLost):
            reader.read()


def test_a_long_transaction_makes_no_reader_fetch_rows_twice(
    database: Database, reader: Reader
) -> None:
    with writing(database) as long:
        record(long, 1)
        for id_ in range(2, 12):
            database.write_at_once(record, id_)
            assert reader.read() == [id_]
        position = reader.position
        assert isinstance(position, PostgresqlPosition)
        # The newest row, and none that was read while the long transaction ran.
        assert len(database.read(fetch_rows, *position.question())) == 1
    assert reader.read() == [1]
