"""The lines of an export. Pure; docs/moving.md describes the format.

The first line is the header. A line with the name of a table begins its rows, one line each. The
last line is the trailer. Two equal databases have equal exports, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from roost.model.errors import OperatorError
from roost.store.migrations.histories import PLACEMENT
from roost.store.transfer.layout import LAYOUT

FORMAT = "roost-export"
VERSION = 1


class ExportUnusable(OperatorError):
    """An export that cannot be read; the message says why."""


def line_of(value: Any) -> bytes:
    """A value as one line."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def header_line(counts: Mapping[str, int]) -> bytes:
    """The first line: the format, the schema, and the number of rows of each table."""
    return line_of(
        {
            "format": FORMAT,
            "version": VERSION,
            "schema": PLACEMENT.head,
            "tables": {
                part.name: {"rows": counts[part.name], "columns": part.columns} for part in LAYOUT
            },
        }
    )


def table_line(name: str) -> bytes:
    """The line before the rows of a table."""
    return line_of({"table": name})


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
    if schema != PLACEMENT.head or columns != {part.name: part.columns for part in LAYOUT}:
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


def new_digests() -> dict[str, TableDigest]:
    """A digest without rows for each table."""
    return {part.name: TableDigest() for part in LAYOUT}
