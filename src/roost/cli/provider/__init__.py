"""The command `roost provider` and its subcommands."""

from __future__ import annotations

import click

from roost.cli.provider.delete import delete
from roost.cli.provider.list import list_providers
from roost.cli.provider.set import set_provider
from roost.cli.provider.show import show
from roost.cli.tree.show import drawing_command


@click.group(short_help="List, show, change and delete providers.")
def provider() -> None:
    """List, show, change and delete resource providers, by name or uuid.

    \b
    Examples:
      roost provider list --require HW_CPU_X86_AVX2 --resources VCPU=4
      roost provider tree compute-1
      roost provider set compute-1 --inventory VCPU:reserved=2 --dry-run
    """


provider.add_command(list_providers)
provider.add_command(show)
provider.add_command(drawing_command("provider tree"))
provider.add_command(set_provider)
provider.add_command(delete)
