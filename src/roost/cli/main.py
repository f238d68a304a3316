"""The command line: the commands of the server, and those of a host."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NoReturn

import click
import click.shell_completion

import roost
from roost.cli.completion import PROGRAM, VARIABLE, use_completion
from roost.cli.shared.exit_status import AnsweredNo, ExitStatus, WrongUsage, status_lines
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.terminal import Interrupted, complain, noticing_interruption
from roost.model.errors import OperatorError
from roost.model.text import printable

_COMMANDS_OF_SERVER = {
    "serve": ("serve:serve", "Serve the Placement API."),
    "db": ("server.db:db", "Look after the database: its schema and what is in it."),
    "check-config": (
        "check_config:check_config",
        "Print the configuration in force, and its faults.",
    ),
    "policy": ("server.policy:policy", "Show the rules of the policy."),
    "import": ("server.moving:import_", "Copy a live placement server into a database."),
    "token": ("server.token:token", "Manage the tokens of `auth_strategy = tokens`."),
}
_COMMANDS_OF_HOST = {
    "tree": ("tree:tree", "Look at trees of providers, and declare them in files."),
    "agent": ("agent:agent", "Describe this host to a server, and keep that true."),
    "driver": ("driver:driver", "List the drivers of this host, and their options."),
    "owner": ("owner:owner", "Show what owners of this machine have written, and where."),
    "context": ("context:context", "Give servers names, and choose one of them."),
    "top": ("cloud.top:top", "Show what a server does, live."),
    "ui": ("ui.command:ui", "Serve the pages in front of any placement server."),
    "candidates": ("ask.candidates:candidates", "Show where a request fits."),
    "explain": ("ask.explain:explain", "Say why a request has candidates or none."),
    "why": ("ask.explain:why", "Say why a request fits on one host or not."),
    "capacity": ("ask.capacity:capacity", "Count how many more of a request fit."),
    "whatif": ("ask.whatif:whatif", "Ask a question before and after imagined changes."),
    "fragmentation": (
        "ask.capacity:fragmentation",
        "Compare what is free with what requests can use.",
    ),
    "resilience": ("ask.capacity:resilience", "Find roots whose loss the rest could not absorb."),
    "provider": ("cloud.provider:provider", "List, show, create, change and delete providers."),
    "consumer": ("cloud.consumer:consumer", "List and show consumers of resources."),
    "claim": ("cloud.claim:claim", "Claim what a request asks for."),
    "move": ("cloud.claim:move", "Move what a consumer holds to other providers."),
    "release": ("cloud.claim:release", "Let consumers hold nothing."),
    "usage": ("cloud.consumer:usage", "Show what is used of each resource class."),
    "aggregate": ("cloud.aggregate:aggregate", "List, show and change groups of providers."),
    "trait": ("cloud.vocabulary:trait", "List, show, create and delete traits."),
    "class": ("cloud.vocabulary:resource_class", "List, show, create and delete resource classes."),
    "doctor": ("cloud.doctor:doctor", "Look for what is wrong with a server."),
    "changes": ("cloud.changes:changes", "Tell what was written, and by which request."),
    "audit": ("cloud.audit:audit", "Find orphans and other things that are wrong."),
    "metrics-queries": (
        "cloud.metrics_queries:metrics_queries",
        "Write the queries of /metrics, from Nova's flavours.",
    ),
    "completion": ("completion:completion", "Print the completion script of a shell."),
    "help": ("help:show_help", "Explain a word, or show the help of a command."),
    "man": ("man:man", "Show or write manual pages."),
}
COMMANDS = _COMMANDS_OF_SERVER | _COMMANDS_OF_HOST
"""Where each command is, and its line in the help. The group imports a command when a caller names
it. So help and host commands start fast, and run without the packages of the server."""

SERVER_PACKAGES = ("alembic", "httptools", "jsonschema_rs", "oslo_policy", "sqlalchemy")
"""Packages that only a server needs. The help looks for them without an import."""


_NOT_INSTALLED = "Not installed: pip install 'roost[server]'"


class _Commands(CommandGroup):
    """The commands of the table. One whose packages are not installed says what to install."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place, summary = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(f"roost.cli.{module}"), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "roost":
                raise
            return _not_installed(cmd_name, error.name)
        command.short_help = summary
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lines of the table: the commands themselves would import the server."""
        missing = dict.fromkeys(() if _has_server() else _COMMANDS_OF_SERVER, _NOT_INSTALLED)
        with formatter.section("Commands"):
            lines = [(name, missing.get(name, line)) for name, (_, line) in COMMANDS.items()]
            formatter.write_dl(lines)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem[Any]]:
        """The names of the commands; their help would import all of them."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        items = [click.shell_completion.CompletionItem[Any](name) for name in names]
        return items + super(click.Group, self).shell_complete(ctx, incomplete)

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        with _printable_usage():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with noticing_interruption(), _printable_usage():
            return super().invoke(ctx)


@contextmanager
def _printable_usage() -> Iterator[None]:
    """Let an error about an option or argument spell out the control characters in it."""
    try:
        yield
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]  # click calls it final
        raise


def _has_server() -> bool:
    """Whether the packages of the server are installed."""
    try:
        return None not in map(find_spec, SERVER_PACKAGES)
    except ModuleNotFoundError:
        return False


def _not_installed(command: str, package: str) -> click.Command:
    """A command that takes any arguments and says what to install."""

    def refuse() -> NoReturn:
        raise OperatorError(
            f"`roost {command}` is a part of the server, and {package} is not installed. "
            "Install the server with: pip install 'roost[server]'"
        )

    return click.Command(
        command,
        callback=refuse,
        short_help=_NOT_INSTALLED,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nExit status of every command:\n{status_lines()}",
)
@click.version_option(roost.__version__, prog_name="roost")
def cli() -> None:
    """Roost, a placement service: where would this fit?

    \b
    Try it:
      roost serve --demo
      roost explain VCPU=4 MEMORY_MB=8192 --require HW_CPU_X86_AVX2
      roost provider tree demo-host-026
      roost doctor
      roost top
      roost agent --driver linux --once --dry-run
    """


def main() -> None:
    """Run the command. An error that an operator can mend becomes a sentence, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks a character shows a question mark instead of ending the output.
        sys.stdout.reconfigure(errors="replace")
    if VARIABLE in os.environ:
        use_completion()
    try:
        cli(prog_name=PROGRAM, complete_var=VARIABLE)
    except Interrupted as error:
        _refuse(error.explanation, ExitStatus.INTERRUPTED)
    except WrongUsage as error:
        _refuse(error.explanation, ExitStatus.USAGE)
    except AnsweredNo as error:
        _refuse(error.explanation, ExitStatus.NO)
    except OperatorError as error:
        _refuse(error.explanation)
    except UnicodeEncodeError as error:
        # Python takes arguments that are not UTF-8, but cannot encode them for a server.
        _refuse(f"{error.object!r} is not UTF-8. Spell it in UTF-8.")
    except OSError as error:
        _refuse(_of_file(error))
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)


def _of_file(error: OSError) -> str:
    """What is wrong with a file, a directory or standard output.

    >>> _of_file(FileNotFoundError(2, "No such file or directory", "cloud.jsonl"))
    'cloud.jsonl cannot be used: No such file or directory. Check the name and the rights.'
    """
    if error.filename is None or error.strerror is None:
        # A full disk behind standard output, for instance.
        return str(error)
    return f"{error.filename} cannot be used: {error.strerror}. Check the name and the rights."


def _refuse(text: str, status: ExitStatus = ExitStatus.FAILED) -> NoReturn:
    complain(text)
    sys.exit(status)
