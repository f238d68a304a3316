"""Batches: several statements in one round trip, straight to the driver.

A claim reads in one batch all that it needs under its locks, and writes in a second one that ends
with COMMIT. Without batches, each of its statements would be a round trip.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy import Connection

from roost.store.commits import Commit
from roost.store.dialect import BatchRunner, Dialect, dialect_named, dialect_of
from roost.store.sessions import raise_translated
from roost.store.statement_log import log_statements
from roost.store.statements import BoundStatement, chunks
from roost.store.watchdog import begin_wait, end_wait

_LOG = logging.getLogger(__name__)

# How many statements share a round trip at most. A server bounds the length of a text, and the
# watchdog bounds the time of a round trip.
_STATEMENTS_MAX = 64

Rows: TypeAlias = list[Any]


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
    run = _runner(connection.dialect.name, connection.dialect.driver)
    results: list[Rows] = []
    for piece in chunks(statements, _STATEMENTS_MAX):
        is_last = len(results) + len(piece) == len(statements)
        begin_wait(connection)
        try:
            raw = connection.connection.dbapi_connection
            results += run(raw, piece, commit if is_last else None)
        except Exception as error:
            raise_translated(connection, _said_by_server(error, dialect_of(connection)))
        finally:
            end_wait(connection)
    return results


@cache
def _runner(scheme: str, driver: str) -> BatchRunner:
    return dialect_named(scheme).batch_runner(driver)


def _said_by_server(error: Exception, dialect: Dialect) -> Exception:
    """The server's last error, which a driver replaces if it cannot end the batch after it."""
    replaced = error.__context__
    if isinstance(replaced, Exception) and dialect.ends_session(replaced):
        return replaced
    return error
