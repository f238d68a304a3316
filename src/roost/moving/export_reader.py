"""Reads the lines of an export in their order, and checks them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import orjson

from roost.moving.export_files import lines_of
from roost.moving.export_format import ExportUnusable, line_of, new_digests, read_header
from roost.moving.exported_values import RowChecks
from roost.store.transfer.layout import LAYOUT, TransferTable
from roost.store.transfer.progress_mark import ProgressMark


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """A row of an export, and its line."""

    part: TransferTable
    values: list[Any]
    line: bytes


def another_export() -> ExportUnusable:
    """The error for an import that another export has begun."""
    return ExportUnusable(
        "The import into this database began with another export. Continue with that export, or "
        "name an empty database."
    )


def _spelling_fault(values: list[Any], line: bytes) -> str | None:
    """What is wrong with a line whose values are right: an import reads back what it wrote."""
    return None if line_of(values) == line else "the row is not written as an export writes it"


class ExportReader:
    """The rows of an export. After the last row, the trailer has been compared with them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = lines_of(file)
        self._sha = hashlib.sha256()
        self._expected: ProgressMark | None = None
        self.line_number = 0
        # The position before the last line that is no row.
        self.before_table = ProgressMark(0, "")
        self.counts = read_header(self._next() or b"")
        self.digests = new_digests()

    @property
    def position(self) -> ProgressMark:
        """How far the reader is."""
        return ProgressMark(self.line_number, self._sha.hexdigest())

    def expect(self, mark: ProgressMark) -> None:
        """Raise `ExportUnusable` later unless the lines up to the mark are those of the mark."""
        self._expected = mark

    def rows(self) -> Iterator[ExportedRow]:
        """All rows, table by table; `ExportUnusable` if a line is not what the format says."""
        line = self._next()
        checks = RowChecks()
        for part in LAYOUT:
            if line is None or self._value(line) != {"table": part.name}:
                raise self._wrong(f"the rows of {part.name} do not begin here")
            digest, fault_of = self.digests[part.name], checks.faults(part)
            while (line := self._next()) is not None and line.startswith(b"["):
                values = self._value(line)
                fault = fault_of(values, self.line_number) or _spelling_fault(values, line)
                if fault is not None:
                    raise self._wrong(fault)
                digest.add(line)
                yield ExportedRow(part, values, line)
            if (found := checks.end(part)) is not None:
                raise self._wrong(found.reason, found.line)
        self._check_trailer(line)

    def _check_trailer(self, line: bytes | None) -> None:
        if line is None:
            raise self._wrong("the export ends without a trailer")
        said = {name: digest.plain() for name, digest in self.digests.items()}
        trailer = self._value(line)
        if not isinstance(trailer, dict) or trailer.get("end") != said:
            raise self._wrong("the rows are not those that the trailer has counted")
        if self.counts != {name: digest.rows for name, digest in self.digests.items()}:
            raise self._wrong("the rows are not as many as the header says")
        if self._next() is not None:
            raise self._wrong("lines follow the trailer")

    def _next(self) -> bytes | None:
        line = next(self._lines, None)
        if line is None:
            return None
        if not line.startswith(b"["):
            self.before_table = self.position
        self.line_number += 1
        self._sha.update(line)
        expected = self._expected
        if expected and expected.lines == self.line_number and expected != self.position:
            raise another_export()
        return line

    def _value(self, line: bytes) -> Any:
        try:
            return orjson.loads(line)
        except ValueError:
            raise self._wrong("the line is no JSON") from None

    def _wrong(self, reason: str, line: int | None = None) -> ExportUnusable:
        return ExportUnusable(
            f"The export is damaged at line {line or self.line_number}: {reason}. Let `roost db "
            "check` look at the source, and make the export again."
        )
