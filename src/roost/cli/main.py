"""The command line: `roost serve`, `roost db ...`, `roost agent`, `roost tree ...`."""

from __future__ import annotations

import importlib
import io
import sys
from typing import NoReturn

import click
from rich.console import Console
from rich.text import Text

import roost
from roost.cli.terminal import plain
from roost.model.errors import OperatorError

COMMANDS = {
    "serve": "roost.cli.serve:serve",
    "db": "roost.cli.db:db",
    "tree": "roost.cli.tree:tree",
    "agent": "roost.cli.agent:agent",
}
"""Where each command is. A command is imported when it is asked for: a client does not need what
the server needs, and starts in a fraction of the time."""


class _Commands(click.Group):
    """The commands of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(roost.__version__, prog_name="roost")
def cli() -> None:
    """Roost, a placement service: where would this fit?

    \b
    Try it:
      roost serve --demo
      roost tree show
      roost agent --driver linux --once --dry-run
    """


def main() -> None:
    """Run the command; what an operator can mend is told in a sentence, not as a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where there is no letter for something, the rest is printed all the same.
        sys.stdout.reconfigure(errors="replace")
    try:
        cli()
    except OperatorError as error:
        _complain(error.explanation)
    except UnicodeEncodeError as error:
        # Python takes bytes that are not UTF-8 from the command line, but can send them nowhere.
        _complain(f"{error.object!r} is not UTF-8. Spell it in UTF-8.")
    except OSError as error:
        # A full disk behind standard output, for instance.
        _complain(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _complain(text: str) -> NoReturn:
    sentence = Text.assemble(("roost:", "bold red"), " ", plain(text))
    Console(stderr=True, highlight=False).print(sentence, soft_wrap=True)
    sys.exit(1)
