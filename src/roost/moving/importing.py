"""Writes an export into an empty database, continues after an interruption, and verifies it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from roost.moving import Advance, silent
from roost.moving.export_files import ExportedRow, ExportReader, another_export
from roost.moving.export_format import TableDigest, line_of, new_digests
from roost.moving.exporting import table_digest
from roost.store.connections.driver_errors import known_advice, reason, shown_url
from roost.store.connections.errors import Contention, DatabaseUnusable
from roost.store.database import Database
from roost.store.dialect import dialect_of
from roost.store.meta import (
    ProgressMark,
    move_mark,
    read_mark,
    remove_mark,
    renew_epoch,
    set_mark,
    stored_mark,
)
from roost.store.migrations.schema import SchemaState, inspect_schema, sync_schema
from roost.store.tables import resource_providers
from roost.store.transfer import (
    LAYOUT,
    Ancestry,
    TransferTable,
    delete_standard_names,
    insert_batch,
    occupied_tables,
    set_ancestries,
)

BATCH_ROWS = 5000

_PROVIDERS = next(part for part in LAYOUT if part.table is resource_providers)
_ID, _ROOT, _PARENT = (
    list(resource_providers.c.keys()).index(name)
    for name in ("id", "root_provider_id", "parent_provider_id")
)


@dataclass
class ImportSummary:
    """What an import has written."""

    digests: dict[str, TableDigest]
    # How many lines an earlier, interrupted import had written.
    resumed_lines: int = 0
    # Rows whose times lose fractions of seconds, by table.
    rounded_times: dict[str, int] = field(default_factory=dict)
    # Rows whose ratio loses digits, by table.
    rounded_ratios: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows in all."""
        return sum(digest.rows for digest in self.digests.values())


def verify_export(file: IO[bytes], advance: Advance = silent) -> ExportReader:
    """Read an export to its end; `ExportUnusable` unless it is whole."""
    reader = ExportReader(file)
    total = sum(reader.counts.values())
    for number, _ in enumerate(reader.rows(), 1):
        if number % BATCH_ROWS == 0:
            advance(total, BATCH_ROWS)
    return reader


def require_importable(database: Database) -> ProgressMark | None:
    """Refuse a database that has rows, unless an import has been interrupted: its mark."""
    mark = database.read(read_mark)
    if mark is None:
        occupied = database.read(occupied_tables)
        if occupied:
            found = ", ".join(f"{count} in {name}" for name, count in occupied.items())
            raise DatabaseUnusable(
                f"The database {shown_url(database.url)} has rows ({found}), and an import needs "
                "an empty one. Name another database."
            )
    return mark


def import_export(database: Database, file: IO[bytes], advance: Advance = silent) -> ImportSummary:
    """Write an export, and verify the rows by reading them back."""
    mark = require_importable(database)
    if inspect_schema(database).state is not SchemaState.CURRENT:
        sync_schema(database)
    reader = ExportReader(file)
    importer = _Importer(database, reader, mark)
    importer.run(advance)
    database.snapshot(_verify, importer.expected, shown_url(database.url))
    database.write_at_once(_finish)
    return ImportSummary(
        reader.digests,
        mark.lines if mark else 0,
        importer.rounded_times,
        importer.rounded_ratios,
    )


def _finish(connection: Connection) -> None:
    dialect_of(connection).advance_sequences(connection)
    remove_mark(connection)
    # A process that has the database open has read the tables before the import.
    renew_epoch(connection)


