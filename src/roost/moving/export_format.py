"""The lines of an export. Pure; docs/moving.md describes the format.

The first line is the header. A line with the name of a table begins its rows, one line each. The
last line is the trailer. Two equal databases have equal exports, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from roost.model.errors import OperatorError
from roost.store.migrations.histories import PLACEMENT
from roost.store.transfer import LAYOUT, TransferTable

FORMAT = "roost-export"
VERSION = 1


class ExportUnusable(OperatorError):
    """An export that cannot be read; the message says why."""


def line_of(value: Any) -> bytes:
    """A value as one line."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def parts_of(counts: Mapping[str, int]) -> list[TransferTable]:
    """The tables of an export that has these numbers of rows."""
    return [part for part in LAYOUT if part.name in counts]


def _header_line(counts: Mapping[str, int]) -> bytes:
    """The first line: the format, the schema, and the number of rows of each table."""
    return line_of(
        {
            "format": FORMAT,
            "version": VERSION,
            "schema": PLACEMENT.head,
            "tables": {
                part.name: {"rows": counts[part.name], "columns": part.columns}
                for part in parts_of(counts)
            },
        }
    )


def read_header(line: bytes) -> dict[str, int]:
    """The numbers of rows by table, from the first line."""
    try:
        header = orjson.loads(line)
        found = header["format"], header["version"]
        schema, tables = header["schema"], header["tables"]
        columns = {name: tuple(table["columns"]) for name, table in tables.items()}
        counts = {name: int(table["rows"]) for name, table in tables.items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ExportUnusable(
            "The file is no export of Roost: its first line is no header. Make one with "
            "`roost db export`."
        ) from None
    if found != (FORMAT, VERSION):
        raise ExportUnusable(
            f"The export has the format {found[0]!r}, version {found[1]!r}. This version of Roost "
            f"reads {FORMAT!r}, version {VERSION}. Use the version of Roost that made the export."
        )
    known = {
        part.name: part.columns for part in LAYOUT if part.name in columns or not part.is_optional
    }
    if schema != PLACEMENT.head or columns != known:
        raise ExportUnusable(
            f"The export has tables of the schema {schema!r}, and this version of Roost has "
            f"{PLACEMENT.head!r}. Use the version of Roost that made the export."
        )
    return counts


@dataclass
class TableDigest:
    """The number and the SHA-256 of the rows of a table so far."""

    rows: int = 0
    _sha: Any = field(default_factory=hashlib.sha256)

    def add(self, line: bytes, rows: int = 1) -> None:
        """Add the lines of one row or of several."""
        self.rows += rows
        self._sha.update(line)

    def add_rows(self, rows: Sequence[Any]) -> bytes:
        """Add these rows; their lines."""
        lines = b"".join(line_of(tuple(row)) for row in rows)
        self.add(lines, len(rows))
        return lines

    @property
    def sha256(self) -> str:
        """The SHA-256 of all lines so far."""
        return str(self._sha.hexdigest())

    def plain(self) -> dict[str, Any]:
        """The digest as a JSON value."""
        return {"rows": self.rows, "sha256": self.sha256}


def trailer_line(digests: Mapping[str, TableDigest]) -> bytes:
    """The last line: the number and the SHA-256 of the rows of each table."""
    return line_of({"end": {name: digest.plain() for name, digest in digests.items()}})


def export_lines(
    counts: Mapping[str, int],
    digests: Mapping[str, TableDigest],
    pages_of: Callable[[TransferTable], Iterable[Sequence[Any]]],
) -> Iterator[bytes]:
    """All lines of an export, some at a time; each table has its rows in pages.

    After the last line, the digests are those of the rows.
    """
    yield _header_line(counts)
    for part in parts_of(counts):
        # The line before the rows of a table.
        yield line_of({"table": part.name})
        for page in pages_of(part):
            yield digests[part.name].add_rows(page)
    yield trailer_line(digests)


def new_digests(parts: Iterable[TransferTable] = LAYOUT) -> dict[str, TableDigest]:
    """A digest without rows for each table."""
    return {part.name: TableDigest() for part in parts}
