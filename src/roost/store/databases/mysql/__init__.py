"""MySQL and MariaDB: a server whose rows become visible in any order, alone or in a cluster."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Engine, Insert, Table, event
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from roost.store.databases.mysql.connections import run_as_one_text, use_sparing_connections
from roost.store.databases.mysql.journal import SERVER, MysqlOldRows, MysqlPosition
from roost.store.databases.mysql.triggers import INSTALLED, MARK_CONNECTION, creations
from roost.store.dialect import BatchRunner, Convert, Dialect, run_one_by_one
from roost.store.errors import migration_lasts
from roost.store.findings import Finding, Level
from roost.store.statement_log import log_for_engine
from roost.store.tables import metadata
from roost.store.transfer.layout import TransferTable

if TYPE_CHECKING:
    from roost.store.database import DatabaseOptions

_SET_MODE = "SET SESSION sql_mode = %s"
# SQLAlchemy joins these options of a URL into one argument.
_TLS_OPTIONS = frozenset(
    {"ssl_ca", "ssl_key", "ssl_cert", "ssl_capath", "ssl_cipher", "ssl_check_hostname"}
)
# The server ends its sessions, or is not ready for clients. 1047 comes from a node of Galera.
_GONE = frozenset({1047, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927})
# The errors of the drivers themselves, which also raise errors with the code 0 or without a code.
_DRIVER_CODES = range(2000, 3000)
# The server may replace the success of a COMMIT by these errors: the statement or session was
# killed or took too long, a log could not be written, a node of Galera lost its cluster. The codes
# below 1000 are those of the server's files.
_OPEN = frozenset(
    {1026, 1030, 1105, 1180, 1181, 1317, 1598, 1815, 1969, 3024, 3169, 4031, *range(1000)}
)
# How long a change of triggers waits for a table that another transaction uses.
_TABLE_WAIT_SECONDS = 20
# A server cuts off a joined text after 1,024 characters by default.
_JOINED_LENGTH_MAX = 1 << 30
_JOINS_LONG_TEXTS = "joins_long_texts"
_SECONDS_LENGTH = len("2026-11-15T21:36:37")

# The lock of migrations. A server has one space of lock names for all its databases. A name has 64
# characters at most.
MIGRATION_LOCK = "concat('roost.schema.', md5(database()))"
# The error codes of clusters that refuse named locks: of Galera, and of Percona's strict mode.
LOCK_REFUSALS = frozenset({1235, 1105})


class _Mysql(Dialect):
    drivers = (("mysqldb", "MySQLdb"), ("pymysql", "pymysql"))
    extra = "mysql"
    lasting_refusals = ("Access denied", "Unknown database")
    begin_snapshot = (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    )
    # Deadlock, record changed since last read, statement cancelled.
    transient_codes = frozenset({1213, 1020, 1317})
    position = MysqlPosition
    old_rows = MysqlOldRows()
    # The nodes of a cluster may have equal ids, and may have started in the same second.
    server_life = f"SELECT CONCAT(@@hostname, ' ', @@port, ' ', {SERVER})"
    installed_triggers = INSTALLED
    undoes_table_changes = False

    def driver_options(self, driver: str) -> frozenset[str] | None:
        if driver != "pymysql":
            return None
        # An installation has only the drivers of its databases.
        from pymysql.connections import Connection as Driver  # noqa: PLC0415

        return frozenset(inspect.signature(Driver).parameters) | _TLS_OPTIONS

    def complete_url(self, url: URL) -> URL:
        return url if "charset" in url.query else url.update_query_dict({"charset": "utf8mb4"})

    def connect_arguments(self, url: URL, options: DatabaseOptions) -> dict[str, Any]:
        # PyMySQL has the same timeout for the greeting of a new connection as for any answer.
        is_pymysql = url.get_driver_name() == "pymysql"
        return {
            "connect_timeout": options.wait_seconds,
            "read_timeout": options.wait_seconds if is_pymysql else _answer_seconds(options),
            "write_timeout": _answer_seconds(options),
        }

    def socket_of(self, driver_connection: Any) -> Any:
        # PyMySQL has no method for its descriptor.
        return getattr(driver_connection, "_sock", driver_connection)

    def prepare(self, engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
        if engine.dialect.driver == "pymysql":
            use_sparing_connections(engine)
        # VCPU has the id 0, which the server would otherwise replace by a generated id.
        modes = [mode for mode in (options.mysql_sql_mode, "NO_AUTO_VALUE_ON_ZERO") if mode]

        @event.listens_for(engine, "connect")
        def configure(dbapi_connection: Any, _record: Any) -> None:
            # PyMySQL has no other way to a longer timeout for answers than for the greeting.
            dbapi_connection._read_timeout = _answer_seconds(options)
            texts = (
                # Only MariaDB reads the comment. MySQL has no such limit.
                f"SET SESSION innodb_lock_wait_timeout = {self.lock_seconds_max}"
                f" /*M!100300 , SESSION idle_transaction_timeout = {self.idle_seconds_max} */",
                # Triggers leave this connection out, because Roost writes its own journal.
                MARK_CONNECTION,
            )
            log_for_engine(engine, _SET_MODE, *texts)
            cursor = dbapi_connection.cursor()
            cursor.execute(_SET_MODE, (",".join(modes),))
            for text in texts:
                cursor.execute(text)
            cursor.close()

    def batch_runner(self, driver: str) -> BatchRunner:
        return run_as_one_text if driver == "pymysql" else run_one_by_one

    def insert_unless_taken(self, table: Table, _key: Column[Any]) -> Insert:
        # Not IGNORE, which would also store truncated values.
        return insert(table).on_duplicate_key_update(id=table.c.id)

    def code_of(self, original: BaseException | None) -> int | None:
        code = next(iter(getattr(original, "args", ())), None)
        is_of_server = isinstance(code, int) and code > 0 and code not in _DRIVER_CODES
        return code if is_of_server else None

    def ends_session(self, original: BaseException | None) -> bool:
        return self.code_of(original) in _GONE

    def refuses_commit(self, code: int) -> bool:
        return code not in _OPEN

    def trigger_creations(self, _connection: Connection) -> Iterable[str]:
        return creations()

    def limit_table_wait(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SET SESSION lock_wait_timeout = {_TABLE_WAIT_SECONDS}")

    @contextmanager
    def migration_lock(self, connection: Connection) -> Iterator[bool]:
        taken = self._take_migration_lock(connection)
        try:
            yield taken
        finally:
            if taken and not connection.invalidated:
                connection.rollback()
                connection.execute(sa.text(f"SELECT release_lock({MIGRATION_LOCK})"))
                connection.commit()

    def _take_migration_lock(self, connection: Connection) -> bool:
        seconds = self.migration_seconds_max
        try:
            answer = connection.scalar(
                sa.text(f"SELECT get_lock({MIGRATION_LOCK}, :seconds)"), {"seconds": seconds}
            )
        except DBAPIError as error:
            connection.rollback()
            if self.code_of(error.orig) in LOCK_REFUSALS:
                return False
            raise
        # The migration begins its own transactions.
        connection.commit()
        if answer != 1:
            raise migration_lasts(connection.engine.url.database, seconds)
        return True

    def check_storage(self, connection: Connection) -> Finding:
        engines = connection.execute(
            sa.text(
                "SELECT table_name, engine FROM information_schema.tables"
                " WHERE table_schema = database() AND table_type = 'BASE TABLE'"
            )
        ).all()
        wrong = sorted(
            name for name, engine in engines if name in metadata.tables if engine != "InnoDB"
        )
        if wrong:
            return Finding(
                "character set",
                Level.FAILURE,
                f"tables without transactions (engine is not InnoDB): {', '.join(wrong)}",
                "Run for each: ALTER TABLE name ENGINE = InnoDB",
            )
        columns = connection.execute(
            sa.text(
                "SELECT table_name, column_name, character_set_name, collation_name"
                " FROM information_schema.columns"
                " WHERE table_schema = database() AND character_set_name IS NOT NULL"
            )
        ).all()
        ours = [column for column in columns if column[0] in metadata.tables]
        return _collation_finding({(row[0], row[1]): (row[2], row[3]) for row in ours})

    def is_no_time(self, time: Column[Any]) -> ColumnElement[bool]:
        # Old versions accept dates of zeros, and days that a month does not have.
        return sa.func.to_days(time).is_(None) & time.is_not(None)

    def exact(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        # The default collations ignore case, and others ignore control characters.
        return sa.cast(text, sa.LargeBinary)

    def holding(self, part: TransferTable) -> Convert:
        # A server keeps times in whole seconds, and ratios in single precision.
        times, ratios = part.positions(sa.DateTime), part.positions(sa.Float)

        def convert(row: list[Any]) -> list[Any]:
            held = list(row)
            for position in times:
                if held[position] is not None:
                    held[position] = held[position][:_SECONDS_LENGTH]
            for position in ratios:
                held[position] = single_precision(held[position])
            return held

        return convert

    def time_for_driver(self, time: str) -> str:
        return time[:_SECONDS_LENGTH].replace("T", " ")

    def allow_long_texts(self, connection: Connection) -> None:
        if _JOINS_LONG_TEXTS not in connection.info:
            connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {_JOINED_LENGTH_MAX}")
            connection.info[_JOINS_LONG_TEXTS] = True


def _answer_seconds(options: DatabaseOptions) -> int:
    """Longer than the watchdog waits: only the watchdog can tell silence from a lost connection."""
    return options.silence_seconds + 5


def _collation_finding(columns: Mapping[tuple[str, str], tuple[str, str]]) -> Finding:
    name = "character set"
    # The one pair of text columns that statements compare with each other.
    joined = {
        columns.get(("allocations", "consumer_id")),
        columns.get(("consumers", "uuid")),
    }
    if len(joined) > 1:
        return Finding(
            name,
            Level.FAILURE,
            "allocations.consumer_id and consumers.uuid have different collations, so the server "
            "cannot compare them",
            "Run: ALTER TABLE allocations CONVERT TO CHARACTER SET ... COLLATE ...; with those of "
            "consumers",
        )
    placement = {key: value for key, value in columns.items() if not key[0].startswith("roost_")}
    sets = sorted({charset for charset, _ in placement.values()})
    if sets and sets != ["utf8mb4"]:
        return Finding(
            name,
            Level.WARNING,
            f"columns have {', '.join(sets)}, so the server refuses names with other characters",
            "No action is necessary. ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb4 mends it.",
        )
    collations = sorted({collation for _, collation in placement.values()})
    return Finding(name, Level.OK, f"InnoDB, {', '.join(collations)}")


def single_precision(number: float) -> float:
    """The number that a server shows after it has stored this one as FLOAT: six digits.

    >>> single_precision(16.1234567)
    16.1235
    """
    (stored,) = struct.unpack("f", struct.pack("f", number))
    return float(f"{stored:.6g}")


DIALECT = _Mysql()
