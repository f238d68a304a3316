"""Writes all tables of a database as an export, from one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from sqlalchemy import Connection

from roost.moving import Advance, silent
from roost.moving.export_files import explaining_writes
from roost.moving.export_format import TableDigest, export_lines, new_digests, parts_of
from roost.store.connections.driver_errors import shown_url
from roost.store.connections.errors import SYNC_COMMAND, DatabaseUnusable
from roost.store.database import Database
from roost.store.dialect import dialect_of
from roost.store.meta import read_mark
from roost.store.migrations.schema import inspect_schema
from roost.store.transfer import TransferTable, count_rows, read_pages


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
    dialect_of(connection).keep_snapshot(connection)
    counts = count_rows(connection)
    digests = new_digests(parts_of(counts))
    total = sum(counts.values())

    def pages_of(part: TransferTable) -> Iterator[Sequence[Any]]:
        for page in read_pages(connection, part):
            yield page
            advance(total, len(page))

    for lines in export_lines(counts, digests, pages_of):
        with explaining_writes():
            file.write(lines)
    return digests


def table_digest(connection: Connection, part: TransferTable) -> TableDigest:
    """The number and the SHA-256 of the rows that a table has."""
    digest = TableDigest()
    for page in read_pages(connection, part):
        digest.add_rows(page)
    return digest
