"""`roost db`: the schema of the database, and triggers for the writes of other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import click
from rich.console import Console
from rich.table import Column, Table

from roost.cli.server.moving import export_command, import_command
from roost.cli.server.settings import open_database, settings_options
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.terminal import echo, echo_line, plain
from roost.configuration.settings import Settings
from roost.model.text import own_lines
from roost.store.checks.checks import check_database, judge
from roost.store.checks.findings import Finding, Level
from roost.store.connections.driver_errors import shown_url
from roost.store.connections.errors import SYNC_COMMAND, DatabaseUnusable
from roost.store.database import Database
from roost.store.journal.triggers import (
    BROKEN,
    INSTALL_COMMAND,
    REMOVE_COMMAND,
    TriggerStatus,
    install_triggers,
    installing,
    remove_triggers,
    removing,
    trigger_status,
)
from roost.store.meta import read_identity, renew_identity
from roost.store.migrations.repair import repair_online_data
from roost.store.migrations.schema import SchemaState, inspect_schema, planned_steps, sync_schema

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILURE: "red"}


@click.group(cls=CommandGroup)
def db() -> None:
    """Look after the database: its schema and what is in it."""


for command in (export_command, import_command):
    db.add_command(command)


@db.command(epilog="Example: roost db sync --db postgresql://roost@db.example/placement")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--repair",
    is_flag=True,
    help="First mend providers without root and allocations without consumer.",
)
@settings_options
def sync(dry_run: bool, repair: bool, settings: Settings) -> None:
    """Bring the schema to what this version needs. Repeating it is harmless."""
    with open_database(settings, may_make=not dry_run, only_reads=dry_run) as database:
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
    if dry_run:
        for step in planned_steps(before):
            echo_line(f"would run: {step}")
    triggers_found = database.read(trigger_status)
    if not triggers_found.is_absent and not triggers_found.is_complete:
        if not dry_run:
            install_triggers(database)
        verb = "would be" if dry_run else "were"
        echo_line(f"triggers {verb} completed: {', '.join(triggers_found.missing) or 'outdated'}")


def _repair(database: Database, settings: Settings, *, dry_run: bool) -> None:
    with database.write_gate_passed(), database.engine.connect() as connection:
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
@settings_options
def version(as_json: bool, settings: Settings) -> None:
    """Print the revisions that the schema is at."""
    with open_database(settings, only_reads=True) as database:
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


@db.command(epilog="Example: roost db identity --renew --db sqlite:///lab.sqlite")
@click.option("--renew", is_flag=True, help="Give the database another identity.")
@settings_options
def identity(renew: bool, settings: Settings) -> None:
    """Print the identity of the database, by which hosts tell servers apart.

    All servers of a database have its identity, and a restored backup keeps it. A copy that goes
    its own way, such as a lab, needs another one: --renew. Hosts then no longer take it for the
    server that it was copied from. `roost owner rebind` tells a host about a new identity.
    """
    with open_database(settings, only_reads=not renew) as database:
        if not inspect_schema(database).can_serve:
            raise DatabaseUnusable(
                f"{shown_url(database.url)} has no schema of Roost, or an older one. Upgrade it "
                f"with: {SYNC_COMMAND}"
            )
        if renew:
            database.write_at_once(renew_identity)
        found = database.read(read_identity)
    if found is None:
        raise DatabaseUnusable(
            f"{shown_url(database.url)} has no identity yet. It gets one with: {SYNC_COMMAND}"
        )
    echo_line(found)


@db.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@settings_options
def check(as_json: bool, settings: Settings) -> None:
    """Say whether Roost can adopt a database, and look for anything that is wrong in it.

    It changes nothing, whether Roost or the reference has used the database so far.

    Exit status: 0 all well, 3 warnings or failures, 1 nothing could be looked at.
    """
    with open_database(settings, only_reads=True) as database:
        status = inspect_schema(database)
        findings = database.read(check_database)
    verdict = judge(status, findings)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "adoptable": verdict.adoptable,
                    "verdict": verdict.sentence,
                    "findings": [_plain(finding) for finding in findings],
                }
            )
        )
    else:
        _print(findings)
        echo_line(verdict.sentence)
    sys.exit(yes_or_no({finding.level for finding in findings} <= {Level.OK}))


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "name": finding.name,
        "level": finding.level.value,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _print(findings: tuple[Finding, ...]) -> None:
    # A long name goes on in the next line, instead of being cut.
    table = Table(
        *(Column(name, overflow="fold") for name in ("check", "result", "found", "what to do"))
    )
    for finding in findings:
        table.add_row(
            plain(finding.name),
            plain(finding.level.value, _COLOURS[finding.level]),
            plain(finding.message),
            plain(finding.remedy),
        )
    Console().print(table)


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the SQL, and do nothing.")


@db.group()
def triggers() -> None:
    """Let another program write to the same tables while Roost runs.

    Without triggers, Roost does not see the writes of the reference or of an SQL client. Triggers
    record these writes in the journal of Roost. They cost time in every such write.
    """


@triggers.command(epilog="Example: roost db triggers install --db mysql://roost@db/placement")
@_DRY_RUN
@settings_options
def install(dry_run: bool, settings: Settings) -> None:
    """Install the triggers. Repeating it is harmless."""
    with open_database(settings, only_reads=dry_run) as database:
        if dry_run:
            _print_sql(database.read(installing))
            return
        install_triggers(database)
        echo_line(
            f"{shown_url(database.url)}: triggers are installed; Roost and other programs may "
            "write at the same time"
        )


@triggers.command(epilog="Example: roost db triggers remove --db mysql://roost@db/placement")
@_DRY_RUN
@settings_options
def remove(dry_run: bool, settings: Settings) -> None:
    """Remove the triggers. Stop all other programs that write before."""
    with open_database(settings, only_reads=dry_run) as database:
        if dry_run:
            _print_sql(database.read(removing))
            return
        remove_triggers(database)
        echo_line(
            f"{shown_url(database.url)}: triggers are removed; only Roost may write from now on"
        )


def _print_sql(statements: Iterable[str]) -> None:
    """Print statements as a client of the database takes them."""
    for statement in statements:
        echo(own_lines(*f"{statement};".split("\n")))


@triggers.command(epilog="Example: roost db triggers status --json")
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@settings_options
def status(as_json: bool, settings: Settings) -> None:
    """Tell whether the triggers are installed.

    Exit status: 0 all are installed, 3 none is, or some are missing or outdated, or have lost
    their table.
    """
    with open_database(settings, only_reads=True) as database:
        found = database.read(trigger_status)
    word = _word(found)
    if as_json:
        click.echo(
            json.dumps({"state": word, "missing": found.missing, "outdated": found.outdated})
        )
    else:
        echo_line(f"triggers: {word}")
        if found.is_broken:
            echo_line(f"{BROKEN}. Run: {REMOVE_COMMAND}")
        if word == "incomplete":
            echo_line(
                f"missing: {', '.join(found.missing) or 'none'}; outdated: "
                f"{', '.join(found.outdated) or 'none'}. Run: {INSTALL_COMMAND}"
            )
    sys.exit(yes_or_no(word == "installed"))


def _word(found: TriggerStatus) -> str:
    if found.is_broken:
        return "broken"
    return "installed" if found.is_complete else "absent" if found.is_absent else "incomplete"
