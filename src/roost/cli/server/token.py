"""`roost token`: the tokens of `auth_strategy = tokens`."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta

import click

from roost.api.authentication.tokens_file import (
    StaticToken,
    add_token,
    hash_of,
    new_token,
    read_tokens_file,
    remove_tokens,
)
from roost.cli.shared.command import command
from roost.cli.shared.exit_status import ExitStatus
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.shared.parameters import adding
from roost.cli.shared.terminal import echo_line
from roost.configuration.settings import ConfigurationError, load_settings

_COLUMNS = columns_of("ID, USER, PROJECT, ROLES, CREATED?, EXPIRES")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([1-9][0-9]{0,5})([hdw])")


def _lifetime(text: str) -> timedelta:
    """A number with a unit, such as 90d."""
    matched = _DURATION.fullmatch(text)
    if matched is None:
        raise click.BadParameter(f"{text!r} is no lifetime. Write 12h, 90d or 52w.")
    return timedelta(**{_UNITS[matched[2]]: int(matched[1])})


_file_options = adding(
    click.option(
        "--file",
        "path",
        metavar="FILE",
        help="The file of tokens. [default: [roost]tokens_file of placement.conf]",
    ),
    click.option(
        "--config-file",
        "config_files",
        metavar="FILE",
        multiple=True,
        help="A placement.conf whose [roost]tokens_file is meant.",
    ),
)


@click.group(cls=CommandGroup)
def token() -> None:
    """Manage the tokens of `auth_strategy = tokens`."""


@token.command(
    epilog="""\b
Example:
  roost token create --user nova --project service --role admin --expires 90d --file tokens.jsonl
"""
)
@click.option("--user", required=True, help="The name of the caller, in the log and in the policy.")
@click.option("--project", required=True, help="The project of the caller.")
@click.option("--role", "roles", multiple=True, required=True, help="A role; may be repeated.")
@click.option("--expires", type=_lifetime, metavar="90d", help="Lifetime: 12h, 90d, 52w.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_file_options
def create(
    *,
    user: str,
    project: str,
    roles: tuple[str, ...],
    expires: timedelta | None,
    dry_run: bool,
    as_json: bool,
    path: str | None,
    config_files: tuple[str, ...],
) -> None:
    """Make a token, add its hash to the file, and print the token. It is shown only once."""
    for name, value in (("--user", user), ("--project", project), *(("--role", r) for r in roles)):
        if not value.strip() or not value.isprintable():
            raise ConfigurationError(f"{name} must be a printable text that is not empty.")
    file = _chosen_file(path, config_files)
    now = datetime.now(UTC).replace(microsecond=0)
    secret = new_token()
    made = StaticToken(
        hash=hash_of(secret),
        user=user,
        project=project,
        roles=tuple(dict.fromkeys(roles)),
        created=now,
        expires=_end(now, expires),
    )
    if not dry_run:
        add_token(file, made)
    if as_json:
        shown = {"dry_run": True} if dry_run else {"token": secret}
        echo_line(json.dumps({"id": made.id, **shown, **json.loads(made.line()), "file": file}))
        return
    if dry_run:
        echo_line(f"Would add to {file}:", err=True)
        echo_line(json.dumps(json.loads(made.line()) | {"sha256": "..."}))
        return
    echo_line(
        f"Added the token {made.id} of {user} to {file}. The token is shown only now:", err=True
    )
    echo_line(secret)


@command("list", of=token)
@output_options
@_file_options
def list_tokens(*, output: OutputForm, path: str | None, config_files: tuple[str, ...]) -> None:
    """List the tokens of the file, without the tokens themselves.

    \b
    Examples:
      roost token list --file tokens.jsonl
      roost token list --output csv
    """
    file = _chosen_file(path, config_files)
    read = read_tokens_file(file)
    for fault in read.faults:
        echo_line(f"roost: warning: {fault}", err=True)
    now = datetime.now(UTC)
    rows = [
        [one.id, one.user, one.project, one.roles, _day(one.created), _expiry(one, now)]
        for one in read.tokens
    ]
    value = [{"id": one.id, **json.loads(one.line())} for one in read.tokens]
    print_output(Output(Table(_COLUMNS, rows), value), output)
    if read.faults:
        sys.exit(ExitStatus.FAILED)


@token.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@_file_options
def revoke(
    *, ids: tuple[str, ...], dry_run: bool, path: str | None, config_files: tuple[str, ...]
) -> None:
    """Remove tokens by the ids that `roost token list` shows. The next request is refused."""
    file = _chosen_file(path, config_files)
    tokens = read_tokens_file(file).tokens
    chosen = [_by_id(id_, tokens, file) for id_ in ids]
    if not dry_run:
        remove_tokens(file, [one.hash for one in chosen])
    for one in chosen:
        verb = "Would revoke" if dry_run else "Revoked"
        echo_line(f"{verb} the token {one.id} of {one.user}.")


def _chosen_file(path: str | None, config_files: tuple[str, ...]) -> str:
    chosen = path or load_settings(config_files).tokens_file
    if not chosen:
        raise ConfigurationError(
            "No file of tokens is named. Give --file, or set [roost]tokens_file in placement.conf."
        )
    return chosen


def _by_id(id_: str, tokens: tuple[StaticToken, ...], file: str) -> StaticToken:
    found = [one for one in tokens if one.hash.startswith(id_.lower())] if id_ else []
    if len(found) != 1:
        raise ConfigurationError(
            f"{len(found) or 'No'} tokens of {file} have an id that begins with {id_!r}. Take an "
            f"id from: roost token list --file {file}"
        )
    return found[0]


def _end(now: datetime, lifetime: timedelta | None) -> datetime | None:
    if lifetime is None:
        return None
    try:
        return now + lifetime
    except OverflowError:
        raise ConfigurationError("--expires is too far away. Choose fewer weeks.") from None


def _expiry(one: StaticToken, now: datetime) -> str:
    day = _day(one.expires)
    if one.expires is None or day is None:
        return "never"
    return f"{day} (expired)" if one.expires <= now else day


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
