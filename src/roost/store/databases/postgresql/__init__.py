"""PostgreSQL: a server that tells which transactions run, and that undoes changes of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Engine, Insert, Table, event
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from roost.store.checks.findings import Finding, Level, encoding_finding
from roost.store.connections.errors import migration_lasts
from roost.store.connections.sessions import raise_translated
from roost.store.connections.statement_log import log_for_engine, log_statements
from roost.store.databases.postgresql.journal import PostgresqlOldRows, PostgresqlPosition
from roost.store.dialect import BatchRunner, Dialect, run_one_by_one
from roost.store.journal.triggers import PREFIX, WATCHED, TableEvent, WatchedTable
from roost.store.statements import BoundStatement
from roost.store.tables import metadata, resource_classes, roost_changes
from roost.store.transfer import LAYOUT, TransferTable

if TYPE_CHECKING:
    from roost.store.database import DatabaseOptions
    from roost.store.transaction import Commit

# The server ends its sessions, or is not ready for clients.
_GONE = "57P"
_ENDING = frozenset({"FATAL", "PANIC"})
# Class 08 tells of a lost connection, also that of a proxy to the server. 40003 is
# `statement_completion_unknown`.
_OPEN = ("08", "40003")
_LOCK_NOT_AVAILABLE = "55P03"
# The lock of migrations.
MIGRATION_KEY = int.from_bytes(b"roostsch", "big")
# Triggers leave out the connections of this name. Another name costs a second row for each change
# of Roost. A pooler hands the name on, but may lose a variable of the session, or give the variable
# to the session of another program.
_APPLICATION_NAME = "roost"
_IS_ANOTHER = f"pg_catalog.current_setting('application_name') <> '{_APPLICATION_NAME}'"

_INSTALLED = (
    "SELECT tgrelid::regclass::text, tgname FROM pg_catalog.pg_trigger"
    f" WHERE tgname LIKE '{PREFIX}%' AND tgenabled <> 'D'"
    " AND pg_catalog.pg_table_is_visible(tgrelid)"
)
# Functions of every version, also those whose triggers are gone.
_FUNCTIONS = (
    "SELECT oid::regprocedure::text FROM pg_catalog.pg_proc"
    f" WHERE proname LIKE '{PREFIX}%' AND pg_catalog.pg_function_is_visible(oid) ORDER BY 1"
)
# The schema of the tables need not be the first one of the search path.
_SCHEMA = (
    "SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_catalog.pg_class"
    f" WHERE oid = pg_catalog.to_regclass('{roost_changes.name}')),"
    " pg_catalog.quote_ident(pg_catalog.current_schema()))"
)


class _Postgresql(Dialect):
    drivers = (("psycopg", "psycopg"), ("psycopg2", "psycopg2"))
    extra = "postgresql"
    secret_options = frozenset({"password", "sslpassword", "oauth_client_secret"})
    naming_options = frozenset({"dbname", "database", "service"})
    lasting_refusals = (
        "does not exist",
        "password authentication failed",
        "no pg_hba.conf entry",
        "invalid connection option",
    )
    begin_snapshot = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    # Serialisation failure, deadlock, statement cancelled. A lock timeout is not transient: another
    # wait would only keep a thread busy.
    transient_codes = frozenset({"40001", "40P01", "57014"})
    read_only_codes = frozenset({"25006"})
    position = PostgresqlPosition
    old_rows = PostgresqlOldRows()
    # PostgreSQL recovers from a crash without a new start. It then resets all its statistics. `||`
    # makes nothing of an unknown time, which `concat` would leave out.
    server_life = (
        "SELECT extract(epoch FROM pg_postmaster_start_time()) || ' '"
        " || extract(epoch FROM stats_reset) FROM pg_stat_bgwriter"
    )
    installed_triggers = _INSTALLED
    transaction_id_default = sa.text("txid_current()")

    def driver_options(self, driver: str) -> frozenset[str] | None:
        if driver != "psycopg":
            return None
        # An installation has only the drivers of its databases.
        from psycopg import pq  # noqa: PLC0415

        return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())

    def connect_arguments(self, url: URL, options: DatabaseOptions) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "connect_timeout": options.wait_seconds,
            "tcp_user_timeout": options.silence_seconds * 1000,
        }
        if "application_name" not in url.query:
            arguments["application_name"] = _APPLICATION_NAME
        return arguments

    def prepare(self, engine: Engine, _options: DatabaseOptions, *, reads_only: bool) -> None:
        @event.listens_for(engine, "connect")
        def configure(dbapi_connection: Any, _record: Any) -> None:
            texts = (
                f"SET lock_timeout = '{self.lock_seconds_max}s'",
                f"SET idle_in_transaction_session_timeout = '{self.idle_seconds_max}s'",
            )
            log_for_engine(engine, *texts, "COMMIT")
            with dbapi_connection.cursor() as cursor:
                for text in texts:
                    cursor.execute(text)
            dbapi_connection.commit()

    def batch_runner(self, driver: str) -> BatchRunner:
        return _run_in_pipeline if driver == "psycopg" and _has_pipelines() else run_one_by_one

    def insert_unless_taken(self, table: Table, key: Column[Any]) -> Insert:
        return insert(table).on_conflict_do_nothing(index_elements=[key])

    def code_of(self, original: BaseException | None) -> str | None:
        # psycopg 3 calls it sqlstate, psycopg2 pgcode.
        return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)

    def ends_session(self, original: BaseException | None) -> bool:
        severity = getattr(getattr(original, "diag", None), "severity_nonlocalized", None)
        return severity in _ENDING or (self.code_of(original) or "").startswith(_GONE)

    def refuses_commit(self, code: str) -> bool:
        return not code.startswith(_OPEN)

    def trigger_creations(self, connection: Connection) -> Iterable[str]:
        return _creations(str(connection.scalar(sa.text(_SCHEMA))))

    def trigger_removals(
        self, connection: Connection, found: Iterable[tuple[str, str]]
    ) -> Iterator[str]:
        for table, name in found:
            yield f"DROP TRIGGER IF EXISTS {name} ON {table}"
        for signature in connection.scalars(sa.text(_FUNCTIONS)):
            # With triggers that are switched off or elsewhere.
            yield f"DROP FUNCTION IF EXISTS {signature} CASCADE"

    @contextmanager
    def migration_lock(self, connection: Connection) -> Iterator[bool]:
        # The lock belongs to the transaction and not to the session. So it works behind a
        # connection pooler, and ends when the new tables become visible.
        seconds = self.migration_seconds_max
        connection.execute(sa.text(f"SET LOCAL lock_timeout = '{seconds}s'"))
        try:
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_KEY}
            )
        except DBAPIError as error:
            if self.code_of(error.orig) == _LOCK_NOT_AVAILABLE:
                raise migration_lasts(connection.engine.url.database, seconds) from None
            raise
        connection.execute(sa.text("SET LOCAL lock_timeout TO DEFAULT"))
        yield True

    def check_storage(self, connection: Connection) -> Finding:
        return encoding_finding(str(connection.scalar(sa.text("SHOW server_encoding"))), "UTF8")

    def further_checks(self, connection: Connection) -> Iterator[Finding]:
        yield _check_sequences(connection)

    def faults(self, column: Column[Any]) -> Iterator[ColumnElement[bool]]:
        # The server itself refuses a text with a null character.
        if isinstance(column.type, sa.DateTime):
            yield self.is_no_time(column)

    def is_no_time(self, time: Column[Any]) -> ColumnElement[bool]:
        return sa.not_(sa.func.isfinite(time))

    def keep_snapshot(self, connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")

    def time_for_driver(self, time: str) -> str:
        return time

    def insert_batch(
        self, connection: Connection, part: TransferTable, rows: Sequence[list[Any]]
    ) -> None:
        # COPY takes half the time of INSERT.
        driver: Any = connection.connection
        statement = f"COPY {part.name} ({', '.join(part.columns)}) FROM STDIN"
        log_statements(connection, statement)
        try:
            with driver.cursor() as cursor, cursor.copy(statement) as copy:
                for row in rows:
                    copy.write_row(row)
        except connection.dialect.loaded_dbapi.Error as error:
            raise_translated(connection, error)

    def advance_sequences(self, connection: Connection) -> None:
        for part in LAYOUT:
            # A service chooses the ids of classes itself.
            if part.order != ("id",) or part.table is resource_classes:
                continue
            largest = connection.scalar(sa.select(sa.func.max(part.table.c.id)))
            if largest is not None:
                sequence = sa.func.pg_get_serial_sequence(part.name, "id")
                connection.execute(sa.select(sa.func.setval(sequence, largest)))


@cache
def _has_pipelines() -> bool:
    # An installation has only the drivers of its databases.
    import psycopg  # noqa: PLC0415

    return psycopg.Pipeline.is_supported()


def _run_in_pipeline(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[list[Any]]:
    """For psycopg: the server skips all statements, and COMMIT, after one that fails."""
    cursors = []
    with raw.pipeline():
        for text, parameters in statements:
            cursor = raw.cursor()
            cursor.execute(text, parameters)
            cursors.append(cursor)
        if commit is not None:
            commit.is_sent = True
            raw.commit()
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _creations(schema: str) -> Iterator[str]:
    """The statements that create all triggers and their functions; the schema is quoted."""
    for watched in WATCHED:
        yield _function(watched, schema)
        # Triggers fire without this right. A program with it could put the function elsewhere.
        yield f"REVOKE ALL ON FUNCTION {schema}.{watched.function_name}() FROM PUBLIC"
        for change in TableEvent:
            name = watched.trigger_name(change)
            yield f"DROP TRIGGER IF EXISTS {name} ON {schema}.{watched.table.name}"
            yield _trigger(watched, change, schema)


def _function(watched: WatchedTable, schema: str) -> str:
    # The owner of the journal writes to it, whatever program changes the table. The path keeps
    # operators and tables of that program away from the rights of the owner.
    return (
        f"CREATE OR REPLACE FUNCTION {schema}.{watched.function_name}() RETURNS trigger"
        " LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
        f" AS $roost$ BEGIN {_body(watched, schema)} RETURN NULL; END $roost$"
    )


def _body(watched: WatchedTable, schema: str) -> str:
    if watched.provider is None:
        return _insert(watched, "NULL", schema)
    old, new = f"OLD.{watched.provider}", f"NEW.{watched.provider}"
    return (
        f"IF TG_OP = 'DELETE' THEN {_insert(watched, old, schema)}"
        f" ELSE {_insert(watched, new, schema)}"
        f" IF TG_OP = 'UPDATE' THEN IF {old} <> {new} THEN {_insert(watched, old, schema)}"
        " END IF; END IF; END IF;"
    )


def _insert(watched: WatchedTable, provider: str, schema: str) -> str:
    return (
        f"INSERT INTO {schema}.roost_changes (created_at, kind, provider_id) VALUES"
        " (pg_catalog.timezone('utc', pg_catalog.clock_timestamp()),"
        f" '{watched.kind}', {provider});"
    )


def _trigger(watched: WatchedTable, event: TableEvent, schema: str) -> str:
    condition = _IS_ANOTHER
    if event is TableEvent.UPDATE:
        names = watched.columns
        old, new = (", ".join(f"{row}.{name}" for name in names) for row in ("OLD", "NEW"))
        condition += f" AND ({old}) IS DISTINCT FROM ({new})"
    return (
        f"CREATE TRIGGER {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {schema}.{watched.table.name} FOR EACH ROW WHEN ({condition})"
        f" EXECUTE PROCEDURE {schema}.{watched.function_name}()"
    )


def _check_sequences(connection: Connection) -> Finding:
    """Check the sequences. A copy of rows with their ids does not move them: inserts would fail."""
    existing = set(sa.inspect(connection).get_table_names())
    behind = []
    for table in metadata.sorted_tables:
        # The service chooses the ids of resource classes, and never uses their sequence.
        if "id" not in table.c or table is resource_classes or table.name not in existing:
            continue
        sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, "id")))
        if sequence is None:
            continue
        following = connection.scalar(
            sa.text(f"SELECT last_value + CASE WHEN is_called THEN 1 ELSE 0 END FROM {sequence}")
        )
        largest = connection.scalar(sa.select(sa.func.max(table.c.id))) or 0
        if following <= largest:
            behind.append((sequence, table.name))
    if not behind:
        return Finding("sequences", Level.OK, "all are above the ids in use")
    return Finding(
        "sequences",
        Level.FAILURE,
        f"sequences would generate ids that are in use: {', '.join(name for name, _ in behind)}",
        "Run: "
        + " ".join(
            f"SELECT setval('{sequence}', (SELECT max(id) FROM {table}));"
            for sequence, table in behind
        ),
    )


DIALECT = _Postgresql()
