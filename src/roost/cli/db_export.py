"""`roost db export` and `roost db import`: a whole database as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import click

from roost.cli.bars import progress_bar
from roost.cli.options import open_database, settings_options
from roost.cli.terminal import continuing, echo_line
from roost.configuration.settings import Settings
from roost.moving.export_files import (
    STREAM,
    ExportReader,
    ReceiverGone,
    explaining_writes,
    file_of,
    reading,
    writing,
)
from roost.moving.export_format import ExportUnusable, TableDigest
from roost.moving.exporting import count_exported, write_export
from roost.moving.importing import (
    ImportSummary,
    import_export,
    require_importable,
    verify_export,
)
from roost.store.connections.driver_errors import shown_url
from roost.store.database import Database
from roost.store.transfer.progress_mark import ProgressMark

_JSON = click.option("--json", "as_json", is_flag=True, help="Print a summary for scripts.")


@click.command("export", epilog="Example: roost db export cloud.jsonl.gz --db mysql://roost@db/x")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Count the rows, and write nothing.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@_JSON
@settings_options
def export_command(
    *,
    file: str,
    dry_run: bool,
    overwrite: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Write all rows of a database to FILE, as lines of JSON.

    All rows are of one moment, also while services write. A FILE with the ending .gz is
    compressed, and - is standard output. Equal databases of any kind have equal exports.
    """
    began = time.monotonic()
    with open_database(settings, only_reads=True) as database:
        if dry_run:
            counts = count_exported(database)
            _tell(
                {
                    "dry_run": True,
                    "tables": {name: {"rows": rows} for name, rows in counts.items()},
                },
                as_json,
                f"would export {sum(counts.values())} rows",
                to_stderr=False,
            )
            return
        with (
            _leaving_stream(file),
            explaining_writes(),
            writing(file, overwrite=overwrite) as opened,
            progress_bar("exporting") as advance,
        ):
            digests = write_export(database, opened, advance)
    seconds = time.monotonic() - began
    rows = sum(digest.rows for digest in digests.values())
    _tell(
        {"file": file, **_plain(digests), "seconds": round(seconds, 3)},
        as_json,
        f"exported {rows} rows to {file} in {seconds:.1f} seconds",
        to_stderr=file == STREAM,
    )


@click.command("import", epilog="Example: roost db import cloud.jsonl.gz --db postgresql://db/x")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Check the file and the database; write nothing.")
@_JSON
@settings_options
def import_command(
    *,
    file: str,
    dry_run: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Write the export FILE into an empty database, and verify it.

    All ids, generations and times stay as they are. After an interruption, the same command
    continues where it ended. FILE - is standard input.
    """
    with file_of(file) as name:
        # A damaged export is refused before the first row is written.
        with reading(name) as opened, progress_bar("checking") as advance:
            reader = verify_export(opened, advance)
        if dry_run:
            tell_trial(reader, try_target(settings), as_json)
            return
        began = time.monotonic()
        with (
            continuing(),
            open_database(settings, may_make=True) as database,
            reading(name) as opened,
            progress_bar("importing") as advance,
        ):
            summary = import_export(database, opened, advance)
            shown = shown_url(database.url)
    tell_import(summary, shown, time.monotonic() - began, as_json)


def tell_import(summary: ImportSummary, shown: str, seconds: float, as_json: bool) -> None:
    """Print what an import has done."""
    sentence = f"imported {summary.rows} rows into {shown} in {seconds:.1f} seconds, and verified"
    if summary.resumed_lines:
        sentence += f"; continued after line {summary.resumed_lines}"
    for what, counts in (
        ("times have lost fractions of seconds", summary.rounded_times),
        ("ratio has lost digits", summary.rounded_ratios),
    ):
        if counts:
            found = ", ".join(f"{count} in {name}" for name, count in counts.items())
            sentence += f"; rows whose {what}: {found}"
    _tell(
        {
            "database": shown,
            **_plain(summary.digests),
            "resumed_lines": summary.resumed_lines,
            "rounded_times": summary.rounded_times,
            "rounded_ratios": summary.rounded_ratios,
            "seconds": round(seconds, 3),
        },
        as_json,
        sentence,
        to_stderr=False,
    )


def try_target(settings: Settings) -> ProgressMark | None:
    """Refuse a database that an import would refuse, without making a file.

    The result is the mark of an import that has not finished.
    """
    with closing(Database(settings.database)) as unopened:
        file = unopened.dialect.file_of(unopened.url)
    if file is None or file.exists():
        with open_database(settings, only_reads=True) as database:
            return require_importable(database)
    return None


def tell_trial(reader: ExportReader, mark: ProgressMark | None, as_json: bool) -> None:
    """Print what an import would do."""
    rows = sum(digest.rows for digest in reader.digests.values())
    sentence = f"would import {rows} rows"
    lines = mark.lines if mark else 0
    if lines:
        sentence += f"; an import has not finished, and would continue after line {lines}"
    trial = {"dry_run": True, **_plain(reader.digests), "resumed_lines": lines}
    _tell(trial, as_json, sentence, to_stderr=False)


@contextmanager
def _leaving_stream(file: str) -> Iterator[None]:
    """After an error of standard output, do not write the rest to it at the exit."""
    try:
        yield
    except (ReceiverGone, ExportUnusable) as error:
        if file == STREAM:
            # A stream that is no file of the system needs nothing.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, ReceiverGone):
            # As `head` ends other programs: without a word.
            sys.exit(1)
        raise


def _plain(digests: Mapping[str, TableDigest]) -> dict[str, Any]:
    return {"tables": {name: digest.plain() for name, digest in digests.items()}}


def _tell(summary: Mapping[str, Any], as_json: bool, sentence: str, *, to_stderr: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary), err=to_stderr)
    else:
        echo_line(sentence, err=to_stderr)
