"""Transactions: a write locks and reads rows, decides, writes statements, and finishes.

The statements of a write wait in its transaction. They go to the database in one batch with the
next read, or with COMMIT. Without batches, each of them would be a round trip.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from random import getrandbits
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from sqlalchemy import Connection

from roost.store.connections.sessions import raise_translated
from roost.store.connections.statement_log import log_statements
from roost.store.connections.watchdog import begin_wait, end_wait
from roost.store.dialect import Dialect, dialect_of
from roost.store.statements import BoundStatement, chunks
from roost.store.tables import utc_now

_LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# How many statements share a round trip at most. A server bounds the length of a text, and the
# watchdog bounds the time of a round trip.
_STATEMENTS_MAX = 64
# The lower bits of a number that a transaction gets here; of the time, they are a millisecond.
_RANDOM_BITS = 20
_RANDOM = (1 << _RANDOM_BITS) - 1

Rows: TypeAlias = list[Any]


class Commit:
    """The COMMIT of one transaction: whether it was sent, and what an error after that means.

    Before COMMIT was sent, every error means that nothing was written. Afterwards, only an error by
    which the database itself refuses the transaction means that. A lost connection, an ended
    session and a failure of the driver leave the outcome open: COMMIT may have been carried out.
    """

    __slots__ = ("_dialect", "_first_error", "is_sent")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.is_sent = False
        self._first_error: Exception | None = None

    def note(self, error: Exception) -> None:
        """Record an error. Later ones may be those of a ROLLBACK, and say nothing about COMMIT."""
        self._first_error = self._first_error or error

    def leaves_open(self, error: Exception) -> bool:
        """Whether the transaction that ended with this error may have taken effect."""
        return self.is_sent and not self._dialect.is_refusal(self._first_error or error)


class Finished(Generic[T]):
    """The result of a write whose transaction is finished. Only `Transaction.finish` makes it."""

    __slots__ = ("result",)

    def __init__(self, result: T) -> None:
        self.result = result


class Transaction:
    """The transaction of one write, which ends with `finish`.

    A transaction without a `commit` is a part of another one, and leaves COMMIT to that one. Before
    COMMIT, `join` lets further writes take part.
    """

    __slots__ = (
        "_commit",
        "_connection",
        "_is_finished",
        "_join",
        "_unsent",
        "now",
        "number",
        "sql_dialect",
        "writer",
    )

    def __init__(
        self,
        connection: Connection,
        commit: Commit | None = None,
        join: Callable[[Connection], None] | None = None,
    ) -> None:
        self._connection = connection
        self._commit = commit
        self._join = join
        self._unsent: list[BoundStatement] = []
        self._is_finished = False
        # SQLAlchemy's dialect, for which statements are compiled.
        self.sql_dialect = connection.dialect
        # The time in all rows of this transaction.
        self.now = utc_now()
        # The number in its rows of the journal; `None` where the database numbers transactions.
        self.number = (
            _new_number() if dialect_of(connection).transaction_id_default is None else None
        )
        # The request that writes, as a text for the journal; `None` if no request does.
        self.writer: str | None = None

    def run(self, work: Callable[[Transaction], Finished[T]]) -> T:
        """The result of `work`, which must finish this transaction."""
        finished = work(self)
        if not self._is_finished:
            raise RuntimeError("A write returned without Transaction.finish: nothing was written.")
        return finished.result

    @property
    def connection(self) -> Connection:
        """The connection, for a statement that is executed at once, after all earlier ones."""
        self._send()
        return self._connection

    def lock(
        self, locks: Iterable[BoundStatement], *guarded: Sequence[BoundStatement]
    ) -> list[Rows]:
        """Lock rows until the transaction ends, then read what the locks guard: one round trip.

        It reads as `read` does. Its name tells that its first statements lock.

        Returns the rows of the locks, then those of each group of queries.
        """
        return self.read(list(locks), *guarded)

    def read(self, *groups: Sequence[BoundStatement]) -> list[Rows]:
        """For each group, the rows of all its queries: one round trip."""
        results = iter(self._send(list(chain.from_iterable(groups))))
        return [[row for _ in group for row in next(results)] for group in groups]

    def write(self, statements: Iterable[BoundStatement]) -> None:
        """Write by these statements. They are sent with the next read, or with COMMIT."""
        if self._is_finished:
            raise _ended()
        self._unsent += statements

    def include(
        self,
        write: Callable[Concatenate[Transaction, P], Finished[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result of a write that takes part in this one."""
        part = Transaction(self.connection)
        part.writer, part.number = self.writer, self.number
        return part.run(lambda transaction: write(transaction, *args, **kwargs))

    @overload
    def finish(self) -> Finished[None]: ...

    @overload
    def finish(self, result: T) -> Finished[T]: ...

    def finish(self, result: object = None) -> Finished[Any]:
        """Send the last statements together with COMMIT. If one of them fails, none takes effect.

        On SQLite, the works of threads that wait are done first. A write calls it last, outside any
        `try`, and returns what it returns.
        """
        if self._join is not None:
            self._join(self.connection)
        if self._commit is None:
            self._send()
        else:
            self._send_with(self._commit)
        self._is_finished = True
        return Finished(result)

    def _send_with(self, commit: Commit) -> None:
        """Send what waits, and COMMIT."""
        if self._is_finished:
            raise _ended()
        try:
            _run(self._connection, self._unsent, commit)
            commit.is_sent = True
            # After a batch that had COMMIT, the driver is in no transaction, and sends nothing.
            self._connection.commit()
        except Exception as error:
            commit.note(error)
            if (root := self._connection.get_transaction()) is not None and not root.is_active:
                # After a failed COMMIT, SQLAlchemy keeps its root, and would not roll back.
                root.rollback()
            raise

    def _send(self, queries: Sequence[BoundStatement] = ()) -> list[Rows]:
        """Send what waits, then the queries; return the rows of each query."""
        if self._is_finished:
            raise _ended()
        unsent = self._unsent
        if not unsent:
            return _run(self._connection, queries)
        self._unsent = []
        return _run(self._connection, [*unsent, *queries])[len(unsent) :]


def _new_number() -> int:
    """A number that ascends with the time, and that hardly two transactions have.

    The time without its last millisecond, so that an index of the numbers grows at its end.
    """
    return (time.time_ns() & ~_RANDOM) | getrandbits(_RANDOM_BITS)


def _ended() -> RuntimeError:
    return RuntimeError("A transaction was used after its end.")


def _run(
    connection: Connection, statements: Sequence[BoundStatement], commit: Commit | None = None
) -> list[Rows]:
    """Execute the statements in batches, the last with `commit`; return the rows of each."""
    if not statements:
        return []
    texts = [text for text, _ in statements]
    if _LOG.isEnabledFor(logging.DEBUG):
        _LOG.debug("batch: %s", "; ".join(texts))
    log_statements(connection, *texts)
    dialect = dialect_of(connection)
    run = dialect.batch_runner(connection.dialect.driver)
    results: list[Rows] = []
    for piece in chunks(statements, _STATEMENTS_MAX):
        is_last = len(results) + len(piece) == len(statements)
        begin_wait(connection)
        try:
            raw = connection.connection.dbapi_connection
            results += run(raw, piece, commit if is_last else None)
        except Exception as error:
            raise_translated(connection, _said_by_server(error, dialect))
        finally:
            end_wait(connection)
    return results


def _said_by_server(error: Exception, dialect: Dialect) -> Exception:
    """The server's last error, which a driver replaces if it cannot end the batch after it."""
    replaced = error.__context__
    if isinstance(replaced, Exception) and dialect.ends_session(replaced):
        return replaced
    return error
