"""SQLite: a file of this machine, with one writer at a time."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Engine, Insert, Table, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL

from roost.store.checks.findings import Finding, Level, encoding_finding
from roost.store.connections.errors import DatabaseUnusable
from roost.store.connections.sessions import raise_translated
from roost.store.connections.statement_log import log_for_engine, log_statements
from roost.store.databases.sqlite.file import (
    currency_check,
    prepare_file,
    require_file,
    watch_file,
)
from roost.store.databases.sqlite.journal import SqliteOldRows, SqlitePosition
from roost.store.databases.sqlite.write_gate import WriteGate
from roost.store.dialect import Dialect
from roost.store.journal.triggers import PREFIX, WATCHED_EVENTS, TableEvent, WatchedTable

if TYPE_CHECKING:
    from roost.store.database import Database, DatabaseOptions

_BEGIN = "BEGIN IMMEDIATE"
# SQLite refuses a COMMIT by these, and rolls back. After any other error, such as a failed fsync,
# the log may have the whole transaction: whichever process opens the file next finds it.
_REFUSALS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CONSTRAINT,
    }
)
# A time as the file has it.
_SECONDS = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_SECONDS_LENGTH = len("2026-11-15 21:36:37")
# In the form in which Roost and SQLAlchemy write times.
_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"

# `sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER`, which Python has from 3.12 on.
_ENABLE_TRIGGER = 1003


class _Sqlite(Dialect):
    drivers = (("pysqlite", "sqlite3"),)
    is_file = True
    general_advice = "Check that it is an SQLite file and that this user may read and write it."
    begin_snapshot = ("BEGIN",)
    position = SqlitePosition
    old_rows = SqliteOldRows()
    installed_triggers = (
        f"SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '{PREFIX}%'"
    )
    packs_rows = False

    def check_url(self, url: URL) -> None:
        if url.host or url.username or url.port:
            raise DatabaseUnusable(
                "An SQLite URL has three slashes before a relative path and four before an "
                "absolute one: sqlite:///roost.db, sqlite:////var/lib/roost/roost.db"
            )
        if not url.database or url.database == ":memory:":
            raise DatabaseUnusable(
                "Workers cannot share an SQLite database in memory. Name a file: "
                "sqlite:////path/to/roost.db"
            )
        if "uri" in url.query or url.database.startswith("file:"):
            raise DatabaseUnusable(
                "An SQLite URL names a path, not a `file:` URI: sqlite:////var/lib/roost/roost.db"
            )

    def driver_options(self, _driver: str) -> frozenset[str]:
        return frozenset(
            {"timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements"}
        )

    def connect_arguments(self, _url: URL, _options: DatabaseOptions) -> dict[str, Any]:
        return {"check_same_thread": False}

    def prepare(self, engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
        watch_file(engine, str(engine.url.database))

        def execute(dbapi_connection: Any, text: str) -> None:
            log_for_engine(engine, text)
            dbapi_connection.execute(text)

        @event.listens_for(engine, "connect")
        def configure(dbapi_connection: Any, _record: Any) -> None:
            # The driver must not begin transactions by itself. It would begin a read transaction,
            # whose first write fails if another connection has written since.
            dbapi_connection.isolation_level = None
            execute(dbapi_connection, f"PRAGMA busy_timeout = {self.lock_seconds_max * 1000}")
            if not options.keeps_file_mode:
                self._use_write_ahead_log(lambda text: execute(dbapi_connection, text))
            if hasattr(dbapi_connection, "setconfig"):
                # Roost writes its own journal. Python 3.11 cannot turn triggers off: there, a write
                # of Roost has two rows in the journal for each change.
                dbapi_connection.setconfig(_ENABLE_TRIGGER, False)
            # With FULL, an acknowledged claim survives a power failure.
            mode = "FULL" if options.sqlite_synchronous else "OFF"
            execute(dbapi_connection, f"PRAGMA synchronous = {mode}")

        if not reads_only:
            event.listen(engine, "begin", _begin)

    def _use_write_ahead_log(self, execute: Callable[[str], None]) -> None:
        """Let readers and the writer work at the same time.

        The first connection to a new file switches its mode. SQLite ignores the busy timeout there:
        it refuses a second connection that switches at the same moment.
        """
        deadline = time.monotonic() + self.lock_seconds_max
        while True:
            try:
                execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.001, 0.02))

    def currency_check(self, engine: Engine) -> Callable[[Connection], bool]:
        return currency_check(engine)

    def file_of(self, url: URL) -> Path:
        return Path(str(url.database))

    def prepare_file(self, database: Database) -> None:
        prepare_file(self.file_of(database.url))
        if database.write_gate is not None:
            database.write_gate.probe()

    def require_file(self, database: Database) -> None:
        require_file(self.file_of(database.url))

    def write_gate(self, url: URL, seconds_max: float) -> WriteGate:
        return WriteGate(f"{url.database}-writer", seconds_max)

    def insert_unless_taken(self, table: Table, key: Column[Any]) -> Insert:
        return insert(table).on_conflict_do_nothing(index_elements=[key])

    def code_of(self, original: BaseException | None) -> int:
        code: int = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return code

    def refuses_commit(self, code: int) -> bool:
        # The low byte is the kind of error, the rest says more about it.
        return code & 0xFF in _REFUSALS

    def trigger_creations(self, _connection: Connection) -> Iterable[str]:
        return starmap(_trigger, WATCHED_EVENTS)

    def migration_lock(self, _connection: Connection) -> AbstractContextManager[bool]:
        # The transaction of a migration is the one writer.
        return nullcontext(True)

    def check_storage(self, connection: Connection) -> Finding:
        return encoding_finding(str(connection.scalar(sa.text("PRAGMA encoding"))), "UTF-8")

    def further_checks(self, connection: Connection) -> Iterator[Finding]:
        yield _check_file_mode(str(connection.engine.url.database))

    def faults(self, column: Column[Any]) -> Iterator[ColumnElement[bool]]:
        yield from super().faults(column)
        yield _has_another_type(column)

    def is_no_time(self, time: Column[Any]) -> ColumnElement[bool]:
        text = sa.type_coerce(time, sa.String)
        # Without its fraction, which SQLite may round up to another second or to no time at all.
        seconds = sa.func.substr(text, 1, _SECONDS_LENGTH)
        fraction = sa.func.substr(text, _SECONDS_LENGTH + 1)
        return sa.or_(
            sa.not_(text.op("GLOB", is_comparison=True)(f"{_SECONDS}*")),
            sa.func.coalesce(sa.func.date(seconds), "") != sa.func.substr(text, 1, 10),
            sa.func.coalesce(sa.func.time(seconds), "") != sa.func.substr(text, 12, 8),
            sa.and_(fraction != "", sa.not_(fraction.op("GLOB", is_comparison=True)(".[0-9]*"))),
            sa.func.substr(fraction, 2).op("GLOB", is_comparison=True)("*[^0-9]*"),
        )

    def time_for_driver(self, time: str) -> str:
        """A time as SQLAlchemy writes it to SQLite, always with six digits of a second.

        >>> DIALECT.time_for_driver("2026-11-15T21:36:37")
        '2026-11-15 21:36:37.000000'
        """
        fraction = time[_SECONDS_LENGTH + 1 :].ljust(6, "0")
        return f"{time[:10]} {time[11:_SECONDS_LENGTH]}.{fraction}"


def _begin(connection: Connection) -> None:
    # Not through SQLAlchemy, which takes longer than the statement.
    log_statements(connection, _BEGIN)
    try:
        connection.connection.execute(_BEGIN)
    except sqlite3.Error as error:
        raise_translated(connection, error)


def _trigger(watched: WatchedTable, event: TableEvent) -> str:
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in watched.columns)
    condition = f" WHEN {changed}" if event is TableEvent.UPDATE else ""
    inserts = "; ".join(_inserts(watched, event))
    return (
        f"CREATE TRIGGER IF NOT EXISTS {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {watched.table.name}{condition} BEGIN {inserts}; END"
    )


def _inserts(watched: WatchedTable, event: TableEvent) -> Iterator[str]:
    row = "OLD" if event is TableEvent.DELETE else "NEW"
    yield _insert(watched, row)
    if event is TableEvent.UPDATE and watched.provider is not None:
        yield _insert(watched, "OLD", f" WHERE OLD.{watched.provider} <> NEW.{watched.provider}")


def _insert(watched: WatchedTable, row: str, condition: str = "") -> str:
    provider = "NULL" if watched.provider is None else f"{row}.{watched.provider}"
    return (
        "INSERT INTO roost_changes (created_at, kind, provider_id)"
        f" SELECT {_NOW}, '{watched.kind}', {provider}{condition}"
    )


def _check_file_mode(path: str) -> Finding:
    """Check the mode of the file. Earlier versions and the reference let all users read it."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not mode & stat.S_IRWXO:
        return Finding("file mode", Level.OK, f"{mode:04o}")
    return Finding(
        "file mode",
        Level.WARNING,
        f"every user of this machine can open {path} (mode {mode:04o})",
        f"Run: chmod o-rwx {path}*",
    )


def _has_another_type(column: Column[Any]) -> ColumnElement[bool]:
    """Whether SQLite holds a value of another type: it accepts every value in every column."""
    kind = sa.func.typeof(column)
    if isinstance(column.type, sa.Float):
        return kind.not_in(("real", "integer", "null"))
    if isinstance(column.type, sa.Integer):
        return kind.not_in(("integer", "null"))
    wrong = kind.not_in(("text", "null"))
    if isinstance(column.type, sa.String) and column.type.length is not None:
        return sa.or_(wrong, sa.func.length(column) > column.type.length)
    return wrong


DIALECT = _Sqlite()
