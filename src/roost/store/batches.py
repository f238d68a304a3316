"""Batches: several statements in one round trip, straight to the driver.

A claim reads in one batch all that it needs under its locks, and writes in a second one that ends
with COMMIT. Without batches, each of its statements would be a round trip.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy import Connection

from roost.store.commits import Commit
from roost.store.errors import says_goodbye
from roost.store.sessions import raise_translated
from roost.store.statement_log import log_statements
from roost.store.statements import BoundStatement, chunks
from roost.store.watchdog import begin_wait, end_wait

_LOG = logging.getLogger(__name__)

# How many statements share a round trip at most. A server bounds the length of a text, and the
# watchdog bounds the time of a round trip.
_STATEMENTS_MAX = 64
# The error code of MySQL for a connection that is lost during a statement.
_SERVER_LOST = 2013

Rows: TypeAlias = list[Any]
_Runner: TypeAlias = Callable[[Any, Sequence[BoundStatement], Commit | None], list[Rows]]


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The last statements of a transaction. `Database.write` sends them together with COMMIT."""

    statements: Sequence[BoundStatement]


def fetch_groups(connection: Connection, *groups: Sequence[BoundStatement]) -> list[Rows]:
    """Execute all groups in one batch; for each group, the rows of all its statements."""
    results = iter(_run(connection, list(chain.from_iterable(groups))))
    return [[row for _ in group for row in next(results)] for group in groups]


def execute_batch(connection: Connection, statements: Sequence[BoundStatement]) -> None:
    """Execute the statements in one batch."""
    _run(connection, statements)


def commit_batch(connection: Connection, batch: LastBatch, commit: Commit) -> None:
    """Execute the statements and COMMIT in one batch. If one of them fails, none takes effect."""
    try:
        _run(connection, batch.statements, commit)
    except Exception as error:
        commit.note(error)
        raise


def _run(
    connection: Connection, statements: Sequence[BoundStatement], commit: Commit | None = None
) -> list[Rows]:
    if not statements:
        return []
    if _LOG.isEnabledFor(logging.DEBUG):
        _LOG.debug("batch: %s", "; ".join(statement.text for statement in statements))
    log_statements(connection, *(statement.text for statement in statements))
    runner = _runner(connection.dialect.driver)
    results: list[Rows] = []
    for piece in chunks(statements, _STATEMENTS_MAX):
        is_last = len(results) + len(piece) == len(statements)
        begin_wait(connection)
        try:
            raw = connection.connection.dbapi_connection
            results += runner(raw, piece, commit if is_last else None)
        except Exception as error:
            raise_translated(connection, _said_by_server(error))
        finally:
            end_wait(connection)
    return results


def _said_by_server(error: Exception) -> Exception:
    """The server's last error, which psycopg replaces if it cannot leave a pipeline after it."""
    replaced = error.__context__
    return replaced if isinstance(replaced, Exception) and says_goodbye(replaced) else error


@cache
def _runner(driver: str) -> _Runner:
    if driver == "psycopg":
        import psycopg  # noqa: PLC0415 -- only where this driver is installed

        return _run_in_pipeline if psycopg.Pipeline.is_supported() else _run_one_by_one
    return _run_as_one_text if driver == "pymysql" else _run_one_by_one


def _run_one_by_one(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[Rows]:
    """For SQLite, which has no round trips, and for drivers without batches."""
    results = []
    cursor = raw.cursor()
    try:
        for text, parameters in statements:
            cursor.execute(text, parameters)
            results.append(cursor.fetchall() if cursor.description else [])
        if commit is not None:
            commit.is_sent = True
            raw.commit()
    finally:
        cursor.close()
    return results


def _run_in_pipeline(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[Rows]:
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


def _run_as_one_text(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[Rows]:
    """For PyMySQL: the server executes nothing after a statement that fails."""
    results: list[Rows] = []
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
    finally:
        cursor.close()
    return results


def _require_next(raw: Any, cursor: Any) -> None:
    """Go to the result of the next statement; a server that leaves it out counts as lost."""
    if not cursor.nextset():
        raise raw.OperationalError(_SERVER_LOST, "the server ended a batch early")
