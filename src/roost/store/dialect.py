"""What differs between databases: the interface that each package in `databases/` implements.

Everything else in Roost is the same for all databases. It asks `dialect_of` for the dialect of its
connection. A package is imported when a URL needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Engine,
    Insert,
    Integer,
    String,
    Table,
    Text,
    create_engine,
    func,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.sql.elements import TextClause

from roost.store.connections.watchdog import make_watchable

if TYPE_CHECKING:
    from pathlib import Path

    from roost.store.checks.findings import Finding
    from roost.store.database import Database, DatabaseOptions
    from roost.store.databases.sqlite.write_gate import WriteGate
    from roost.store.journal.position import Position
    from roost.store.journal.pruning import OldRows
    from roost.store.statements import BoundStatement
    from roost.store.transaction import Commit
    from roost.store.transfer import TransferTable

# Executes statements on a connection of the driver, with COMMIT after the last if there is one.
BatchRunner: TypeAlias = Callable[
    [Any, "Sequence[BoundStatement]", "Commit | None"], list[list[Any]]
]
# Converts a row of an export.
Convert: TypeAlias = Callable[[list[Any]], list[Any]]

# The package of a database, by the scheme of its URLs.
_PACKAGES = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
SCHEMES = tuple(_PACKAGES)
ALIASES = {"postgres": "postgresql"}

# SQLAlchemy itself knows these differences by the name of a database. SQLite generates ids only for
# a key of the type INTEGER, and would give ids out again, which readers of higher ids would miss.
WIDE_KEY = BigInteger().with_variant(Integer, "sqlite")
EVER_HIGHER_IDS: Any = {"sqlite_autoincrement": True}
# A text of some hundred thousand characters: a plain text of MySQL ends at 64 KB.
LONG_TEXT_MAX = 600_000
LONG_TEXT = Text(LONG_TEXT_MAX).with_variant(Text(), "postgresql")
# SQLite joins integers without a cast to text, which is a little faster.
JOINABLE = String().with_variant(Integer(), "sqlite")

# SQLite takes 32,766 parameters in a statement.
_ROWS_PER_INSERT = 500


class Dialect(ABC):
    """One kind of database. Unless a subclass differs, it is a server with usual SQL."""

    # Drivers with their modules in the order of preference, and the extra that installs one.
    drivers: ClassVar[tuple[tuple[str, str], ...]]
    extra: ClassVar[str] = ""
    # The options of a URL that are secret, and those that name a database or a file that names one.
    secret_options: ClassVar[frozenset[str]] = frozenset()
    naming_options: ClassVar[frozenset[str]] = frozenset()
    # Whether the database is a file of this machine, which has neither server nor round trips.
    is_file: ClassVar[bool] = False
    # What an operator can do about an error that says nothing else.
    general_advice: ClassVar[str] = "Check the URL, and that the server runs and accepts this user."
    # Parts of messages by which a server refuses a connection, now and later.
    lasting_refusals: ClassVar[tuple[str, ...]] = ()

    # The limit for a lock, and the limit after which a server ends a transaction that a stopped
    # process leaves open. Another process may migrate for longer.
    lock_seconds_max = 10
    idle_seconds_max = 60
    migration_seconds_max = 300
    # The statements that begin a transaction whose reads all see the same moment.
    begin_snapshot: ClassVar[tuple[str, ...]]
    # After a transient error, another attempt at the transaction may succeed. By an error of the
    # second kind, a server refuses writes because it is a standby, or becomes one.
    transient_codes: ClassVar[frozenset[object]] = frozenset()
    read_only_codes: ClassVar[frozenset[object]] = frozenset()

    # Where a reader of the journal begins, and which old rows may be deleted.
    position: ClassVar[type[Position]]
    old_rows: ClassVar[OldRows]
    # The statement that tells one life of the server from all others; empty for a file.
    server_life: str = ""
    # The statement that selects table and name of each trigger.
    installed_triggers: ClassVar[str]

    # Whether a transaction can undo changes of tables.
    undoes_table_changes: ClassVar[bool] = True
    # What fills the column of transactions in the journal.
    transaction_id_default: ClassVar[TextClause | None] = None
    # Whether one long row costs less than its parts as rows.
    packs_rows: ClassVar[bool] = True

    # URLs and connections

    def check_url(self, url: URL) -> None:
        """Refuse a URL that no driver can use, with the fix."""

    @abstractmethod
    def driver_options(self, driver: str) -> frozenset[str] | None:
        """The options of a URL that a driver knows; `None` if they are not known."""

    def open_engine(self, url: URL, options: DatabaseOptions, *, reads_only: bool) -> Engine:
        """An engine whose connections are prepared for this database; it connects later."""
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
        elif not self.is_file:
            # After a lock is granted, the next statement must see what was committed before. With
            # a snapshot from the first statement, claims would oversell.
            arguments["isolation_level"] = "READ COMMITTED"
        engine = create_engine(url, connect_args=self.connect_arguments(url, options), **arguments)
        if not self.is_file:
            make_watchable(engine, self.socket_of)
        self.prepare(engine, options, reads_only=reads_only)
        return engine

    @abstractmethod
    def connect_arguments(self, url: URL, options: DatabaseOptions) -> dict[str, Any]:
        """The arguments of the driver, such as its timeouts."""

    def socket_of(self, driver_connection: Any) -> Any:
        """The object that knows the descriptor of a connection to a server."""
        return driver_connection

    @abstractmethod
    def prepare(self, engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
        """Give each connection of the engine timeouts and modes before its first statement."""

    def currency_check(self, _engine: Engine) -> Callable[[Connection], bool]:
        """A function that says whether a connection of the engine still has its database."""
        return lambda _: True

    # The file of a database

    def file_of(self, _url: URL) -> Path | None:
        """The file of the database; `None` for a server."""
        return None

    def prepare_file(self, database: Database) -> None:
        """Make the directory of a new file; refuse a file or a file system that cannot be used."""

    def require_file(self, database: Database) -> None:
        """Refuse a file that does not exist: a connection would make it."""

    # Transactions

    def write_gate(self, _url: URL, _seconds_max: float) -> WriteGate | None:
        """The gate of a database that has one writer at a time and no queue."""
        return None

    def batch_runner(self, _driver: str) -> BatchRunner:
        """How the driver executes several statements in the fewest round trips."""
        return run_one_by_one

    @abstractmethod
    def insert_unless_taken(self, table: Table, key: Column[Any]) -> Insert:
        """An INSERT that skips a row if the table already has its value in the unique column."""

    # Errors of a driver

    @abstractmethod
    def code_of(self, original: BaseException | None) -> Any:
        """The code by which the database names its error; `None` if the driver itself failed."""

    def ends_session(self, _original: BaseException | None) -> bool:
        """Whether the server ends the session with this error."""
        return False

    @abstractmethod
    def refuses_commit(self, code: Any) -> bool:
        """Whether an error after COMMIT says that the transaction was not carried out."""

    def is_transient(self, error: DBAPIError) -> bool:
        """Whether another attempt at the same transaction may succeed."""
        return self.code_of(error.orig) in self.transient_codes

    def is_read_only(self, error: DBAPIError) -> bool:
        """Whether the server refuses writes: it is a standby, or becomes one."""
        return self.code_of(error.orig) in self.read_only_codes

    def is_lost(self, error: Exception) -> bool:
        """Whether the error means that the connection cannot be used any more."""
        if not isinstance(error, DBAPIError):
            return isinstance(error, OSError)
        if error.connection_invalidated or isinstance(error, InterfaceError):
            return True
        # Without a code the driver failed by itself: it no longer understands the server.
        failed = isinstance(error, (OperationalError, InternalError))
        return self.ends_session(error.orig) or (failed and self.code_of(error.orig) is None)

    def is_refusal(self, error: Exception) -> bool:
        """Whether the database says by this error that it did not carry out the transaction."""
        if not isinstance(error, DBAPIError) or error.connection_invalidated:
            return False
        code = self.code_of(error.orig)
        ends = self.ends_session(error.orig)
        return code is not None and not ends and self.refuses_commit(code)

    # Triggers

    @abstractmethod
    def trigger_creations(self, connection: Connection) -> Iterable[str]:
        """The statements that create all triggers."""

    def trigger_removals(
        self, _connection: Connection, found: Iterable[tuple[str, str]]
    ) -> Iterator[str]:
        """The statements that drop triggers, given as table and name."""
        return (f"DROP TRIGGER IF EXISTS {name}" for _, name in found)

    def limit_table_wait(self, connection: Connection) -> None:
        """Bound the wait for a table that another transaction uses, if nothing else does."""

    # Migrations

    @abstractmethod
    def migration_lock(self, connection: Connection) -> AbstractContextManager[bool]:
        """Wait until no other migration runs, and lock; `DatabaseUnusable` after a long time.

        A cluster may have no such lock and gives `False`: other migrations may run meanwhile.
        """

    # Checks of rows

    @abstractmethod
    def check_storage(self, connection: Connection) -> Finding:
        """Check engine, character set and collation of the tables."""

    def further_checks(self, _connection: Connection) -> Iterator[Finding]:
        """The checks that no other database needs."""
        return iter(())

    def faults(self, column: Column[Any]) -> Iterator[ColumnElement[bool]]:
        """What may be wrong with a value because this database accepts it."""
        if isinstance(column.type, DateTime):
            yield self.is_no_time(column)
        if isinstance(column.type, String):
            yield func.instr(self.exact(column), "\0") > 0

    @abstractmethod
    def is_no_time(self, time: Column[Any]) -> ColumnElement[bool]:
        """Whether a value of a column of times is none."""

    def exact(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """A text of which each character counts in comparisons."""
        return text

    # Whole tables

    def keep_snapshot(self, connection: Connection) -> None:
        """Let the transaction wait for a slow receiver of its rows."""

    def holding(self, _part: TransferTable) -> Convert | None:
        """The conversion of a row to what this database can hold; `None` if it can hold all."""
        return None

    @abstractmethod
    def time_for_driver(self, time: str) -> str:
        """A time of an export as the driver takes it."""

    def insert_batch(
        self, connection: Connection, part: TransferTable, rows: Sequence[list[Any]]
    ) -> None:
        """Insert rows, which have a value for each column of the table."""
        holder = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        columns = ", ".join(part.columns)
        values = f"({', '.join([holder] * len(part.columns))})"
        for start in range(0, len(rows), _ROWS_PER_INSERT):
            chunk = rows[start : start + _ROWS_PER_INSERT]
            connection.exec_driver_sql(
                f"INSERT INTO {part.name} ({columns}) VALUES {', '.join([values] * len(chunk))}",
                tuple(value for row in chunk for value in row),
            )

    def advance_sequences(self, connection: Connection) -> None:
        """Let the database generate ids above those that were written."""

    def allow_long_texts(self, connection: Connection) -> None:
        """Let the server join texts of any length."""


def dialect_of(connection: Connection | Engine) -> Dialect:
    """The dialect of a connection or an engine."""
    return dialect_named(connection.dialect.name)


@cache
def dialect_named(scheme: str) -> Dialect:
    """The dialect of URLs with this scheme, one of `SCHEMES`."""
    found: Dialect = import_module(f"roost.store.databases.{_PACKAGES[scheme]}").DIALECT
    return found


def run_one_by_one(
    raw: Any, statements: Sequence[BoundStatement], _commit: Commit | None
) -> list[list[Any]]:
    """Execute the statements each in its round trip, as drivers without batches do.

    COMMIT is a round trip, too. The transaction sends it.
    """
    results = []
    cursor = raw.cursor()
    try:
        for text, parameters in statements:
            cursor.execute(text, parameters)
            results.append(cursor.fetchall() if cursor.description else [])
    finally:
        cursor.close()
    return results
