"""The command `roost tree export`, which prints trees as a file for `roost tree apply`."""

from __future__ import annotations

import click

from roost.cli.bars import progress_bar
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.parameters import WORD
from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.inspection import declarations_of
from roost.client.lookup import find_provider
from roost.client.placement import Placement
from roost.client.tree_file import render_tree_file


@click.command(
    short_help="Print trees as a file that `apply` takes.",
    epilog="""\b
Examples:
  roost tree export compute-1 > compute-1.yaml
  roost tree export --json > everything.json
""",
)
@click.argument(
    "names", type=WORD, metavar="[NAME_OR_UUID]...", nargs=-1, shell_complete=complete_providers
)
@click.option("--owner", metavar="NAME", help="Name this owner in the file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@connection_options
def export(
    *, connection: ConnectionSettings, names: tuple[str, ...], owner: str | None, as_json: bool
) -> None:
    """Print the whole trees of these providers; without names, all trees.

    The file is for `roost tree apply`, and does not contain the usage.
    """
    with connection.open() as transport:
        placement = Placement(transport)
        if names:
            found = [find_provider(placement, name)["root_provider_uuid"] for name in names]
            roots = list(dict.fromkeys(found))
        else:
            roots = [provider["uuid"] for provider in placement.roots()]
        providers: list[DeclaredProvider] = []
        with progress_bar("reading trees", transient=True) as advance:
            advance(len(roots), 0)
            for declaration in declarations_of(placement, roots):
                providers += declaration.providers
                advance(len(roots), 1)
    text = render_tree_file(Declaration(tuple(providers)), owner, as_json=as_json)
    # A tree file is UTF-8 even if the terminal has another encoding.
    click.echo(text.encode(), nl=False)
