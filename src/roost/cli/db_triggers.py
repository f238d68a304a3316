"""`roost db triggers`: writes of other programs reach the journal of Roost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import click

from roost.cli.database_access import open_database
from roost.cli.options import configuration_options, read_settings
from roost.cli.terminal import echo, echo_line
from roost.model.text import own_lines
from roost.store.connections.driver_errors import shown_url
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

_DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the SQL, and do nothing.")


@click.group()
def triggers() -> None:
    """Let another program write to the same tables while Roost runs.

    Without triggers, Roost does not see the writes of the reference or of an SQL client. Triggers
    record these writes in the journal of Roost. They cost time in every such write.
    """


@triggers.command(epilog="Example: roost db triggers install --db mysql://roost@db/placement")
@_DRY_RUN
@configuration_options
def install(dry_run: bool, config_files: tuple[str, ...], database_url: str | None) -> None:
    """Install the triggers. Repeating it is harmless."""
    settings = read_settings(config_files, database_url)
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
@configuration_options
def remove(dry_run: bool, config_files: tuple[str, ...], database_url: str | None) -> None:
    """Remove the triggers. Stop all other programs that write before."""
    settings = read_settings(config_files, database_url)
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
@configuration_options
def status(as_json: bool, config_files: tuple[str, ...], database_url: str | None) -> None:
    """Tell whether the triggers are installed.

    Exit status 0: all are installed, 1: none is installed, 2: some are missing or outdated,
    or have lost their table.
    """
    with open_database(read_settings(config_files, database_url), only_reads=True) as database:
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
    sys.exit({"installed": 0, "absent": 1}.get(word, 2))


def _word(found: TriggerStatus) -> str:
    if found.is_broken:
        return "broken"
    return "installed" if found.is_complete else "absent" if found.is_absent else "incomplete"
