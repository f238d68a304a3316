"""The database: connections as each kind needs them, and transactions that are run again."""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError

from roost.store.availability import Availability
from roost.store.errors import (
    ConnectionLost,
    Contention,
    DatabaseSilent,
    OutcomeUnknown,
    Retry,
    WriteRefused,
    is_read_only,
    is_transient,
    leaves_outcome_open,
    reason_of,
)
from roost.store.sessions import Doorway, session
from roost.store.sqlite_file import watch_file
from roost.store.urls import parse_url
from roost.store.watchdog import make_watchable
from roost.store.write_gate import WriteGate

_LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# For reading and for writing each, in every worker: four workers stay below the 100 connections
# that PostgreSQL allows by default. More threads than that wait for their turn.
POOL_SIZE = 5
POOL_OVERFLOW = 5
POOL_TIMEOUT_SECONDS = 30
WAIT_SECONDS = 5
# libpq does not wait for less.
_PROBE_SECONDS = 2
SILENCE_SECONDS = 30

_BACKOFF_SECONDS_MAX = 0.25
# A write that waits for others is given up after a while, so that they cannot stop the service.
_WRITE_SECONDS_MAX = 30
_LOCK_SECONDS_MAX = 10
# How a transaction begins all of whose reads see the same moment.
_MYSQL_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
_BEGIN_SNAPSHOT = {
    "sqlite": ("BEGIN",),
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",),
    "mysql": _MYSQL_SNAPSHOT,
    "mariadb": _MYSQL_SNAPSHOT,
}
# A transaction of ours that a stopped process leaves open is ended by the server.
_IDLE_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """How to connect; the names and meanings of `[placement_database]`."""

    url: str
    connection_parameters: str = ""
    sqlite_synchronous: bool = True
    mysql_sql_mode: str = "TRADITIONAL"
    recycle_seconds: int = 3600
    pool_size: int = POOL_SIZE
    pool_overflow: int = POOL_OVERFLOW
    pool_timeout_seconds: int = POOL_TIMEOUT_SECONDS
    attempts: int = 10
    echo: bool = False
    # How long a new connection may take, and a look into the journal.
    wait_seconds: int = WAIT_SECONDS
    # How long a server may take for one statement of any other kind.
    silence_seconds: int = SILENCE_SECONDS


