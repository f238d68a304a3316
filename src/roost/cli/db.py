"""`roost db`: the schema of the database."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import click
from rich.console import Console
from rich.table import Table

from roost.cli.options import configuration_options, read_settings
from roost.cli.terminal import echo, echo_line, plain
from roost.configuration.settings import Settings
from roost.store.checks import Finding, Level, check_database
from roost.store.database import Database
from roost.store.driver_errors import explained, shown_url
from roost.store.errors import DatabaseUnusable
from roost.store.files import prepare_file, require_file
from roost.store.schema import SchemaState, connect_or_explain, inspect_schema, sync_schema
from roost.store.schema_repair import repair_online_data

_SILENCE_SECONDS = 3600
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILURE: "red"}


@click.group()
def db() -> None:
    """Look after the database: its schema and what is in it."""


@contextmanager
def _open(settings: Settings, *, may_make: bool = False) -> Iterator[Database]:
    # A check of a large database may take a while.
    patient = replace(settings.database, silence_seconds=_SILENCE_SECONDS)
    with closing(Database(patient)) as database:
        (prepare_file if may_make else require_file)(database)
        connect_or_explain(database)
        with explained(database.url):
            yield database


@db.command(epilog="Example: roost db sync --db postgresql://roost@db.example/placement")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--repair",
    is_flag=True,
    help="First mend providers without root and allocations without consumer.",
)
@configuration_options
def sync(
    dry_run: bool, repair: bool, config_files: tuple[str, ...], database_url: str | None
) -> None:
    """Bring the schema to what this version needs. Repeating it is harmless."""
    settings = read_settings(config_files, database_url)
    with _open(settings, may_make=not dry_run) as database:
        _sync(database, settings, dry_run=dry_run, repair=repair)


def _sync(database: Database, settings: Settings, *, dry_run: bool, repair: bool) -> None:
    before = inspect_schema(database)
    if repair and before.placement_revision is not None:
        _repair(database, settings, dry_run=dry_run)
    after = before if dry_run else sync_schema(database)
    if after.state is SchemaState.NEWER:
        echo_line(
            f"{shown_url(database.url)}: a newer version of Roost has migrated it to roost schema "
            f"{after.roost_revision}; there is nothing to do for this version"
        )
        return
    verb = "would become" if dry_run else "is now"
    echo_line(
        f"{shown_url(database.url)}: {before.state.value} before; placement schema {verb} "
        f"{after.placement_head}, roost schema {verb} {after.roost_head}"
    )


def _repair(database: Database, settings: Settings, *, dry_run: bool) -> None:
    with database.writer_turn(), database.engine.connect() as connection:
        repaired = repair_online_data(
            connection, settings.incomplete_project, settings.incomplete_user
        )
        if dry_run:
            connection.rollback()
        else:
            connection.commit()
    verb = "would be repaired" if dry_run else "repaired"
    echo_line(f"{verb}: {repaired.roots} roots, {repaired.consumers} consumers")


@db.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@configuration_options
def version(as_json: bool, config_files: tuple[str, ...], database_url: str | None) -> None:
    """Print the revisions that the schema is at."""
    with _open(read_settings(config_files, database_url)) as database:
        status = inspect_schema(database)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "state": status.state.value,
                    "placement": status.placement_revision,
                    "roost": status.roost_revision,
                }
            )
        )
        return
    echo_line(f"placement  {status.placement_revision} (newest {status.placement_head})")
    echo_line(f"roost      {status.roost_revision} (newest {status.roost_head})")


@db.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@configuration_options
def check(as_json: bool, config_files: tuple[str, ...], database_url: str | None) -> None:
    """Look for anything in the database that would make answers wrong.

    Exit status 0: all well, 1: warnings, 2: at least one failure, or nothing could be looked at.
    """
    try:
        with _open(read_settings(config_files, database_url)) as database:
            findings = database.read(check_database)
    except DatabaseUnusable as error:
        echo(f"roost: {error}", err=True)
        sys.exit(2)
    if as_json:
        click.echo(json.dumps([_plain(finding) for finding in findings]))
    else:
        _print(findings)
    levels = {finding.level for finding in findings}
    sys.exit(2 if Level.FAILURE in levels else 1 if Level.WARNING in levels else 0)


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "name": finding.name,
        "level": finding.level.value,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _print(findings: tuple[Finding, ...]) -> None:
    table = Table("check", "result", "found", "what to do")
    for finding in findings:
        table.add_row(
            plain(finding.name),
            plain(finding.level.value, _COLOURS[finding.level]),
            plain(finding.message),
            plain(finding.remedy),
        )
    Console().print(table)
