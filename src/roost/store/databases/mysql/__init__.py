"""MySQL and MariaDB: a server whose rows become visible in any order, alone or in a cluster."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Engine, Insert, Table, event
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from roost.store.checks.findings import Finding, Level
from roost.store.connections.errors import migration_lasts
from roost.store.connections.statement_log import log_for_engine
from roost.store.databases.mysql.alike import find_alike
from roost.store.databases.mysql.journal import SERVER, MysqlOldRows, MysqlPosition
from roost.store.dialect import BatchRunner, Convert, Dialect, run_one_by_one
from roost.store.journal.triggers import PREFIX, WATCHED_EVENTS, TableEvent, WatchedTable
from roost.store.statements import BoundStatement
from roost.store.tables import metadata
from roost.store.transfer import TransferTable

if TYPE_CHECKING:
    from roost.store.database import DatabaseOptions
    from roost.store.transaction import Commit

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

# How many descriptions of columns an engine remembers. Roost's statements have far fewer.
_COLUMNS_MAX = 1024
# `CLIENT.MULTI_STATEMENTS`: a text may have several statements.
_MULTI_STATEMENTS = 1 << 16
# The error code for a connection that is lost during a statement.
_SERVER_LOST = 2013
# Roost sets it in each of its connections. Triggers leave these out, because Roost writes its own
# journal.
_IS_ROOST = "@roost_journals"


class _Mysql(Dialect):
    drivers = (("mysqldb", "MySQLdb"), ("pymysql", "pymysql"))
    extra = "mysql"
    secret_options = frozenset({"password", "passwd", "ssl_key_password"})
    naming_options = frozenset({"db", "database", "read_default_file"})
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
    installed_triggers = (
        "SELECT event_object_table, trigger_name FROM information_schema.triggers"
        f" WHERE trigger_schema = database() AND trigger_name LIKE '{PREFIX}%'"
    )
    undoes_table_changes = False

    def driver_options(self, driver: str) -> frozenset[str] | None:
        if driver != "pymysql":
            return None
        # An installation has only the drivers of its databases.
        from pymysql.connections import Connection as Driver  # noqa: PLC0415

        return frozenset(inspect.signature(Driver).parameters) | _TLS_OPTIONS

    def connect_arguments(self, url: URL, options: DatabaseOptions) -> dict[str, Any]:
        # PyMySQL has the same timeout for the greeting of a new connection as for any answer.
        is_pymysql = url.get_driver_name() == "pymysql"
        return {
            "connect_timeout": options.wait_seconds,
            "read_timeout": options.wait_seconds if is_pymysql else _answer_seconds(options),
            "write_timeout": _answer_seconds(options),
            "charset": url.query.get("charset", "utf8mb4"),
        }

    def socket_of(self, driver_connection: Any) -> Any:
        # PyMySQL has no method for its descriptor.
        return getattr(driver_connection, "_sock", driver_connection)

    def prepare(self, engine: Engine, options: DatabaseOptions, *, reads_only: bool) -> None:
        if engine.dialect.driver == "pymysql":
            _use_sparing_connections(engine)
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
                f"SET {_IS_ROOST} = 1",
            )
            log_for_engine(engine, _SET_MODE, *texts)
            cursor = dbapi_connection.cursor()
            cursor.execute(_SET_MODE, (",".join(modes),))
            for text in texts:
                cursor.execute(text)
            cursor.close()

    def batch_runner(self, driver: str) -> BatchRunner:
        return _run_as_one_text if driver == "pymysql" else run_one_by_one

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
        return starmap(_trigger, WATCHED_EVENTS)

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

    def find_alike(
        self, connection: Connection, column: Column[str], texts: Iterable[str]
    ) -> tuple[str, str] | None:
        return find_alike(connection, column, texts)

    def held_ratio(self, ratio: float) -> float:
        return single_precision(ratio)

    def holding(self, part: TransferTable) -> Convert:
        # A server keeps times in whole seconds, and ratios in single precision.
        times, ratios = part.positions(sa.DateTime), part.positions(sa.Float)

        def convert(row: list[Any]) -> list[Any]:
            held = list(row)
            for position in times:
                if held[position] is not None:
                    held[position] = held[position][:_SECONDS_LENGTH]
            for position in ratios:
                held[position] = self.held_ratio(held[position])
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


def _use_sparing_connections(engine: Engine) -> None:
    """Let an engine open connections that send no COMMIT or ROLLBACK outside a transaction.

    They also parse the description of a column once.

    Other drivers behave so by themselves. SQLAlchemy commits after a batch that has committed, and
    rolls back each connection that it returns to the pool. Each of these would be a round trip.
    """
    # Imported here, because not every installation has the driver.
    from pymysql import Connection as Driver  # noqa: PLC0415
    from pymysql.protocol import FieldDescriptorPacket, MysqlPacket  # noqa: PLC0415

    # The server describes each column of each result anew. Parsing that is a tenth of a claim.
    parsed = lru_cache(_COLUMNS_MAX)(FieldDescriptorPacket)

    class SparingConnection(Driver):
        """A connection that knows whether it has sent a statement since its last COMMIT."""

        is_idle = False

        def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
            read: Any = super()._read_packet
            return read(parsed if packet_type is FieldDescriptorPacket else packet_type)

        def query(self, sql: Any, unbuffered: bool = False) -> int:
            self.is_idle = False
            return super().query(sql, unbuffered)

        def commit(self) -> None:
            if not self.is_idle:
                super().commit()
                self.is_idle = True

        def rollback(self) -> None:
            if not self.is_idle:
                super().rollback()
                self.is_idle = True

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        flags = options.get("client_flag", 0) | _MULTI_STATEMENTS
        return SparingConnection(*arguments, **options | {"client_flag": flags})


def _run_as_one_text(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[list[Any]]:
    """For PyMySQL: the server executes nothing after a statement that fails."""
    results: list[list[Any]] = []
    cursor = raw.cursor()
    try:
        texts = [cursor.mogrify(text, parameters) for text, parameters in statements]
        if commit is not None:
            texts.append("COMMIT")
            commit.is_sent = True
        cursor.execute(";".join(texts))
        for number in range(len(statements)):
            if number:
                _require_next(raw, cursor)
            results.append(list(cursor.fetchall()) if cursor.description else [])
        if commit is not None:
            _require_next(raw, cursor)
            raw.is_idle = True
    except Exception as error:
        if commit is not None and len(results) < len(statements) and _is_of_statement(error):
            # The server has not come to COMMIT.
            commit.is_sent = False
        raise
    finally:
        cursor.close()
    return results


def _is_of_statement(error: Exception) -> bool:
    """Whether the server tells that a statement failed, and goes on with the session."""
    return DIALECT.code_of(error) is not None and not DIALECT.ends_session(error)


def _require_next(raw: Any, cursor: Any) -> None:
    """Go to the result of the next statement; a server that leaves it out counts as lost."""
    if not cursor.nextset():
        raise raw.OperationalError(_SERVER_LOST, "the server ended a batch early")


def _trigger(watched: WatchedTable, event: TableEvent) -> str:
    return (
        f"CREATE TRIGGER {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {watched.table.name} FOR EACH ROW BEGIN {_body(watched, event)} END"
    )


def _body(watched: WatchedTable, event: TableEvent) -> str:
    if event is not TableEvent.UPDATE:
        row = "OLD" if event is TableEvent.DELETE else "NEW"
        return f"IF {_IS_ROOST} IS NULL THEN {_insert(watched, row)} END IF;"
    same = " AND ".join(f"OLD.{name} <=> NEW.{name}" for name in watched.columns)
    moved = ""
    if watched.provider is not None:
        moved = (
            f" IF OLD.{watched.provider} <> NEW.{watched.provider} THEN"
            f" {_insert(watched, 'OLD')} END IF;"
        )
    return f"IF {_IS_ROOST} IS NULL AND NOT ({same}) THEN {_insert(watched, 'NEW')}{moved} END IF;"


def _insert(watched: WatchedTable, row: str) -> str:
    provider = "NULL" if watched.provider is None else f"{row}.{watched.provider}"
    return (
        "INSERT INTO roost_changes (created_at, kind, provider_id)"
        f" VALUES (UTC_TIMESTAMP(), '{watched.kind}', {provider});"
    )


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
