"""Which errors after COMMIT are refusals, and which leave open whether the write took effect."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
import pymysql
import pytest
from psycopg import errors as postgresql
from psycopg.pq import DiagnosticField
from sqlalchemy import Connection, event
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError

from roost.store.connections.errors import (
    ConnectionLost,
    DatabaseSilent,
    OutcomeUnknown,
)
from roost.store.database import Database
from roost.store.dialect import SCHEMES, Dialect, dialect_named
from roost.store.shared_commits import SharedCommits
from roost.store.transaction import Commit, Finished, Transaction
from support.api_client import ApiClient
from support.waiting import SECONDS_MAX

T = TypeVar("T")


def on_postgresql(kind: type[psycopg.Error], severity: str = "ERROR", text: str = "") -> Exception:
    info: dict[int, bytes | None] = {DiagnosticField.SEVERITY_NONLOCALIZED: severity.encode()}
    original = kind(text, info=info if kind.sqlstate else None)
    return translated(original, psycopg.Error, PGDialect_psycopg)


def on_mysql(kind: type[pymysql.err.Error], *arguments: object) -> Exception:
    return translated(kind(*arguments), pymysql.err.Error, MySQLDialect_pymysql)


def on_sqlite(kind: type[sqlite3.Error], code: int | None = None) -> Exception:
    original = kind("failed")
    if code is not None:
        original.sqlite_errorcode = code
    return translated(original, sqlite3.Error, SQLiteDialect_pysqlite)


def translated(original: Exception, base: type[Exception], make_dialect: Any) -> Exception:
    error = DBAPIError.instance(None, None, original, base, dialect=make_dialect())
    assert isinstance(error, DBAPIError)
    return error


REFUSALS = {
    "postgresql: serialization failure": on_postgresql(postgresql.SerializationFailure),
    "postgresql: deadlock": on_postgresql(postgresql.DeadlockDetected),
    "postgresql: unique violation": on_postgresql(postgresql.UniqueViolation),
    "postgresql: deferred foreign key": on_postgresql(postgresql.ForeignKeyViolation),
    "postgresql: read only": on_postgresql(postgresql.ReadOnlySqlTransaction),
    "postgresql: failed transaction": on_postgresql(postgresql.InFailedSqlTransaction),
    "postgresql: disk full": on_postgresql(postgresql.DiskFull),
    "postgresql: statement cancelled": on_postgresql(postgresql.QueryCanceled),
    "postgresql: lock timeout": on_postgresql(postgresql.LockNotAvailable),
    "postgresql: value too long": on_postgresql(postgresql.StringDataRightTruncation),
    "mysql: deadlock": on_mysql(pymysql.err.OperationalError, 1213, "Deadlock found"),
    "mysql: lock timeout": on_mysql(pymysql.err.OperationalError, 1205, "Lock wait timeout"),
    "mysql: record changed": on_mysql(pymysql.err.OperationalError, 1020, "Record has changed"),
    "mysql: duplicate": on_mysql(pymysql.err.IntegrityError, 1062, "Duplicate entry"),
    "mysql: read only": on_mysql(pymysql.err.OperationalError, 1290, "--read-only"),
    "mysql: disk full": on_mysql(pymysql.err.OperationalError, 1021, "Disk full"),
    "mysql: table full": on_mysql(pymysql.err.OperationalError, 1114, "The table is full"),
    "mysql: group rolled back": on_mysql(pymysql.err.OperationalError, 3101, "rolled back"),
    "sqlite: busy": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_BUSY),
    "sqlite: busy snapshot": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_BUSY_SNAPSHOT),
    "sqlite: locked": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_LOCKED),
    "sqlite: full": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_FULL),
    "sqlite: read only": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_READONLY),
    "sqlite: moved": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_READONLY_DBMOVED),
    "sqlite: interrupted": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_INTERRUPT),
    "sqlite: constraint": on_sqlite(sqlite3.IntegrityError, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY),
}

LOST = {
    "postgresql: administrator": on_postgresql(postgresql.AdminShutdown, "FATAL"),
    "postgresql: crash": on_postgresql(postgresql.CrashShutdown, "FATAL"),
    "postgresql: cannot connect": on_postgresql(postgresql.CannotConnectNow, "FATAL"),
    "postgresql: database dropped": on_postgresql(postgresql.DatabaseDropped, "FATAL"),
    "postgresql: idle session": on_postgresql(postgresql.IdleSessionTimeout, "FATAL"),
    "postgresql: idle transaction": on_postgresql(
        postgresql.IdleInTransactionSessionTimeout, "FATAL"
    ),
    "postgresql: panic": on_postgresql(postgresql.InternalError_, "PANIC"),
    "postgresql: busy pipeline": on_postgresql(
        psycopg.OperationalError, text="cannot exit pipeline mode while busy"
    ),
    "postgresql: closed": on_postgresql(
        psycopg.OperationalError, text="server closed the connection unexpectedly"
    ),
    "postgresql: broken pipe": on_postgresql(
        psycopg.OperationalError, text="sending query failed: could not send data: Broken pipe"
    ),
    "postgresql: pipeline aborted": on_postgresql(postgresql.PipelineAborted),
    "mysql: gone": on_mysql(pymysql.err.OperationalError, 2006, "MySQL server has gone away"),
    "mysql: lost": on_mysql(pymysql.err.OperationalError, 2013, "Lost connection"),
    "mysql: out of sync": on_mysql(pymysql.err.OperationalError, 2014, "Commands out of sync"),
    "mysql: malformed packet": on_mysql(pymysql.err.OperationalError, 2027, "Malformed packet"),
    "mysql: shutdown": on_mysql(pymysql.err.OperationalError, 1053, "Server shutdown"),
    "mysql: killed": on_mysql(pymysql.err.OperationalError, 1927, "Connection was killed"),
    "mysql: Galera not ready": on_mysql(pymysql.err.OperationalError, 1047, "WSREP"),
    "mysql: packet error": on_mysql(pymysql.err.OperationalError, 1158, "Got an error reading"),
    "mysql: closed": on_mysql(pymysql.err.InterfaceError, 0, ""),
    "mysql: packets in disorder": on_mysql(
        pymysql.err.InternalError, "Packet sequence number wrong - got 2 expected 1"
    ),
    "system: broken pipe": BrokenPipeError(32, "Broken pipe"),
}

OPEN = LOST | {
    "postgresql: completion unknown": on_postgresql(postgresql.StatementCompletionUnknown),
    "postgresql: resolution unknown": on_postgresql(postgresql.TransactionResolutionUnknown),
    "postgresql: connection failure": on_postgresql(postgresql.ConnectionFailure),
    "postgresql: proxy": on_postgresql(postgresql.ProtocolViolation),
    "mysql: error during commit": on_mysql(pymysql.err.OperationalError, 1180, "Got error 6"),
    "mysql: interrupted": on_mysql(pymysql.err.OperationalError, 1317, "Query interrupted"),
    "mysql: took too long": on_mysql(pymysql.err.OperationalError, 3024, "maximum statement time"),
    "mariadb: took too long": on_mysql(pymysql.err.OperationalError, 1969, "max_statement_time"),
    "mysql: log not written": on_mysql(pymysql.err.OperationalError, 1598, "Binary logging"),
    "mysql: file not written": on_mysql(pymysql.err.InternalError, 3, "Error writing file"),
    "mysql: engine": on_mysql(pymysql.err.OperationalError, 1030, "Got error 5"),
    "sqlite: fsync": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_FSYNC),
    "sqlite: write": on_sqlite(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_WRITE),
    "sqlite: corrupt": on_sqlite(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT),
    "sqlite: closed": on_sqlite(sqlite3.ProgrammingError),
    "roost: lost": ConnectionLost("the connection was lost"),
    "roost: silent": DatabaseSilent("the database did not answer in time"),
    "driver: defect": AssertionError("unexpected packet"),
    "python: memory": MemoryError(),
}


def dialects(name: str) -> list[Dialect]:
    """The database that the name of an error begins with, or else all."""
    scheme = name.partition(":")[0]
    return [dialect_named(one) for one in SCHEMES if one == scheme or scheme not in SCHEMES]


@pytest.mark.parametrize("name", REFUSALS)
def test_the_database_refuses(name: str) -> None:
    assert all(dialect.is_refusal(REFUSALS[name]) for dialect in dialects(name))


@pytest.mark.parametrize("name", OPEN)
def test_the_outcome_is_open(name: str) -> None:
    assert not any(dialect.is_refusal(OPEN[name]) for dialect in dialects(name))


@pytest.mark.parametrize("name", LOST)
def test_the_connection_is_lost(name: str) -> None:
    """So before COMMIT, the write runs again over a new connection."""
    assert all(dialect.is_lost(LOST[name]) for dialect in dialects(name))


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_leaves_the_connection_in_use(name: str) -> None:
    assert not any(dialect.is_lost(REFUSALS[name]) for dialect in dialects(name))


TRANSIENT = (
    "postgresql: serialization failure",
    "postgresql: deadlock",
    "postgresql: statement cancelled",
    "mysql: deadlock",
    "mysql: record changed",
    "mysql: interrupted",
)


@pytest.mark.parametrize("name", REFUSALS | OPEN)
def test_only_some_errors_are_worth_another_attempt(name: str) -> None:
    """A wait for a lock that took too long is not: another wait would keep a thread busy."""
    error = (REFUSALS | OPEN)[name]
    if isinstance(error, DBAPIError):
        (dialect,) = dialects(name)
        assert dialect.is_transient(error) is (name in TRANSIENT)
        assert dialect.is_read_only(error) is (name == "postgresql: read only")


def test_before_commit_no_error_leaves_the_outcome_open() -> None:
    commits = [Commit(dialect_named(scheme)) for scheme in SCHEMES]
    errors = (REFUSALS | OPEN).values()
    assert not any(commit.leaves_open(error) for commit in commits for error in errors)


def test_an_error_of_the_rollback_does_not_answer_for_the_commit() -> None:
    commit = Commit(dialect_named("postgresql"))
    commit.is_sent = True
    commit.note(OPEN["postgresql: busy pipeline"])
    commit.note(REFUSALS["postgresql: failed transaction"])
    assert commit.leaves_open(REFUSALS["postgresql: failed transaction"])


# What the driver raises in place of the success of a COMMIT, and the beginning of the answer.
AT_COMMIT = {
    "sqlite": ("sqlite: fsync", "The database failed during a commit."),
    "postgresql": ("postgresql: busy pipeline", "The connection to the database was lost"),
    "mariadb": ("mysql: interrupted", "The database failed during a commit."),
}


def test_an_error_in_place_of_the_success_of_a_commit_is_not_told_as_a_refusal(
    api: ApiClient, database: Database, kind: str
) -> None:
    name, beginning = AT_COMMIT[kind]
    attempts: list[str] = []

    def fail(connection: Connection) -> None:
        attempts.append(name)
        connection.connection.commit()
        raise OPEN[name]

    uuid = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    event.listen(database.engine, "commit", fail)
    try:
        answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    finally:
        event.remove(database.engine, "commit", fail)
    assert answer.status == 503
    assert beginning in answer.detail
    assert "may have been carried out or not" in answer.detail
    assert "Nothing was written" not in answer.detail
    assert api.get(f"/resource_providers/{uuid}").status == 200
    assert attempts == [name], "a write that may be done was done again"


def test_a_refused_commit_says_that_nothing_was_written(
    api: ApiClient, database: Database, kind: str
) -> None:
    refusal = {"sqlite": "full", "postgresql": "disk full", "mariadb": "disk full"}[kind]

    def fail(_connection: Connection) -> None:
        raise REFUSALS[f"{kind.replace('mariadb', 'mysql')}: {refusal}"]

    uuid = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
    event.listen(database.engine, "commit", fail)
    try:
        answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    finally:
        event.remove(database.engine, "commit", fail)
    assert answer.status == 503
    assert "Nothing was written" in answer.detail
    assert api.get(f"/resource_providers/{uuid}").status == 404
    # The connection is in no transaction any more.
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200


@pytest.mark.parametrize("failure", [OutcomeUnknown, SystemExit])
def test_works_that_share_an_open_commit_are_not_done_again(failure: type[BaseException]) -> None:
    """The thread that leads may even end during the COMMIT of all."""
    begun, all_wait = threading.Event(), threading.Event()
    done: list[str] = []

    def write(
        deadline: float,
        work: Callable[[Transaction], Finished[T]],
        join: Callable[[Connection], None] | None = None,
    ) -> T:
        connection: Any = _Raw()
        Transaction(connection, join=join).run(work)
        raise failure("during COMMIT")

    shared = SharedCommits(write)
    errors: dict[str, BaseException] = {}

    def run(name: str) -> None:
        def work(transaction: Transaction) -> Finished[None]:
            done.append(name)
            begun.set()
            assert all_wait.wait(SECONDS_MAX)
            return transaction.finish()

        try:
            shared.run(time.monotonic() + SECONDS_MAX, work)
        except BaseException as error:
            errors[name] = error

    threads = [threading.Thread(target=run, args=(name,)) for name in ("leader", "follower")]
    threads[0].start()
    assert begun.wait(SECONDS_MAX)
    threads[1].start()
    while not shared._writers:  # the follower waits now
        threads[1].join(0.001)
    all_wait.set()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert sorted(done) == ["follower", "leader"]
    assert isinstance(errors["leader"], failure)
    assert isinstance(errors["follower"], OutcomeUnknown)


class _Raw:
    """A connection for works that use none."""

    in_transaction = True
    dialect = SQLiteDialect_pysqlite()

    @property
    def connection(self) -> _Raw:
        return self

    dbapi_connection = property(lambda self: self)

    def exec_driver_sql(self, _statement: str) -> None:
        pass
