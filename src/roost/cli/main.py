"""The command line: the commands of the server, and those of a host."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click
import click.shell_completion

import roost
from roost.cli.completion import PROGRAM, VARIABLE, use_completion
from roost.cli.terminal import EXIT_STATUS, Interrupted, complain, noticing_interruption
from roost.model.errors import OperatorError
from roost.model.text import printable

COMMANDS = {
    "serve": "roost.cli.serve:serve",
    "db": "roost.cli.db:db",
    "check-config": "roost.cli.check_config:check_config",
    "policy": "roost.cli.policy:policy",
    "import": "roost.cli.import_command:import_",
    "token": "roost.cli.token:token",
    "tree": "roost.cli.tree:tree",
    "agent": "roost.cli.agent:agent",
    "driver": "roost.cli.driver:driver",
    "owner": "roost.cli.owner:owner",
    "top": "roost.cli.top:top",
    "candidates": "roost.cli.ask.candidates:candidates",
    "explain": "roost.cli.ask.explain:explain",
    "why": "roost.cli.ask.explain:why",
    "capacity": "roost.cli.ask.capacity:capacity",
    "whatif": "roost.cli.ask.whatif:whatif",
    "fragmentation": "roost.cli.ask.fragmentation:fragmentation",
    "resilience": "roost.cli.ask.resilience:resilience",
    "provider": "roost.cli.provider:provider",
    "consumer": "roost.cli.consumer:consumer",
    "usage": "roost.cli.usage:usage",
    "trait": "roost.cli.trait:trait",
    "class": "roost.cli.resource_class:resource_class",
    "doctor": "roost.cli.doctor:doctor",
    "completion": "roost.cli.completion:completion",
    "man": "roost.cli.man:man",
}
"""Where each command is. The group imports a command when a caller names it. So the client's
commands start fast, and run where the packages of the server are not installed."""


class _Commands(click.Group):
    """The commands of the table. One whose packages are not installed says what to install."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "roost":
                raise
            return _not_installed(cmd_name, error.name)
        return command

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
        short_help="Not installed: pip install 'roost[server]'",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
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
        _refuse(error.explanation, EXIT_STATUS)
    except OperatorError as error:
        _refuse(error.explanation)
    except UnicodeEncodeError as error:
        # Python takes arguments that are not UTF-8, but cannot encode them for a server.
        _refuse(f"{error.object!r} is not UTF-8. Spell it in UTF-8.")
    except OSError as error:
        _refuse(_of_file(error))
    except KeyboardInterrupt:
        sys.exit(EXIT_STATUS)


def _of_file(error: OSError) -> str:
    """What is wrong with a file, a directory or standard output.

    >>> _of_file(FileNotFoundError(2, "No such file or directory", "cloud.jsonl"))
    'cloud.jsonl cannot be used: No such file or directory. Check the name and the rights.'
    """
    if error.filename is None or error.strerror is None:
        # A full disk behind standard output, for instance.
        return str(error)
    return f"{error.filename} cannot be used: {error.strerror}. Check the name and the rights."


def _refuse(text: str, status: int = 1) -> NoReturn:
    complain(text)
    sys.exit(status)
