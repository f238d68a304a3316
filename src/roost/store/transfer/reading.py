"""Reads tables in pages, so that no table has to fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.transfer.layout import LAYOUT, TransferTable

PAGE_ROWS = 5000


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table has."""
    return {
        part.name: connection.scalar(sa.select(sa.func.count()).select_from(part.table)) or 0
        for part in LAYOUT
    }


def read_pages(
    connection: Connection, part: TransferTable, page_rows: int = PAGE_ROWS
) -> Iterator[Sequence[Any]]:
    """All rows in their order, page by page.

    The pages are consistent only in a transaction with one snapshot.
    """
    columns = [part.table.c[name] for name in part.order]
    names = part.columns
    query = sa.select(part.table).order_by(*columns).limit(page_rows)
    page = connection.execute(query).all()
    while page:
        yield page
        if len(page) < page_rows:
            return
        last = [page[-1][names.index(name)] for name in part.order]
        page = connection.execute(query.where(_is_after(columns, last))).all()


def keep_snapshot(connection: Connection) -> None:
    """Let the transaction wait for a slow receiver of the rows."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")


def _is_after(columns: Sequence[Any], last: Sequence[Any]) -> sa.ColumnElement[bool]:
    """The rows after these values. The first condition alone lets a database use its index."""
    if len(columns) == 1:
        condition: sa.ColumnElement[bool] = columns[0] > last[0]
        return condition
    return sa.and_(columns[0] >= last[0], sa.or_(columns[0] > last[0], columns[1] > last[1]))
