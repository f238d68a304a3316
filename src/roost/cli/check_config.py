"""`roost check-config`: what is in force, and what is wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace

import click
from rich.console import Console

from roost.api.authentication import IdentityUnavailable, check_strategy
from roost.api.observation.query_counting import named_queries
from roost.api.policy.policy import Policy
from roost.api.policy.review import open_writes
from roost.cli.server.settings import configuration_options
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.terminal import plain
from roost.configuration.concerns import (
    Concern,
    ConcernKind,
    Severity,
    dangers,
    name_concerns,
    needs_mending,
)
from roost.configuration.in_force import OptionInForce, options_in_force
from roost.configuration.listing import sample_configuration
from roost.configuration.settings import Settings, load_settings
from roost.model.errors import OperatorError
from roost.store.connections.driver_errors import explained, shown_url
from roost.store.connections.errors import SYNC_COMMAND
from roost.store.database import Database
from roost.store.migrations.schema import SchemaState, connect_or_explain, inspect_schema

_COLOURS = {
    Severity.OK: "green",
    Severity.NOTE: "cyan",
    Severity.WARNING: "yellow",
    Severity.FAILURE: "red",
}

_FOREIGN = (Severity.FAILURE, "has a schema of a newer Roost, or of another program.")
_SCHEMAS = {
    SchemaState.CURRENT: (Severity.OK, "answers; its schema is current."),
    SchemaState.EMPTY: (Severity.OK, "is empty; the first start makes its tables."),
    SchemaState.OLDER: (
        Severity.FAILURE,
        f"has an older schema, so the start is refused. Say: {SYNC_COMMAND}",
    ),
    SchemaState.NEWER: _FOREIGN,
    SchemaState.UNKNOWN: _FOREIGN,
}


@click.command(
    "check-config",
    short_help="Print the configuration in force, and what is wrong with it.",
    epilog="""\b
Exit status: 0 nothing to mend; 3 warnings: unknown or dangerous options, or with
--strict also ignored and deprecated ones; also 3 if the service would not start so.

\b
Examples:
  roost check-config --config-file /etc/placement/placement.conf --connect
  roost check-config --sample > placement.conf
""",
)
@click.option("--connect", is_flag=True, help="Also try the database, and Keystone if configured.")
@click.option("--strict", is_flag=True, help="Notes count as warnings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sample", is_flag=True, help="Print a placement.conf with every option, and end.")
@configuration_options
def check_config(
    *,
    connect: bool,
    strict: bool,
    as_json: bool,
    sample: bool,
    config_files: tuple[str, ...],
    database_url: str | None,
) -> None:
    """Read the configuration as `roost serve` does; print each option, its value and its origin.

    The command changes nothing, and hides secrets.
    """
    if sample:
        click.echo(sample_configuration(), nl=False)
        return
    options: list[OptionInForce] = []
    concerns: list[Concern] = []
    try:
        settings = load_settings(config_files, database_url)
        options = options_in_force(settings, url_is_given=database_url is not None)
        concerns = [*name_concerns(settings), *dangers(settings), *_unusable(settings)]
        if connect:
            concerns += [*_database(settings), *_keystone(settings)]
    except OperatorError as error:
        concerns.append(_failure(ConcernKind.UNUSABLE, error))
    status = yes_or_no(not needs_mending(concerns, strict=strict))
    if as_json:
        plain_values = {
            "status": status,
            "options": [asdict(one) for one in options],
            "concerns": [asdict(one) for one in concerns],
        }
        click.echo(json.dumps(plain_values, default=str))
    else:
        _print(options, concerns)
    sys.exit(status)


def _failure(kind: ConcernKind, error: OperatorError) -> Concern:
    return Concern(kind, Severity.FAILURE, error.explanation)


def _unusable(settings: Settings) -> Iterator[Concern]:
    """What the start would refuse, and what the policy allows."""
    try:
        check_strategy(replace(settings, auth_strategy=settings.auth_strategy or "noauth2"))
    except OperatorError as error:
        yield _failure(ConcernKind.UNUSABLE, error)
    try:
        named_queries(settings)
    except OperatorError as error:
        yield _failure(ConcernKind.UNUSABLE, error)
    try:
        policy = Policy(settings.oslo)
    except OperatorError as error:
        yield _failure(ConcernKind.UNUSABLE, error)
        return
    for text in open_writes(policy):
        yield Concern(ConcernKind.DANGEROUS, Severity.WARNING, text)
    wanted = settings.oslo.oslo_policy.policy_file
    if wanted != "policy.yaml" and not settings.oslo.find_file(wanted):
        text = f"[oslo_policy]policy_file = {wanted} does not exist: the defaults hold. Create it."
        yield Concern(ConcernKind.DANGEROUS, Severity.WARNING, text)


def _database(settings: Settings) -> Iterator[Concern]:
    """Whether the database answers, and whether its schema is what this version needs."""
    try:
        with closing(Database(settings.database)) as database:
            database.dialect.require_file(database)
            connect_or_explain(database)
            with explained(database.url):
                state = inspect_schema(database).state
            where = shown_url(database.url)
    except OperatorError as error:
        yield _failure(ConcernKind.CONNECTION, error)
        return
    if state is SchemaState.OLDER and settings.upgrade_schema:
        text = f"{where} has an older schema; the next start upgrades it."
        yield Concern(ConcernKind.CONNECTION, Severity.OK, text)
        return
    severity, text = _SCHEMAS[state]
    yield Concern(ConcernKind.CONNECTION, severity, f"{where} {text}")


def _keystone(settings: Settings) -> Iterator[Concern]:
    """Whether Keystone lets the service account log in and look at tokens."""
    if settings.auth_strategy != "keystone":
        return
    try:
        check_strategy(settings)
    except OperatorError:
        # The check without connections names it.
        return
    # The extra `keystone` brings the packages, and they are slow to import.
    from roost.api.authentication.keystone_checks import check_account  # noqa: PLC0415

    try:
        checked = check_account(settings)
    except IdentityUnavailable as error:
        text = f"{error}. Check auth_url and the network." if error.away else f"{error}."
        yield Concern(ConcernKind.CONNECTION, Severity.FAILURE, text[:1].upper() + text[1:])
        return
    where = f"Keystone at {checked.address}" if checked.address else "Keystone"
    allowed = "log in and look at tokens" if checked.may_look_at_tokens else "log in"
    text = f"{where} lets the service account {checked.account} {allowed}."
    yield Concern(ConcernKind.CONNECTION, Severity.OK, text)
    if not checked.may_look_at_tokens:
        text = (
            f"The service account {checked.account} has the roles {', '.join(checked.roles)} only. "
            "Keystone's usual policy lets it look at its own tokens alone, so requests get 503. "
            "Give it the role service or admin."
        )
        yield Concern(ConcernKind.CONNECTION, Severity.WARNING, text)


def _print(options: list[OptionInForce], concerns: list[Concern]) -> None:
    console = Console(highlight=False)
    group = ""
    for one in options:
        if one.group != group:
            group = one.group
            console.print(plain(f"[{group}]", "bold"))
        line = plain(f"{one.name} = {_text(one.value)}", "dim" if one.is_default else "")
        line.append_text(plain(f"    # {one.origin}", "dim"))
        console.print(line, soft_wrap=True)
    if options:
        console.print()
    for concern in concerns:
        line = plain(f"{concern.severity}: ", _COLOURS[concern.severity])
        line.append_text(plain(f"{concern.kind}: {concern.message}", "not bold default"))
        console.print(line, soft_wrap=True)
    if not concerns:
        console.print("Nothing to mend.")


def _text(value: object) -> str:
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
