"""The files of exports: how they are opened, and their lines in order, each checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, cast

import orjson

from roost.model.errors import OperatorError
from roost.moving.export_format import (
    ExportUnusable,
    line_of,
    new_digests,
    parts_of,
    read_header,
)
from roost.moving.exported_values import RowChecks
from roost.store.meta import ProgressMark
from roost.store.transfer import TransferTable


class ReceiverGone(OperatorError):
    """The program that reads the export from a pipe has ended."""


@contextmanager
def explaining_writes() -> Iterator[None]:
    """Tell errors of the file from errors of the database, which may be `OSError` as well."""
    try:
        yield
    except BrokenPipeError:
        raise ReceiverGone("The program that reads the export has ended.") from None
    except OSError as error:
        raise ExportUnusable(
            f"The export cannot be written: {error.strerror or error}. Make room there, or name "
            "another file."
        ) from error


STREAM = "-"
PARTIAL = ".partial"
# No row is longer. A longer line is not read into memory.
LINE_BYTES_MAX = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER_BYTES = 1 << 20


@contextmanager
def writing(name: str, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file for an export. It gets its name when it is complete and on disk."""
    if name == STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    if path.exists() and not overwrite:
        raise ExportUnusable(f"The file {path} exists. Name another, or add --overwrite.")
    partial = path.with_name(path.name + PARTIAL)
    descriptor = _create_private(partial)
    try:
        with open(descriptor, "wb", _BUFFER_BYTES) as file:
            if path.suffix == ".gz":
                # Without a time, so that equal databases have equal files.
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
                    yield cast(IO[bytes], compressed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            partial.unlink()
        raise


def _create_private(path: Path) -> int:
    """A new file. An export has the names of all projects: only its owner may read it.

    A file that is there may have another mode, or be a link to a file of another user.
    """
    path.unlink(missing_ok=True)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise ExportUnusable(
            f"Another program makes the file {path} at the same time. Name a file in a directory "
            "where only you can write."
        ) from None


@contextmanager
def reading(name: str) -> Iterator[IO[bytes]]:
    """An export, whether it is compressed or not."""
    with Path(name).open("rb", _BUFFER_BYTES) as opened:
        file = cast(io.BufferedReader, opened)
        if file.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.GzipFile(fileobj=file, mode="rb") as compressed:
                yield io.BufferedReader(compressed, _BUFFER_BYTES)
        else:
            yield file


@contextmanager
def file_of(name: str) -> Iterator[str]:
    """The name of a file that can be read twice: a stream is copied into a temporary file."""
    if name == STREAM:
        with _copy_of(sys.stdin.buffer, "Standard input") as copy:
            yield copy
    elif Path(name).is_fifo():
        with Path(name).open("rb") as pipe, _copy_of(pipe, f"The pipe {name}") as copy:
            yield copy
    else:
        yield name


@contextmanager
def _copy_of(stream: IO[bytes], called: str) -> Iterator[str]:
    with NamedTemporaryFile(prefix="roost-import-") as copy:
        try:
            shutil.copyfileobj(stream, copy, _BUFFER_BYTES)
            copy.flush()
        except OSError as error:
            raise ExportUnusable(
                f"{called} cannot be copied to {copy.name}: {error.strerror}. Nothing was "
                "written to the database. Name another directory by TMPDIR, or import a file."
            ) from None
        yield copy.name


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of an export, each with its end."""
    number = 0
    try:
        while line := file.readline(LINE_BYTES_MAX):
            number += 1
            if not line.endswith(b"\n"):
                raise ExportUnusable(
                    f"Line {number} of the export is cut off or too long. Make the export again."
                )
            yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ExportUnusable(
            f"The compressed export is damaged after line {number}: {error}. Make it again."
        ) from None


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
        self._parts = parts_of(self.counts)
        self.digests = new_digests(self._parts)

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
        for part in self._parts:
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
