"""A position as a text, which a client keeps and sends to any server of the same database."""

from __future__ import annotations

import base64
import json
import zlib
from contextlib import suppress

import pytest

from roost.store.database import Database
from roost.store.journal.position import JournalLost, NoPosition, Position
from support.store.journal import Reader, empty, record, rolled_back, start, writing

SERVERS = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)

pytestmark = pytest.mark.usefixtures("meta_kept")


def kept(database: Database, position: Position) -> Position:
    """The position that a client has kept as a text."""
    text = position.to_text()
    assert text.replace("-", "").replace("_", "").isalnum(), "a URL has it as it is"
    return database.dialect.position.from_text(text)


def test_a_kept_position_is_equal_and_sees_nothing_new(database: Database, reader: Reader) -> None:
    again = kept(database, reader.position)
    assert again.to_text() == reader.position.to_text()
    assert Reader(database, again).sees_nothing_new()


def test_a_kept_position_reports_what_came_later_once(database: Database, reader: Reader) -> None:
    position = reader.position
    database.write_at_once(record, 2, 3)
    later = Reader(database, kept(database, position))
    assert later.read() == [2, 3]
    later.position = kept(database, later.position)
    assert later.read() == []
    database.write_at_once(record, 4)
    assert later.read() == [4]


@SERVERS
def test_a_kept_position_reports_what_commits_late(database: Database, reader: Reader) -> None:
    with writing(database) as late:
        record(late, 2)
        database.write_at_once(record, 3)
        assert reader.read() == [3]
        with rolled_back(database) as connection:
            record(connection, 99)
        database.write_at_once(record, 4)
        later = Reader(database, kept(database, reader.position))
        assert later.read() == [4]
        later.position = kept(database, later.position)
    assert later.read() == [2]
    later.position = kept(database, later.position)
    assert later.read() == []


def test_a_position_in_an_empty_journal_can_be_kept(database: Database) -> None:
    empty(database)
    later = Reader(database, kept(database, start(database)))
    database.write_at_once(record, 1)
    assert later.read() == [1]


def test_a_text_stays_short_after_many_changes(database: Database, reader: Reader) -> None:
    database.write_at_once(record, *range(5000))
    reader.read()
    assert len(reader.position.to_text()) < 1000


@pytest.mark.parametrize("text", ["", "x", "ä", "AAAA", "eJyLBQAA-AB8", "=" * 9, "a" * 10_001])
def test_a_text_that_is_no_position_is_refused(database: Database, text: str) -> None:
    with pytest.raises(NoPosition):
        database.dialect.position.from_text(text)


def test_a_forged_text_is_no_position_or_has_lost_the_journal(
    database: Database, reader: Reader
) -> None:
    """No error of the database comes of it."""
    values = reader.position.values()
    for place in range(len(values)):
        for wrong in (-1, 2**64, 2**63 - 1, [-1], {"a": 1}, [2**63], "a|b|c|d", "1:2:3|e|4|5"):
            forged = [*values[:place], wrong, *values[place + 1 :]]
            text = base64.urlsafe_b64encode(zlib.compress(json.dumps(forged).encode())).decode()
            with suppress(NoPosition, JournalLost):
                position = database.dialect.position.from_text(text.rstrip("="))
                database.read(position.read, 10)
