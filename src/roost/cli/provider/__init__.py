"""The command `roost provider` and its subcommands."""

from __future__ import annotations

import click

from roost.cli.provider.change import delete, set_provider
from roost.cli.provider.show import list_providers, show
from roost.cli.tree.show import drawing_command


@click.group()
def provider() -> None:
    """List, show, change and delete resource providers, by name or uuid.

    \b
    Examples:
      roost provider list --require HW_CPU_X86_AVX2 --resources VCPU=4
      roost provider tree compute-1
      roost provider set compute-1 --inventory VCPU:reserved=2 --dry-run
    """


for command in (list_providers, show, drawing_command("provider tree"), set_provider, delete):
    provider.add_command(command)