class Database:
    """A pool of connections and the two ways to use them: `read` and `write`.

    Both take a function whose first argument is the connection and run it in one transaction.
    It may be run several times, so it must do nothing but talk to the database.
    """

    def __init__(self, options: DatabaseOptions) -> None:
        self.options = options
        self.url = parse_url(options.url, options.connection_parameters)
        self.engine = _create_engine(self.url, options, reads_only=False)
        # Connections of their own, without transactions: on a server, BEGIN and ROLLBACK would
        # be two of three round trips of most reads.
        self.reader = _create_engine(self.url, options, reads_only=True)
        # One connection outside of the pools: slow readers do not keep the journal from being read.
        self.follower = _create_engine(self.url, _of_follower(options), reads_only=True)
        self.writers, self.readers = (
            Doorway(engine, _connections_max(options), options.pool_timeout_seconds)
            for engine in (self.engine, self.reader)
        )
        self.availability = Availability(self._probe, options.wait_seconds)
        for engine in (self.engine, self.reader, self.follower):
            self.availability.guard(engine)
        self.gate = (
            WriteGate(f"{self.url.database}-writer", _WRITE_SECONDS_MAX)
            if self.engine.dialect.name == "sqlite"
            else None
        )

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns, which only reads.

        Each of its statements sees what is committed when it begins, so `work` reads a
        generation before what the generation stands for.
        """
        return self._with_fresh_connection(lambda: self._read_once(work, *args, **kwargs))

    def snapshot(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns, which only reads: all its statements see the same moment."""
        return self._with_fresh_connection(lambda: self._read_moment(work, *args, **kwargs))

    def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns, after everything it wrote is durable; all of it or nothing.

        Deadlocks, serialisation failures and lost races run it again, a bounded number of times;
        then `Contention` is raised. A broken unique key is a lost race, too: work looks before it
        inserts, so when it is run again it finds what was in the way and says so properly.

        A connection that is lost before COMMIT has written nothing, so the work is run again, too.
        `OutcomeUnknown` says that it was lost during COMMIT; then nothing is run again.
        """
        deadline = time.monotonic() + _WRITE_SECONDS_MAX
        last: Exception | None = None
        for attempt in range(self.options.attempts):
            if attempt:
                time.sleep(random.uniform(0, min(0.002 * 2**attempt, _BACKOFF_SECONDS_MAX)))
                if time.monotonic() > deadline:
                    break
            try:
                return self._write_once(deadline, work, *args, **kwargs)
            except (Retry, IntegrityError, ConnectionLost) as error:
                last = error
            except DBAPIError as error:
                if not is_transient(error):
                    raise
                last = error
        if isinstance(last, ConnectionLost):
            raise last
        assert last is not None, "there is at least one attempt"
        _LOG.warning("A write was given up, the last time because of: %s", reason_of(last))
        raise Contention("other writes were in the way of each attempt") from last

    def turn(self, deadline: float | None = None) -> AbstractContextManager[None]:
        """The turn of this writer, where writers have to queue; `Busy` after the deadline."""
        return nullcontext() if self.gate is None else self.gate.passed(deadline)

    def close(self) -> None:
        """Give all connections back."""
        self.release()
        self.follower.dispose()

    def release(self) -> None:
        """Give back what processes must not share after a fork.

        The journal's connection to a server stays: a child that comes by it leaves it alone.
        """
        self.engine.dispose()
        self.reader.dispose()
        if self.gate is not None:
            self.follower.dispose()
            self.gate.close()

    def _session(self, doorway: Doorway) -> AbstractContextManager[Connection]:
        return session(doorway, self.options.silence_seconds, self.availability)

    def _probe(self) -> None:
        """See that the database answers over a new connection."""
        options = replace(_of_follower(self.options), wait_seconds=_PROBE_SECONDS)
        engine = _create_engine(self.url, options, reads_only=True)
        try:
            with session(Doorway(engine, 0, 0), _PROBE_SECONDS) as connection:
                connection.exec_driver_sql("SELECT 1").close()
        finally:
            engine.dispose()

    def _with_fresh_connection(self, run: Callable[[], T]) -> T:
        try:
            return run()
        except ConnectionLost:
            # The server was restarted while the connection lay in the pool: a new one will do.
            return run()

    def _read_moment(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._session(self.readers) as connection:
            return in_one_moment(connection, work, *args, **kwargs)

    def _read_once(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._session(self.readers) as connection:
            return work(connection, *args, **kwargs)

    def _write_once(
        self,
        deadline: float,
        work: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        commits = False
        try:
            with (
                self.turn(deadline),
                self._session(self.writers) as connection,
                connection.begin(),
            ):
                result = work(connection, *args, **kwargs)
                commits = True
            return result
        except (ConnectionLost, DatabaseSilent) as error:
            if not commits:
                raise
            raise OutcomeUnknown(str(error)) from error
        except InternalError as error:
            if is_read_only(error):
                raise WriteRefused(reason_of(error)) from error
            raise
        except OperationalError as error:
            if commits and leaves_outcome_open(error):
                raise OutcomeUnknown(reason_of(error)) from error
            if is_transient(error):
                raise
            # The server says so itself: it has rolled the transaction back.
            raise WriteRefused(reason_of(error)) from error


def in_one_moment(
    connection: Connection,
    work: Callable[Concatenate[Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """What `work` returns; all its statements see the same moment."""
    for statement in _BEGIN_SNAPSHOT[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    try:
        return work(connection, *args, **kwargs)
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")


def _create_engine(url: URL, options: DatabaseOptions, *, reads_only: bool) -> Engine:
    backend = url.get_backend_name()
    arguments: dict[str, Any] = {
        "pool_size": options.pool_size,
        "max_overflow": options.pool_overflow,
        "pool_timeout": options.pool_timeout_seconds,
        "pool_recycle": options.recycle_seconds,
        "echo": options.echo,
        # Errors reach logs; what clients sent must not.
        "hide_parameters": True,
    }
    if reads_only:
        arguments |= {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
    if backend == "sqlite":
        engine = create_engine(url, connect_args={"check_same_thread": False}, **arguments)
        _prepare_sqlite(engine, options, reads_only=reads_only)
        return engine
    # Under a lock, the next statement must see what was committed before the lock was granted:
    # with a snapshot from the first statement (MySQL's default) claims would oversell.
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
    """How long the driver itself waits, for a new connection above all."""
    waits = {"connect_timeout": options.wait_seconds}
    if url.get_backend_name() == "postgresql":
        return waits | {"tcp_user_timeout": options.silence_seconds * 1000}
    # PyMySQL waits for the greeting of a server that has accepted as long as for any answer.
    greets = url.get_driver_name() == "pymysql"
    answer_seconds = options.wait_seconds if greets else _answer_seconds(options)
    return waits | {"read_timeout": answer_seconds, "write_timeout": _answer_seconds(options)}


def _answer_seconds(options: DatabaseOptions) -> int:
    """Longer than the watchdog waits, which can tell silence from a broken connection."""
    return options.silence_seconds + 5


def _connections_max(options: DatabaseOptions) -> int:
    """How many connections a pool may have; 0 for any number."""
    unbounded = options.pool_size == 0 or options.pool_overflow < 0
    return 0 if unbounded else options.pool_size + options.pool_overflow


def _of_follower(options: DatabaseOptions) -> DatabaseOptions:
    """The options of the journal's connection, which stays open as long as the server lets it."""
    return replace(options, pool_size=1, pool_overflow=0, recycle_seconds=-1)


