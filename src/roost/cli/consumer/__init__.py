"""The command `roost consumer` and its subcommands."""

from __future__ import annotations

import click

from roost.cli.consumer.list import list_consumers
from roost.cli.consumer.show import show


@click.group(short_help="List and show consumers of resources.")
def consumer() -> None:
    """List consumers, and show what one of them holds.

    \b
    Examples:
      roost consumer list --provider compute-1
      roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
    """


consumer.add_command(list_consumers)
consumer.add_command(show)
