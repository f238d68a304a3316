"""Writes all tables of a database as an export, from one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from sqlalchemy import Connection

from roost.moving.advance import Advance, silent
from roost.moving.export_files import explaining_writes
from roost.moving.export_format import (
    TableDigest,
    header_line,
    line_of,
    new_digests,
    table_line,
    trailer_line,
)
from roost.store.connections.driver_errors import shown_url
from roost.store.connections.errors import SYNC_COMMAND, DatabaseUnusable
from roost.store.database import Database
from roost.store.migrations.schema import inspect_schema
from roost.store.transfer.layout import LAYOUT, TransferTable
from roost.store.transfer.progress_mark import read_mark
from roost.store.transfer.reading import count_rows, keep_snapshot, read_pages


def require_exportable(database: Database) -> None:
    """Refuse a database whose tables are not those of an export."""
    status = inspect_schema(database)
    found = status.placement_revision
    if found is None:
        raise DatabaseUnusable(
            f"The database {shown_url(database.url)} has no tables of Placement. Is this the right "
            "database? Name it with --db or --config-file."
        )
    if found != status.placement_head:
        raise DatabaseUnusable(
            f"The tables of {shown_url(database.url)} have the revision {found}, and an export has "
            f"those of {status.placement_head}. Bring them there with: {SYNC_COMMAND}"
        )
    if database.read(read_mark) is not None:
        raise DatabaseUnusable(
            f"An import into {shown_url(database.url)} has not finished, so an export would lack "
            "rows. Finish the import with the same `roost db import` command."
        )


def count_exported(database: Database) -> dict[str, int]:
    """How many rows of each table an export would have now."""
    require_exportable(database)
    return database.read(count_rows)


def write_export(
    database: Database, file: IO[bytes], advance: Advance = silent
) -> dict[str, TableDigest]:
    """Write the export; the number and the SHA-256 of the rows of each table."""
    require_exportable(database)
    begun: list[bool] = []

    def write_once(connection: Connection) -> dict[str, TableDigest]:
        # After a lost connection, a second snapshot would append to the rows of the first.
        if begun:
            raise DatabaseUnusable(
                f"The connection to {shown_url(database.url)} was lost during the export. "
                "Run the same command again."
            )
        begun.append(True)
        return _write(connection, file, advance)

    return database.snapshot(write_once)


def _write(connection: Connection, file: IO[bytes], advance: Advance) -> dict[str, TableDigest]:
    keep_snapshot(connection)
    counts = count_rows(connection)
    total = sum(counts.values())
    _put(file, header_line(counts))
    digests = new_digests()
    for part in LAYOUT:
        _put(file, table_line(part.name))
        _write_table(connection, part, file, digests[part.name], lambda rows: advance(total, rows))
    _put(file, trailer_line(digests))
    return digests


def _put(file: IO[bytes], lines: bytes) -> None:
    with explaining_writes():
        file.write(lines)


def _write_table(
    connection: Connection,
    part: TransferTable,
    file: IO[bytes],
    digest: TableDigest,
    advance: Callable[[int], None],
) -> None:
    for page in read_pages(connection, part):
        lines = b"".join(line_of(tuple(row)) for row in page)
        _put(file, lines)
        digest.add(lines, len(page))
        advance(len(page))


def table_digest(connection: Connection, part: TransferTable) -> TableDigest:
    """The number and the SHA-256 of the rows that a table has."""
    digest = TableDigest()
    for page in read_pages(connection, part):
        digest.add(b"".join(line_of(tuple(row)) for row in page), len(page))
    return digest
