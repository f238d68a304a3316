"""The command `roost tree` and its subcommands."""

from __future__ import annotations

import click

from roost.cli.shared.group import CommandGroup
from roost.cli.tree.apply import apply, diff
from roost.cli.tree.show import export, show


@click.group(cls=CommandGroup)
def tree() -> None:
    """Look at trees of providers, and declare them in files."""


tree.add_command(show)
tree.add_command(export)
tree.add_command(apply)
tree.add_command(diff)
