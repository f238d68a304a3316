"""The command `roost owner` and its subcommands."""

from __future__ import annotations

import click

from roost.cli.owner.list import list_owners
from roost.cli.owner.rebind import rebind
from roost.cli.owner.show import show


@click.group(short_help="Show what the owners of this machine have written, and where.")
def owner() -> None:
    """Show what the owners of this machine have written to servers, out of their records.

    `roost agent` and `roost tree apply` keep a record of what they put on a server. An owner
    removes what its record claims and its declaration no longer has. A record belongs to one
    server.

    \b
    Examples:
      roost owner list
      roost owner show agent --check
      roost owner rebind agent --from http://old:8778 --url http://new:8778
    """


owner.add_command(list_owners)
owner.add_command(rebind)
owner.add_command(show)
