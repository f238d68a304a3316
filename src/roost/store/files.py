"""The file of an SQLite database: there, to be made, or not to be used."""

from __future__ import annotations

import os
from pathlib import Path

from roost.store.database import Database
from roost.store.errors import DatabaseUnusable


def database_file(database: Database) -> Path | None:
    """The file that the database is; none on a server."""
    if database.engine.dialect.name != "sqlite" or database.url.database is None:
        return None
    return Path(database.url.database)


def make_room(database: Database) -> None:
    """Make the directory of a new file, and see that an existing one can be written."""
    file = database_file(database)
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(
            f"The directory {file.parent} for the database cannot be made: {error.strerror}."
        ) from None
    if file.exists() and not os.access(file, os.W_OK):
        raise DatabaseUnusable(f"The database file {file} may not be written by this user.")


def require_file(database: Database) -> None:
    """Refuse to look at a file that is not there, instead of making it by looking."""
    file = database_file(database)
    if file is not None and not file.exists():
        raise DatabaseUnusable(
            f"There is no database at {file} yet; `roost serve` or `roost db sync` makes one."
        )
