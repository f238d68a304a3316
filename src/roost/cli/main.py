"""The command line: `roost serve`, `roost db ...`."""

from __future__ import annotations

import sys
from typing import NoReturn

import click
from rich.console import Console
from rich.markup import escape

import roost
from roost.cli.db import db
from roost.cli.serve import serve
from roost.configuration.settings import ConfigurationError
from roost.store.errors import Contention, DatabaseUnusable


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(roost.__version__, prog_name="roost")
def cli() -> None:
    """Roost, a placement service: where would this fit?

    \b
    Try it:
      roost serve --demo
      curl -H 'X-Auth-Token: admin' http://127.0.0.1:8778/resource_providers
    """


cli.add_command(serve)
cli.add_command(db)


def main() -> None:
    """Run the command; what an operator can mend is told in a sentence, not as a traceback."""
    try:
        cli()
    except (ConfigurationError, DatabaseUnusable) as error:
        _complain(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except Contention as error:
        _complain(f"{error}: {error.__cause__}. `roost db check` may tell why.")


def _complain(text: str) -> NoReturn:
    # What is in brackets is part of the sentence, not of its looks.
    console = Console(stderr=True)
    console.print(f"[bold red]roost:[/] {escape(text)}", highlight=False, soft_wrap=True)
    sys.exit(1)
