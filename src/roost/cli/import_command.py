"""`roost import --from-url`: copies a live placement server into a database."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import click

from roost.cli.bars import progress_bar
from roost.cli.connection import ConnectionSettings, source_options
from roost.cli.db_export import tell_import, tell_trial, try_target
from roost.cli.options import open_database, settings_options
from roost.cli.terminal import continuing, echo_line
from roost.client.survey import Survey
from roost.configuration.settings import Settings
from roost.moving.copied_rows import write_copy
from roost.moving.export_files import reading, writing
from roost.moving.importing import import_export, require_importable, verify_export
from roost.moving.server_copy import copy_server
from roost.moving.survey_file import SurveyFile
from roost.store.connections.driver_errors import shown_url

_WORK_FILE = "survey.sqlite"
_EXPORT = "cloud.jsonl"


@click.command("import", short_help="Copy a live placement server into a database.")
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
@click.option("--json", "as_json", is_flag=True, help="Print a summary for scripts.")
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
    mark = try_target(settings)
    export = directory / _EXPORT
    if mark is None or not export.exists():
        _read_server(connection, directory, concurrency)
    with reading(str(export)) as opened, progress_bar("checking") as advance:
        reader = verify_export(opened, advance)
    tell_trial(reader, mark, as_json)


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
    tell_import(summary, shown, time.monotonic() - began, as_json)


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