class _Importer:
    """One run through an export. It skips what an interrupted import has written."""

    def __init__(self, database: Database, reader: ExportReader, mark: ProgressMark | None) -> None:
        self._database = database
        self._reader = reader
        self._mark = mark
        # The mark that the database has, unless another import moves it.
        self._position = mark or ProgressMark(0, "")
        # Providers whose root or parent has a higher id, so comes later.
        self._ancestries: list[Ancestry] = []
        self._holding = {part.name: database.dialect.holding(part) for part in LAYOUT}
        self.expected = new_digests()
        self.rounded_times: dict[str, int] = {}
        self.rounded_ratios: dict[str, int] = {}

    def run(self, advance: Advance) -> None:
        """Write all rows that are not in the database yet."""
        total = sum(self._reader.counts.values())
        written = self._mark.lines if self._mark else 0
        if self._mark is None:
            self._database.write_at_once(_begin)
        elif written:
            self._reader.expect(self._mark)
        part, rows, skipped = LAYOUT[0], list[list[Any]](), 0
        for row in self._reader.rows():
            held = self._held(row)
            if self._reader.line_number <= written:
                skipped += 1
                continue
            if rows and row.part is not part:
                self._write(part, rows, self._reader.before_table)
                advance(total, len(rows))
                rows = []
            part = row.part
            rows.append(held)
            if len(rows) == BATCH_ROWS:
                self._write(part, rows, self._reader.position)
                advance(total, len(rows))
                rows = []
        if written > self._reader.line_number:
            raise another_export()
        self._write(part, rows, self._reader.before_table)
        advance(total, len(rows) + skipped)
        # Repeating it is harmless.
        with self._explaining(_PROVIDERS):
            self._database.write_at_once(set_ancestries, self._ancestries)

    def _held(self, row: ExportedRow) -> list[Any]:
        """The row as the database can hold it."""
        part, values, line = row.part, row.values, row.line
        convert = self._holding[part.name]
        if convert is not None:
            held = convert(values)
            if held != values:
                self._count_rounded(part, values, held)
                line = line_of(held)
                values = held
        self.expected[part.name].add(line)
        if part.table is resource_providers:
            return self._without_later_ancestors(values)
        return values

    def _count_rounded(self, part: TransferTable, values: list[Any], held: list[Any]) -> None:
        for kind, counts in ((sa.DateTime, self.rounded_times), (sa.Float, self.rounded_ratios)):
            if any(values[position] != held[position] for position in part.positions(kind)):
                counts[part.name] = counts.get(part.name, 0) + 1

    def _without_later_ancestors(self, values: list[Any]) -> list[Any]:
        """The row of a provider without a root or parent that is not there yet."""
        own = values[_ID]
        root, parent = values[_ROOT], values[_PARENT]
        if (root or 0) <= own and (parent or 0) <= own:
            return values
        self._ancestries.append((own, root, parent))
        values = list(values)
        values[_ROOT] = values[_PARENT] = None
        return values

    def _write(self, part: TransferTable, rows: list[list[Any]], position: ProgressMark) -> None:
        with self._explaining(part):
            self._database.write_at_once(_write_batch, part, rows, self._position, position)
        self._position = position

    @contextmanager
    def _explaining(self, part: TransferTable) -> Iterator[None]:
        try:
            yield
        except (Contention, IntegrityError, DBAPIError) as error:
            cause = error.__cause__ if isinstance(error, Contention) else error
            said = reason(cause or error, self._database.url)
            hint = known_advice(said) or (
                "`roost db check` of the source may tell why. Or the target compares names without "
                "regard to case."
            )
            raise DatabaseUnusable(
                f"Rows of {part.name} cannot be written to {shown_url(self._database.url)}: "
                f"{said}. {hint}"
            ) from error


def _begin(connection: Connection) -> None:
    if stored_mark(connection) is not None:
        raise _another_import(connection)
    delete_standard_names(connection)
    set_mark(connection, ProgressMark(0, ""))


def _write_batch(
    connection: Connection,
    part: TransferTable,
    rows: list[list[Any]],
    before: ProgressMark,
    position: ProgressMark,
) -> None:
    # Before the rows: the row of the mark is the lock of imports.
    if not move_mark(connection, before, position):
        raise _another_import(connection)
    if rows:
        insert_batch(connection, part, rows)


def _another_import(connection: Connection) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"Another import writes to {shown_url(connection.engine.url)} at the same time. Let it "
        "finish. If it has been interrupted, run the same command again: it continues."
    )


def _verify(connection: Connection, expected: dict[str, TableDigest], shown: str) -> None:
    """Compare the tables with what was to be written."""
    wrong = [
        part.name
        for part in LAYOUT
        if table_digest(connection, part).plain() != expected[part.name].plain()
    ]
    if wrong:
        raise DatabaseUnusable(
            f"The rows that {shown} has are not those of the export: {', '.join(wrong)}. Another "
            "program writes to the database, or it changes values. Import into another database."
        )
