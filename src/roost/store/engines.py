"""Engines: what every connection to a database gets before its first statement.

Timeouts, isolation, modes and character sets differ from one kind of database to the next.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from roost.store.pymysql_connections import use_sparing_connections
from roost.store.sessions import raise_translated
from roost.store.sqlite_file import watch_file
from roost.store.statement_log import log_for_engine, log_statements
from roost.store.triggers.mysql import MARK_CONNECTION
from roost.store.triggers.postgresql import APPLICATION_NAME
from roost.store.triggers.sqlite import leave_triggers_out
from roost.store.watchdog import make_watchable

if TYPE_CHECKING:
    from roost.store.database import DatabaseOptions

_BEGIN = "BEGIN IMMEDIATE"
_SET_MODE = "SET SESSION sql_mode = %s"
_LOCK_SECONDS_MAX = 10
# The server ends a transaction that a stopped process leaves open.
_IDLE_SECONDS_MAX = 60


def open_engine(url: URL, options: DatabaseOptions, *, reads_only: bool) -> Engine:
    """An engine whose connections are prepared for this database; it connects later."""
    backend = url.get_backend_name()
    arguments: dict[str, Any] = {
        "pool_size": options.pool_size,
        "max_overflow": options.pool_overflow,
        "pool_timeout": options.pool_timeout_seconds,
        "pool_recycle": options.recycle_seconds,
        "echo": options.echo,
        # Errors are logged, and values that clients sent must not be logged.
        "hide_parameters": True,
    }
    if reads_only:
        arguments |= {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
    if backend == "sqlite":
        engine = create_engine(url, connect_args={"check_same_thread": False}, **arguments)
        _prepare_sqlite(engine, options, reads_only=reads_only)
        return engine
    # After a lock is granted, the next statement must see what was committed before. With MySQL's
    # default, a snapshot from the first statement, claims would oversell.
    arguments.setdefault("isolation_level", "READ COMMITTED")
    arguments["connect_args"] = _connect_arguments(url, options)
    engine = create_engine(_with_charset(url), **arguments)
    make_watchable(engine)
    if backend == "postgresql":
        _prepare_postgresql(engine)
    else:
        _prepare_mysql(engine, options)
    return engine


def _connect_arguments(url: URL, options: DatabaseOptions) -> dict[str, Any]:
    """The timeouts of the driver itself."""
    waits = {"connect_timeout": options.wait_seconds}
    if url.get_backend_name() == "postgresql":
        # Triggers leave out the connections of this name, because Roost writes its own journal.
        names = {} if "application_name" in url.query else {"application_name": APPLICATION_NAME}
        return waits | names | {"tcp_user_timeout": options.silence_seconds * 1000}
    answers = {"read_timeout": _answer_seconds(options), "write_timeout": _answer_seconds(options)}
    if url.get_driver_name() == "pymysql":
        # PyMySQL has the same timeout for the greeting of a new connection as for any answer.
        answers |= {"read_timeout": options.wait_seconds}
    return waits | answers


def _answer_seconds(options: DatabaseOptions) -> int:
    """Longer than the watchdog waits: only the watchdog can tell silence from a lost connection."""
    return options.silence_seconds + 5


def _with_charset(url: URL) -> URL:
    if url.get_backend_name() == "postgresql" or "charset" in url.query:
        return url
    return url.update_query_dict({"charset": "utf8mb4"})


def _prepare_sqlite(engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
    watch_file(engine, str(engine.url.database))

    def execute(dbapi_connection: Any, text: str) -> None:
        log_for_engine(engine, text)
        dbapi_connection.execute(text)

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself. It would begin a read transaction, whose
        # first write fails if another connection has written since.
        dbapi_connection.isolation_level = None
        execute(dbapi_connection, f"PRAGMA busy_timeout = {_LOCK_SECONDS_MAX * 1000}")
        if not options.sqlite_keeps_mode:
            _use_write_ahead_log(lambda text: execute(dbapi_connection, text))
        leave_triggers_out(dbapi_connection)
        # With FULL, an acknowledged claim survives a power failure.
        mode = "FULL" if options.sqlite_synchronous else "OFF"
        execute(dbapi_connection, f"PRAGMA synchronous = {mode}")

    if reads_only:
        return

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Not through SQLAlchemy, which takes longer than the statement.
        log_statements(connection, _BEGIN)
        try:
            connection.connection.execute(_BEGIN)
        except sqlite3.Error as error:
            raise_translated(connection, error)


def _use_write_ahead_log(execute: Callable[[str], None]) -> None:
    """Let readers and the writer work at the same time.

    The first connection to a new file switches its mode. SQLite ignores the busy timeout there: it
    refuses a second connection that switches at the same moment.
    """
    deadline = time.monotonic() + _LOCK_SECONDS_MAX
    while True:
        try:
            execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


def _prepare_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        texts = (
            f"SET lock_timeout = '{_LOCK_SECONDS_MAX}s'",
            f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS_MAX}s'",
        )
        log_for_engine(engine, *texts, "COMMIT")
        with dbapi_connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
        dbapi_connection.commit()


def _prepare_mysql(engine: Engine, options: DatabaseOptions) -> None:
    if engine.dialect.driver == "pymysql":
        use_sparing_connections(engine)
    # VCPU has the id 0, which MySQL would otherwise replace by a generated id.
    modes = [mode for mode in (options.mysql_sql_mode, "NO_AUTO_VALUE_ON_ZERO") if mode]

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        # PyMySQL has no other way to a longer timeout for answers than for the greeting.
        dbapi_connection._read_timeout = _answer_seconds(options)
        texts = (
            # Only MariaDB reads the comment. MySQL has no such limit.
            f"SET SESSION innodb_lock_wait_timeout = {_LOCK_SECONDS_MAX}"
            f" /*M!100300 , SESSION idle_transaction_timeout = {_IDLE_SECONDS_MAX} */",
            # Triggers leave this connection out, because Roost writes its own journal.
            MARK_CONNECTION,
        )
        log_for_engine(engine, _SET_MODE, *texts)
        cursor = dbapi_connection.cursor()
        cursor.execute(_SET_MODE, (",".join(modes),))
        for text in texts:
            cursor.execute(text)
        cursor.close()
