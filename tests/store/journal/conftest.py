"""What tests of the journal begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.store.database import Database
from support.store.journal import Reader, empty, meta_restored, record, start


@pytest.fixture
def meta_kept(database: Database) -> Iterator[None]:
    """All tests share one database: what a test changes in `roost_meta` is restored."""
    with meta_restored(database):
        yield


@pytest.fixture
def reader(database: Database) -> Reader:
    """A reader that has seen the only change so far."""
    empty(database)
    database.write_at_once(record, 1)
    return Reader(database, start(database))