def _with_charset(url: URL) -> URL:
    if url.get_backend_name() == "postgresql" or "charset" in url.query:
        return url
    return url.update_query_dict({"charset": "utf8mb4"})


def _prepare_sqlite(engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
    watch_file(engine, str(engine.url.database))

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: it would begin them as readers,
        # and a reader that turns writer fails when somebody else wrote meanwhile.
        dbapi_connection.isolation_level = None
        dbapi_connection.execute(f"PRAGMA busy_timeout = {_LOCK_SECONDS_MAX * 1000}")
        _use_write_ahead_log(dbapi_connection)
        # FULL: an acknowledged claim survives a loss of power.
        mode = "FULL" if options.sqlite_synchronous else "OFF"
        dbapi_connection.execute(f"PRAGMA synchronous = {mode}")

    if reads_only:
        return

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _use_write_ahead_log(dbapi_connection: Any) -> None:
    """Let readers and the writer pass each other.

    The first connection to a new file turns it over, and SQLite does not wait for others that
    try the same at that moment, whatever the busy timeout says: it refuses them at once.
    """
    deadline = time.monotonic() + _LOCK_SECONDS_MAX
    while True:
        try:
            dbapi_connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


def _prepare_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        with dbapi_connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{_LOCK_SECONDS_MAX}s'")
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS_MAX}s'")
        dbapi_connection.commit()


def _prepare_mysql(engine: Engine, options: DatabaseOptions) -> None:
    # VCPU has the id 0, which MySQL would otherwise replace by the next free number.
    modes = [mode for mode in (options.mysql_sql_mode, "NO_AUTO_VALUE_ON_ZERO") if mode]

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, _record: Any) -> None:
        # PyMySQL has no other way to wait longer for an answer than for the greeting.
        dbapi_connection._read_timeout = _answer_seconds(options)
        cursor = dbapi_connection.cursor()
        cursor.execute("SET SESSION sql_mode = %s", (",".join(modes),))
        cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {_LOCK_SECONDS_MAX}")
        cursor.close()
