"""Reads tables in pages, so that no table has to fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.dialect import dialect_of
from roost.store.transfer.layout import LAYOUT, TransferTable

PAGE_ROWS = 5000
Pages = Iterator[Sequence[Any]]


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table has."""
    return {
        part.name: connection.scalar(sa.select(sa.func.count()).select_from(part.table)) or 0
        for part in LAYOUT
    }


def read_pages(connection: Connection, part: TransferTable, page_rows: int = PAGE_ROWS) -> Pages:
    """All rows in their order, page by page.

    The pages are consistent only in a transaction with one snapshot.
    """
    if len(part.order) == 1:
        yield from _pages_by_id(connection, part, page_rows)
    else:
        yield from _pages_by_provider(connection, part, page_rows)


def _pages_by_id(connection: Connection, part: TransferTable, page_rows: int) -> Pages:
    key = part.table.c.id
    position = part.columns.index("id")
    query = sa.select(part.table).order_by(key).limit(page_rows)
    page = connection.execute(query).all()
    while page:
        yield page
        if len(page) < page_rows:
            return
        page = connection.execute(query.where(key > page[-1][position])).all()


def _pages_by_provider(connection: Connection, part: TransferTable, page_rows: int) -> Pages:
    """Pages that end with the last row of a provider.

    MariaDB would sort the whole table for every page without an upper bound.
    """
    first, second = (part.table.c[name] for name in part.order)
    ids = sa.select(first).order_by(first).offset(page_rows - 1).limit(1)
    query = sa.select(part.table).order_by(first, second)
    is_left: sa.ColumnElement[bool] = sa.true()
    while True:
        bound = connection.scalar(ids.where(is_left))
        within = is_left if bound is None else sa.and_(is_left, first <= bound)
        page = connection.execute(query.where(within)).all()
        if page:
            yield page
        if bound is None:
            return
        is_left = first > bound


def keep_snapshot(connection: Connection) -> None:
    """Let the transaction wait for a slow receiver of the rows."""
    dialect_of(connection).keep_snapshot(connection)
