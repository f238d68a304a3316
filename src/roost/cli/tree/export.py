"""`roost tree export`: trees as a file that `roost tree apply` takes."""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import track

from roost.cli.connection import Connection, connection_options
from roost.client.declaration import Declaration
from roost.client.inspecting import declaration_of, find_provider
from roost.client.reporting.placement import Placement
from roost.client.tree_file import render_tree_file


@click.command(
    short_help="Print trees as a file that `apply` takes.",
    epilog="""\b
Examples:
  roost tree export compute-1 > compute-1.yaml
  roost tree export --json > everything.json
""",
)
@click.argument("names", metavar="[NAME_OR_UUID]...", nargs=-1)
@click.option("--owner", metavar="NAME", help="Name this owner in the file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@connection_options
def export(
    *, connection: Connection, names: tuple[str, ...], owner: str | None, as_json: bool
) -> None:
    """Print the whole trees that these providers are in; without names, all trees.

    `roost tree apply` takes what is printed. How much is in use is not part of it.
    """
    with connection.open() as transport:
        placement = Placement(transport)
        if names:
            found = [find_provider(placement, name)["root_provider_uuid"] for name in names]
            roots = list(dict.fromkeys(found))
        else:
            roots = [provider["uuid"] for provider in placement.roots()]
        console = Console(stderr=True)
        providers = [
            provider
            for root in track(
                roots, "Reading trees", console=console, disable=not console.is_terminal
            )
            for provider in declaration_of(placement, root).providers
        ]
    text = render_tree_file(Declaration(tuple(providers)), owner, as_json=as_json)
    # Tree files are UTF-8, whatever the terminal is.
    click.echo(text.encode(), nl=False)
