"""The files of exports: `-` is a stream of the command, and a name with `.gz` is compressed."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, cast

from roost.moving.export_format import ExportUnusable

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
