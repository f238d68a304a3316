"""Small databases for the tests of the demo cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names


@pytest.fixture(scope="session")
def open_database() -> Callable[[str], Database]:
    """Opens the database of a URL and makes its tables and standard names."""

    def open_(url: str) -> Database:
        database = Database(DatabaseOptions(url=url, sqlite_synchronous=False))
        prepare_schema(database, upgrade=True)
        database.write(sync_standard_names)
        return database

    return open_


@pytest.fixture
def empty(tmp_path: Path, open_database: Callable[[str], Database]) -> Iterator[Database]:
    """A database without providers."""
    database = open_database(f"sqlite:///{tmp_path}/empty.db")
    yield database
    database.close()
