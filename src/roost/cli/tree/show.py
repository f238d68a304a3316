"""`roost tree show`: drawn trees, with how much is used."""

from __future__ import annotations

import click
from rich.console import Console

from roost.cli.connection import Connection, connection_options
from roost.cli.json_text import json_text
from roost.cli.tree.drawing import draw
from roost.client.inspecting import find_provider, inspect_tree
from roost.client.reporting.placement import Placement

TREES_SHOWN = 10


@click.command(
    short_help="Draw trees, with how much of everything is used.",
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
    help="How many trees to draw if none are named; 0 for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a list of nested trees.")
@connection_options
def show(
    *, connection: Connection, names: tuple[str, ...], details: bool, limit: int, as_json: bool
) -> None:
    """Draw the whole trees that these providers are in; without names, all trees.

    Each inventory is drawn as a bar: how much of its capacity is used, where the capacity is
    (total - reserved) x allocation ratio.
    """
    with connection.open() as transport:
        placement = Placement(transport)
        roots, left_out = _roots(placement, names, limit)
        if as_json:
            found = [inspect_tree(placement, root).as_json() for root in roots]
            click.echo(json_text(found))
        else:
            console = Console(highlight=False)
            for root in roots:
                draw(inspect_tree(placement, root), console, details=details)
    if left_out:
        click.echo(f"... and {left_out} more trees: name some, or --limit 0", err=True)
    elif not roots:
        click.echo(
            "There are no providers yet. `roost agent --driver linux` reports this host.", err=True
        )


def _roots(placement: Placement, names: tuple[str, ...], limit: int) -> tuple[list[str], int]:
    """The roots of the trees to be shown, and how many are left out."""
    if names:
        found = [find_provider(placement, name)["root_provider_uuid"] for name in names]
        return list(dict.fromkeys(found)), 0
    roots = sorted(placement.roots(), key=lambda provider: provider["name"])
    shown = roots[: limit or None]
    return [provider["uuid"] for provider in shown], len(roots) - len(shown)
