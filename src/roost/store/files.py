"""Checks of the file of an SQLite database, before a connection would change it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from roost.store.database import Database
from roost.store.driver_errors import advice, reason
from roost.store.errors import DatabaseUnusable
from roost.store.migrations.histories import HISTORIES
from roost.store.schema import SchemaState, SchemaStatus, read_status
from roost.store.tables import metadata, resource_providers


def database_file(database: Database) -> Path | None:
    """The file of an SQLite database; `None` for a server."""
    if database.engine.dialect.name != "sqlite" or database.url.database is None:
        return None
    return Path(database.url.database)


def prepare_file(database: Database) -> None:
    """Make the directory of a new file; refuse a file or a file system that cannot be used."""
    file = database_file(database)
    if file is None:
        return
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(
            f"The directory {file.parent} for the database cannot be made: {error.strerror}. "
            "Name another file, or let this user make the directory."
        ) from None
    if file.exists():
        _check_file(file)
    elif not os.access(file.parent, os.W_OK | os.X_OK):
        raise DatabaseUnusable(
            f"The database file {file} cannot be made: this user may not write the directory "
            f"{file.parent}. Let this user write it, or name another file."
        )
    if database.gate is not None:
        database.gate.probe()


def require_file(database: Database) -> None:
    """Refuse a file that does not exist: a connection would make it."""
    file = database_file(database)
    if file is None:
        return
    if not file.exists():
        raise DatabaseUnusable(
            f"There is no database at {file} yet. Make one with `roost serve` or `roost db sync`."
        )
    _check_file(file)


def _check_file(file: Path) -> None:
    """Refuse a file that is no database of Placement, without any change to the file."""
    if not file.is_file():
        kind = "a directory" if file.is_dir() else "no regular file"
        raise DatabaseUnusable(f"The database file {file} is {kind}. Name a file.")
    if not os.access(file, os.R_OK | os.W_OK):
        raise DatabaseUnusable(
            f"The database file {file} may not be written by this user. Run Roost as the owner of "
            "the file, or let this user write it."
        )
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise DatabaseUnusable(
            f"The directory {file.parent} may not be written by this user, and SQLite keeps its "
            f"log beside {file.name}. Let this user write the directory."
        )
    foreign = _foreign_tables(file)
    if foreign:
        raise DatabaseUnusable(
            f"The database file {file} belongs to another application: it has tables "
            f"({', '.join(sorted(foreign)[:3])}), but no revision of Placement's schema. Name "
            "another file."
        )


def _foreign_tables(file: Path) -> set[str]:
    """The tables of another application; empty for an empty file or a database of Placement."""
    try:
        status, tables = _look(file, leave_no_trace=True)
    except DBAPIError:
        # Another process may have written at this moment.
        status, tables = _look_or_explain(file)
    recorded = status.placement_revision is not None or status.roost_revision is not None
    if recorded and status.state is not SchemaState.UNKNOWN:
        return set()
    foreign = tables - {*metadata.tables, *(history.version_table for history in HISTORIES)}
    if resource_providers.name in tables:
        return set() if recorded else foreign
    # Other applications have tables `users` and `projects` as well.
    return tables - {history.version_table for history in HISTORIES} or foreign


def _look_or_explain(file: Path) -> tuple[SchemaStatus, set[str]]:
    try:
        return _look(file, leave_no_trace=False)
    except DBAPIError as error:
        url = sa.make_url(f"sqlite:///{file}")
        said = reason(error, url)
        raise DatabaseUnusable(
            f"The database file {file} cannot be read: {said}. {advice(said, url)}"
        ) from None


def _look(file: Path, *, leave_no_trace: bool) -> tuple[SchemaStatus, set[str]]:
    """The status and the tables of the file, unchanged; if wanted, without new files beside it."""
    path = file.resolve()
    # Without a log beside it, the file is complete, and SQLite needs to make none.
    complete = leave_no_trace and not Path(f"{path}-wal").exists()
    address = f"{path.as_uri()}?{'immutable=1' if complete else 'mode=ro'}"
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, timeout=10),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        return read_status(connection), set(sa.inspect(connection).get_table_names())
