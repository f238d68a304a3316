"""The database: its connections, and transactions with several attempts."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError

from roost.metrics.catalogue import RETRIES
from roost.model.declared_options import option
from roost.store.connections.availability import Availability
from roost.store.connections.errors import (
    ConnectionLost,
    Contention,
    DatabaseAway,
    OutcomeUnknown,
    Retry,
    WriteRefused,
    reason_of,
    retry_cause,
)
from roost.store.connections.sessions import ConnectionSource, Session, in_one_moment
from roost.store.connections.urls import parse_url
from roost.store.dialect import dialect_named
from roost.store.shared_commits import SharedCommits
from roost.store.transaction import Commit, Finished, Transaction

_LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# A function that the database calls with a connection, then with arguments of its own.
Work: TypeAlias = Callable[Concatenate[Connection, P], T]
# The same with a transaction, which the function must finish.
Write: TypeAlias = Callable[Concatenate[Transaction, P], Finished[T]]

# Every worker has a pool of this size for readers and one for writers. Four workers stay below the
# 100 connections that PostgreSQL allows by default. Further threads wait for a connection.
POOL_SIZE = 5
# libpq has no shorter timeout.
_PROBE_SECONDS = 2

_BACKOFF_SECONDS_MAX = 0.25
# The bound for a write with all its attempts. Without it, writes that wait for each other could
# occupy all threads.
WRITE_SECONDS_MAX = 30


_option = partial(option, group="placement_database")


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """How to connect; the names and meanings of `[placement_database]`."""

    url: str
    connection_parameters: str = _option("", "Appended to the URL: a=b&c=d.")
    sqlite_synchronous: bool = _option(True, "False: faster, loses data on a crash.")
    # Leave the file of a database in the mode that it has, for commands that change nothing.
    keeps_file_mode: bool = False
    mysql_sql_mode: str = _option("TRADITIONAL", "The session's SQL mode on MySQL.")
    recycle_seconds: int = _option(
        3600,
        "Seconds a connection is kept; -1: for ever.",
        name="connection_recycle_time",
        minimum=-1,
    )
    pool_size: int = _option(
        POOL_SIZE, "Connections kept by each worker; 0: no limit.", name="max_pool_size", minimum=0
    )
    pool_overflow: int = _option(
        5, "Connections on top of these under load; -1: no limit.", name="max_overflow", minimum=-1
    )
    pool_timeout_seconds: int = _option(
        30, "Seconds to wait for a free connection.", name="pool_timeout", minimum=0
    )
    attempts: int = option(
        10,
        "How often a write is attempted.",
        group="placement",
        name="allocation_conflict_retry_count",
        # Only a second attempt finds the row that a write conflicts with, and words the error.
        read=lambda count: max(3, count),
    )
    echo: bool = _option(
        0,
        "50 and more: log every statement, without values.",
        name="connection_debug",
        read=lambda level: level >= 50,
    )
    wait_seconds: int = option(
        5,
        "Seconds to wait for a new connection and for the change journal; then 503.",
        name="database_wait_seconds",
        minimum=1,
    )
    silence_seconds: int = option(
        30,
        "Seconds to wait for the answer to any other statement; then 503.",
        name="database_silence_seconds",
        minimum=15,
    )


class Database:
    """Pools of connections, and the ways to use them: `read`, `snapshot`, `survey`, `write`.

    Each calls a function with a connection or a transaction as its first argument. The function may
    be called several times, so it must have no effects outside the database.
    """

    def __init__(self, options: DatabaseOptions) -> None:
        self.options = options
        self.url = parse_url(options.url, options.connection_parameters)
        self.dialect = dialect_named(self.url.get_backend_name())
        self.engine = self.dialect.open_engine(self.url, options, reads_only=False)
        # Reads have their own connections without transactions: BEGIN and ROLLBACK would be two of
        # the three round trips of most reads.
        self.reader = self.dialect.open_engine(self.url, options, reads_only=True)
        # One connection outside the pools: slow reads must not delay the reader of the journal.
        self.follower = self.dialect.open_engine(self.url, _of_follower(options), reads_only=True)
        # Another one, which is open only during a survey.
        self.surveyor = self.dialect.open_engine(self.url, _of_follower(options), reads_only=True)
        connections_max, seconds = _connections_max(options), options.pool_timeout_seconds
        self.writers, self.readers = (
            ConnectionSource(
                engine, connections_max, seconds, kept_max=options.pool_size or POOL_SIZE
            )
            for engine in (self.engine, self.reader)
        )
        self.followers = ConnectionSource(self.follower, 0, 0, kept_max=1)
        self.surveyors = ConnectionSource(self.surveyor, 1, seconds)
        self.availability = Availability(
            lambda: self.probe(lambda new: new.exec_driver_sql("SELECT 1").close()),
            options.wait_seconds,
        )
        for engine in (self.engine, self.reader, self.follower, self.surveyor):
            self.availability.guard(engine)
        self.write_gate = self.dialect.write_gate(self.url, WRITE_SECONDS_MAX)
        # Writers that wait at a gate share the transaction, and its COMMIT, of the one inside.
        self._attempt = (
            self._attempt_alone
            if self.write_gate is None
            else SharedCommits(self._attempt_alone).run
        )

    def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns, which only reads.

        Each of its statements sees what is committed when the statement begins. So `work` reads a
        generation before the rows that the generation guards.
        """
        try:
            return self._read_once(work, *args, **kwargs)
        except ConnectionLost:
            # The server was restarted while the connection was in the pool: a new one works.
            return self._read_once(work, *args, **kwargs)

    def snapshot(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns, which only reads; all its statements see the same moment."""
        return self.read(lambda connection: in_one_moment(connection, work, *args, **kwargs))

    def survey(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns, which reads very much; all its statements see the same moment.

        A survey has a connection to itself, so it holds none of those that all requests share.
        There is one survey at a time. Its work may wait between two statements.
        """
        try:
            return self._survey_once(work, *args, **kwargs)
        except ConnectionLost:
            return self._survey_once(work, *args, **kwargs)

    def write_at_once(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, for work that executes each of its statements at once."""
        return self.write(
            lambda transaction: transaction.finish(work(transaction.connection, *args, **kwargs))
        )

    def write(self, write: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `write`, after all that it wrote is durable; or nothing of it is.

        After a deadlock, a serialisation failure or a lost race, `write` runs again. After
        `options.attempts` attempts, `Contention` is raised. A violated unique key is a lost race:
        a write looks before it inserts, so the next attempt finds the row and raises the right
        error.

        A connection that is lost before COMMIT has written nothing, so `write` runs again. After
        COMMIT was sent, an error by which the database does not refuse raises `OutcomeUnknown`, and
        `write` does not run again.
        """
        return self._repeated(
            lambda deadline: self._attempt(
                deadline, lambda transaction: write(transaction, *args, **kwargs)
            )
        )

    def rehearse(self, write: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result that `write` would have. It runs, then everything that it wrote is undone."""
        return self._repeated(
            lambda deadline: self._attempt_and_undo(
                deadline, lambda transaction: write(transaction, *args, **kwargs)
            )
        )

    def _repeated(self, attempt_once: Callable[[float], T]) -> T:
        """The result of a write, after as many attempts as necessary."""
        deadline = time.monotonic() + WRITE_SECONDS_MAX
        last: Exception | None = None
        for attempt in range(self.options.attempts):
            if attempt:
                time.sleep(random.uniform(0, min(0.002 * 2**attempt, _BACKOFF_SECONDS_MAX)))
                if time.monotonic() > deadline:
                    break
            try:
                return attempt_once(deadline)
            except (Retry, IntegrityError, ConnectionLost) as error:
                last = error
            except DBAPIError as error:
                if not self.dialect.is_transient(error):
                    raise
                last = error
            RETRIES.count((retry_cause(last),))
        if isinstance(last, ConnectionLost):
            raise last
        assert last is not None, "there is at least one attempt"
        _LOG.warning(
            "A write failed at each of its attempts, the last because of: %s", reason_of(last)
        )
        raise Contention("each attempt at the write conflicted with another write") from last

    def sources(self) -> dict[str, ConnectionSource]:
        """The ways to connections, by what they are for."""
        return {
            "write": self.writers,
            "read": self.readers,
            "journal": self.followers,
            "survey": self.surveyors,
        }

    def write_gate_passed(self, deadline: float | None = None) -> AbstractContextManager[None]:
        """Be the only writer, where a database has a write gate; `Busy` after the deadline."""
        return nullcontext() if self.write_gate is None else self.write_gate.passed(deadline)

    def close(self) -> None:
        """Close all connections."""
        self.release()
        self._release_follower()

    def release(self) -> None:
        """Close what processes must not share after a fork.

        The journal's connection to a server stays open: a child process never uses it.
        """
        for source in (self.writers, self.readers):
            source.close_kept()
            source.engine.dispose()
        if self.write_gate is not None:
            self._release_follower()
            self.write_gate.close()

    def _release_follower(self) -> None:
        self.followers.close_kept()
        self.follower.dispose()

    def _session(self, source: ConnectionSource) -> Session:
        return Session(source, self.options.silence_seconds, self.availability)

    def probe(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `work` returns over a new connection, soon; `DatabaseAway` if nothing answers."""
        options = replace(_of_follower(self.options), wait_seconds=_PROBE_SECONDS)
        engine = self.dialect.open_engine(self.url, options, reads_only=True)
        try:
            with Session(ConnectionSource(engine, 0, 0), _PROBE_SECONDS) as connection:
                return work(connection, *args, **kwargs)
        finally:
            engine.dispose()

    def _survey_once(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.surveyors.enter()
        try:
            with self._session(ConnectionSource(self.surveyor, 0, 0)) as connection:
                return in_one_moment(connection, work, *args, **kwargs)
        finally:
            # Surveys are rare. Between them the server has a connection less.
            self.surveyor.dispose()
            self.surveyors.leave()

    def _read_once(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._session(self.readers) as connection:
            return work(connection, *args, **kwargs)

    def _attempt_alone(
        self,
        deadline: float,
        work: Callable[[Transaction], Finished[T]],
        join: Callable[[Connection], None] | None = None,
    ) -> T:
        commit = Commit(self.dialect)
        try:
            with (
                self.write_gate_passed(deadline),
                self._session(self.writers) as connection,
                connection.begin(),
            ):
                return Transaction(connection, commit, join).run(work)
        except Exception as error:
            if commit.leaves_open(error):
                lost = isinstance(error, DatabaseAway)
                raise OutcomeUnknown(reason_of(error), lost=lost) from error
            if self._is_refused(error):
                raise WriteRefused(reason_of(error)) from error
            raise

    def _attempt_and_undo(self, deadline: float, work: Callable[[Transaction], Finished[T]]) -> T:
        """As `_attempt_alone`, without COMMIT. It joins no transaction of other writers."""
        try:
            with (
                self.write_gate_passed(deadline),
                self._session(self.writers) as connection,
                connection.begin() as begun,
            ):
                result = Transaction(connection).run(work)
                begun.rollback()
                return result
        except Exception as error:
            if self._is_refused(error):
                raise WriteRefused(reason_of(error)) from error
            raise

    def _is_refused(self, error: Exception) -> bool:
        """Whether the database refuses to write, and another attempt would not help."""
        if isinstance(error, OperationalError):
            return not self.dialect.is_transient(error)
        return isinstance(error, InternalError) and self.dialect.is_read_only(error)


def _connections_max(options: DatabaseOptions) -> int:
    """How many connections a pool may have; 0 for no limit."""
    unbounded = options.pool_size == 0 or options.pool_overflow < 0
    return 0 if unbounded else options.pool_size + options.pool_overflow


def _of_follower(options: DatabaseOptions) -> DatabaseOptions:
    """The options of the journal's connection, which stays open until the server closes it."""
    return replace(options, pool_size=1, pool_overflow=0, recycle_seconds=-1)
