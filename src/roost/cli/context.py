"""The command `roost context`: names for servers, and which of them commands talk to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from roost.cli.shared.command import behind_own, command
from roost.cli.shared.completers import CONTEXT
from roost.cli.shared.connection import variable_before_contexts
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Facts,
    Output,
    OutputForm,
    PlannedChange,
    Table,
    columns_of,
    dry_run_option,
    make_changes,
    output_options,
    print_output,
)
from roost.cli.shared.parameters import WORD
from roost.cli.shared.terminal import echo_line
from roost.client.contexts import (
    ContextFile,
    ServerContext,
    check_name,
    default_path,
    read_contexts,
)
from roost.client.errors import NotConfigured
from roost.client.transport.http import server_url
from roost.model.text import with_next, without_user_info

_LISTED = columns_of("NAME, CURRENT, SERVER, TOKEN, REGION?")
_FACTS = columns_of("FIELD, VALUE")
_STANDARD_INPUT = "-"


@click.group(cls=CommandGroup)
def context() -> None:
    """Give servers names, and choose the one that commands talk to.

    The contexts are in ~/.config/roost/contexts.yaml, or below $XDG_CONFIG_HOME. Only its owner may
    read the file, because it may have tokens. No command prints one.

    \b
    Examples:
      roost context add lab --url http://10.0.0.5:8778 --token-file ~/lab.token --use
      roost context add production --cloud mycloud
      roost context use production
      roost provider list --context lab
    """


def _change_command(name: str, summary: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command that changes the file of the contexts."""

    def declare(function: Callable[..., None]) -> click.Command:
        shared = (dry_run_option, output_options)
        return command(name, summary, of=context)(behind_own(function, *shared))

    return declare


@_change_command("add", "Give a server a name.")
@click.argument("name", type=WORD, metavar="NAME")
@click.option("--url", type=WORD, metavar="URL", help="Address of the placement server.")
@click.option(
    "--token",
    type=WORD,
    metavar="TOKEN",
    help="Token to send to that address; - reads it from standard input, where no list of "
    "processes shows it.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File with the token. Each command reads it.",
)
@click.option(
    "--cloud",
    "--os-cloud",
    "cloud",
    type=WORD,
    metavar="NAME",
    help="A cloud of clouds.yaml, instead of an address.",
)
@click.option(
    "--region", "--os-region", "region", type=WORD, metavar="NAME", help="Region of that cloud."
)
@click.option("--cacert", type=WORD, metavar="FILE", help="Certificate authorities to trust.")
@click.option("--insecure", is_flag=True, help="Do not check the server's certificate.")
@click.option("--use", "is_used", is_flag=True, help="Also use the context from now on.")
@click.option("--replace", "replaces", is_flag=True, help="Replace a context of this name.")
def add(
    *,
    name: str,
    token: str | None,
    token_file: Path | None,
    is_used: bool,
    replaces: bool,
    output: OutputForm,
    dry_run: bool,
    **given: Any,
) -> None:
    """Keep the address of a server, or a cloud, under a name.

    \b
    Examples:
      roost context add lab --url http://10.0.0.5:8778 --token - --use
      roost context add production --cloud mycloud --region east
    """
    file = read_contexts(default_path())
    if check_name(name) in file.contexts and not replaces:
        raise NotConfigured(
            with_next(f"There is a context {name} already.", f"roost context show {name}")
        )
    if given["url"] is not None:
        given["url"] = server_url(given["url"])
    made = ServerContext(
        token=_typed_token() if token == _STANDARD_INPUT else token,
        token_file=None if token_file is None else str(token_file.absolute()),
        **given,
    )
    current = name if is_used else file.current
    _write(file, {**file.contexts, name: made}, current, ("added", name), output, dry_run=dry_run)
    if not dry_run and current != name:
        echo_line(f"Next: roost context use {name}", err=True)


def _typed_token() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Token", hide_input=True, err=True))
    token = sys.stdin.readline().strip()
    if not token:
        raise NotConfigured("standard input has no token; write it as the first line")
    return token


@_change_command("use", "Choose the server that commands talk to.")
@click.argument("name", type=CONTEXT)
def use(*, name: str, output: OutputForm, dry_run: bool) -> None:
    """Let commands talk to the server of this context, unless an option or a variable says more.

    \b
    Examples:
      roost context use production
      roost context use production --dry-run
    """
    file = read_contexts(default_path())
    file.named(name)
    _write(file, file.contexts, name, ("used", name), output, dry_run=dry_run)
    variable = variable_before_contexts(os.environ)
    if variable is not None:
        echo_line(f"roost: warning: {variable} is set, and comes before it.", err=True)


@_change_command("remove", "Forget a context.")
@click.argument("name", type=CONTEXT)
def remove(*, name: str, output: OutputForm, dry_run: bool) -> None:
    """Forget a context, with its token.

    \b
    Examples:
      roost context remove lab --dry-run
      roost context remove lab
    """
    file = read_contexts(default_path())
    file.named(name)
    rest = {other: one for other, one in file.contexts.items() if other != name}
    current = None if file.current == name else file.current
    _write(file, rest, current, ("removed", name), output, dry_run=dry_run)


def _write(
    file: ContextFile,
    contexts: Mapping[str, ServerContext],
    current: str | None,
    change: tuple[str, str],
    output: OutputForm,
    *,
    dry_run: bool,
) -> None:
    """Make one change of the file, and print it."""
    word, name = change
    changed = replace(file, contexts=contexts, current=current)
    value = {"context": name, "current": current}
    make_changes(word, [PlannedChange(name, value, changed.write)], output, dry_run=dry_run)


@command("list", "List contexts.", of=context)
@output_options
def list_contexts(*, output: OutputForm) -> None:
    """List the contexts, and which of them is used.

    \b
    Examples:
      roost context list
      roost context list --json
    """
    file = read_contexts(default_path())
    rows, values = [], []
    for name, one in sorted(file.contexts.items()):
        is_current = name == file.current
        kept = "kept" if one.token else one.token_file
        rows.append([name, is_current, _server(one), kept, one.region])
        values.append({"name": name, "current": is_current, **_shown(one)})
    print_output(Output(Table(_LISTED, rows), values), output)
    if not rows:
        echo_line(f"There are no contexts in {file.path}.", err=True)


@command("show", "Show a context without its token.", of=context)
@click.argument("name", type=CONTEXT, required=False)
@output_options
def show(*, name: str | None, output: OutputForm) -> None:
    """Show a context; without a name, the one that is used.

    \b
    Examples:
      roost context show
      roost context show lab --json
    """
    file = read_contexts(default_path())
    name = name or os.environ.get("ROOST_CONTEXT") or file.current
    if not name:
        raise NotConfigured(with_next("No context is used.", "roost context list"))
    one = file.named(name)
    value = {"name": name, "current": name == file.current, **_shown(one)}
    facts = [*value.items(), ("file", str(file.path))]
    facts = [(key, "kept" if key == "token" and shown else shown) for key, shown in facts]
    table = Table(_FACTS, [list(fact) for fact in facts])
    print_output(Output(table, value, Facts(facts), names=[name]), output)


def _shown(context: ServerContext) -> dict[str, Any]:
    url = None if context.url is None else without_user_info(context.url)
    return context.shown() | {"url": url}


def _server(context: ServerContext) -> str:
    if context.url is not None:
        return without_user_info(context.url)
    return f"the cloud {context.cloud}"
