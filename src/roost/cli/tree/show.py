"""The command `roost tree show`, which draws trees with their usage."""

from __future__ import annotations

import json

import click
from rich.console import Console

from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.tree.drawing import draw
from roost.client.inspection import find_provider, inspect_tree
from roost.client.placement import Placement

TREES_SHOWN = 10


@click.command(
    short_help="Draw trees with their usage.",
    epilog="""\b
Examples:
  roost tree show
  roost tree show compute-1 --details
  roost tree show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --json
""",
)
@click.argument("names", metavar="[NAME_OR_UUID]...", nargs=-1)
@click.option("--details", is_flag=True, help="Spell out all traits and aggregates.")
@click.option(
    "--limit",
    metavar="NUMBER",
    type=click.IntRange(0),
    default=TREES_SHOWN,
    show_default=True,
    help="How many trees to draw without names; 0 for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a list of nested trees.")
@connection_options
def show(
    *,
    connection: ConnectionSettings,
    names: tuple[str, ...],
    details: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Draw the whole trees of these providers; without names, all trees.

    A bar shows the used part of the capacity of each inventory. The capacity is
    (total - reserved) x allocation ratio.
    """
    with connection.open() as transport:
        placement = Placement(transport)
        roots, hidden = _roots(placement, names, limit)
        if as_json:
            found = [inspect_tree(placement, root).as_json() for root in roots]
            click.echo(json.dumps(found, indent=2))
        else:
            console = Console(highlight=False)
            for root in roots:
                draw(inspect_tree(placement, root), console, details=details)
    if hidden:
        click.echo(f"... and {hidden} more trees: name some, or --limit 0", err=True)
    elif not roots:
        click.echo(
            "There are no providers yet. `roost agent --driver linux` reports this host.", err=True
        )


def _roots(placement: Placement, names: tuple[str, ...], limit: int) -> tuple[list[str], int]:
    """The roots of the trees to show, and the number of trees beyond the limit."""
    if names:
        found = [find_provider(placement, name)["root_provider_uuid"] for name in names]
        return list(dict.fromkeys(found)), 0
    roots = sorted(placement.roots(), key=lambda provider: provider["name"])
    shown = roots[: limit or None]
    return [provider["uuid"] for provider in shown], len(roots) - len(shown)
