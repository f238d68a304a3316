"""`roost db export`, `roost db import` and `roost import`: whole clouds from place to place."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from roost.cli.server.settings import open_database, settings_options
from roost.cli.shared.bars import progress_bar
from roost.cli.shared.connection import ConnectionSettings, source_options
from roost.cli.shared.exit_status import ExitStatus
from roost.cli.shared.terminal import continuing, echo_line
from roost.client.reading.survey import Survey
from roost.configuration.settings import Settings
from roost.moving.copied_rows import write_copy
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
from roost.moving.server_copy import copy_server
from roost.moving.survey_file import SurveyFile
from roost.store.connections.driver_errors import shown_url
from roost.store.database import Database
from roost.store.meta import ProgressMark

_WORK_FILE = "survey.sqlite"
_EXPORT = "cloud.jsonl"
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
            _tell_trial(reader, _try_target(settings), as_json)
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
    _tell_import(summary, shown, time.monotonic() - began, as_json)


def _tell_import(summary: ImportSummary, shown: str, seconds: float, as_json: bool) -> None:
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


def _try_target(settings: Settings) -> ProgressMark | None:
    """Refuse a database that an import would refuse, without making a file.

    The result is the mark of an import that has not finished.
    """
    with closing(Database(settings.database)) as unopened:
        file = unopened.dialect.file_of(unopened.url)
    if file is None or file.exists():
        with open_database(settings, only_reads=True) as database:
            return require_importable(database)
    return None


def _tell_trial(reader: ExportReader, mark: ProgressMark | None, as_json: bool) -> None:
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
            sys.exit(ExitStatus.FAILED)
        raise


def _plain(digests: Mapping[str, TableDigest]) -> dict[str, Any]:
    return {"tables": {name: digest.plain() for name, digest in digests.items()}}


def _tell(summary: Mapping[str, Any], as_json: bool, sentence: str, *, to_stderr: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary), err=to_stderr)
    else:
        echo_line(sentence, err=to_stderr)


@click.command("import")
@source_options
@click.option(
    "--work-dir",
    default="roost-import",
    show_default=True,
    metavar="DIR",
    help="Where to keep what was read, so that a copy can continue.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="How many requests to send at once.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Read the server, look at the database, and write nothing to it.",
)
@_JSON
@settings_options
def import_(
    *,
    connection: ConnectionSettings,
    work_dir: str,
    concurrency: int,
    dry_run: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Copy a live placement server, of any vendor, into an empty database.

    Generations stay as they are. After an interruption, the same command continues. Providers
    that change meanwhile are read again.

    \b
    Example:
      roost import --from-url http://old:8778 --token $TOKEN --db sqlite:////var/lib/roost/new.db
      roost import --os-cloud production --db postgresql://roost@db/placement
    """
    with continuing(), _work_directory(Path(work_dir)) as directory:
        if dry_run:
            _try(connection, directory, concurrency, settings, as_json=as_json)
        else:
            _import(connection, directory, concurrency, settings, as_json=as_json)


def _try(
    connection: ConnectionSettings,
    directory: Path,
    concurrency: int,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    mark = _try_target(settings)
    export = directory / _EXPORT
    if mark is None or not export.exists():
        _read_server(connection, directory, concurrency)
    with reading(str(export)) as opened, progress_bar("checking") as advance:
        reader = verify_export(opened, advance)
    _tell_trial(reader, mark, as_json)


def _import(
    connection: ConnectionSettings,
    directory: Path,
    concurrency: int,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    export = directory / _EXPORT
    began = time.monotonic()
    with open_database(settings, may_make=True) as database:
        mark = require_importable(database)
        if mark is None or not export.exists():
            # An interrupted import goes on with the export that it began with.
            _read_server(connection, directory, concurrency)
        elif (directory / _WORK_FILE).exists():
            with connection.open() as transport, _work_file(directory / _WORK_FILE) as file:
                file.require_server(transport.describe())
        with reading(str(export)) as opened, progress_bar("checking") as advance:
            verify_export(opened, advance)
        with reading(str(export)) as opened, progress_bar("importing") as advance:
            summary = import_export(database, opened, advance)
        shown = shown_url(database.url)
    for path in (export, directory / _WORK_FILE):
        path.unlink(missing_ok=True)
    _tell_import(summary, shown, time.monotonic() - began, as_json)


def _read_server(connection: ConnectionSettings, directory: Path, concurrency: int) -> None:
    with ExitStack() as stack:
        transport = stack.enter_context(connection.open())
        # A server that does not answer leaves no file.
        survey = Survey(transport)
        file = stack.enter_context(_work_file(directory / _WORK_FILE))
        file.require_server(transport.describe())
        advance = stack.enter_context(progress_bar("reading providers"))
        major, minor = survey.version
        echo_line(f"the server speaks placement {major}.{minor}", err=True)
        for loss in survey.losses:
            echo_line(f"because of its version, {loss}", err=True)
        copied = copy_server(survey, file, concurrency, advance)
        with writing(str(directory / _EXPORT), overwrite=True) as export:
            write_copy(copied, file, export)
    echo_line(
        f"read {len(copied.providers)} providers in {copied.rounds} "
        f"{'round' if copied.rounds == 1 else 'rounds'}; "
        f"{copied.read_again} had changed meanwhile and were read again",
        err=True,
    )


@contextmanager
def _work_directory(path: Path) -> Iterator[Path]:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield path
    finally:
        # A directory that has files stays.
        with suppress(OSError):
            path.rmdir()


@contextmanager
def _work_file(path: Path) -> Iterator[SurveyFile]:
    # It has the names of all projects: only its owner may read it.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(SurveyFile(path)) as file:
        yield file
