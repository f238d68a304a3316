"""The commands that draw trees with their usage, and that export them as files."""

from __future__ import annotations

import click
from rich.console import Group

from roost.cli.shared.bars import progress_bar
from roost.cli.shared.command import command, server_command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import server_options
from roost.cli.shared.output import Output, Table, columns_of
from roost.cli.tree.drawing import TreeDrawing
from roost.client.placement import Placement
from roost.client.placement.placement import Administration
from roost.client.reading.inspection import InspectedTree, declarations_of, inspect_tree, owners_of
from roost.client.reading.lookup import find_provider
from roost.client.tree_file import render_tree_file
from roost.model.inventory import Inventory
from roost.model.trees.declaration import Declaration, DeclaredProvider

TREES_SHOWN = 10

_COLUMNS = columns_of(
    "TREE, PROVIDER, UUID, RESOURCE CLASS, >USED, >CAPACITY, >TOTAL, >RESERVED, "
    ">ALLOCATION RATIO, TRAITS, AGGREGATES, OWNERS"
)
_names_argument = click.argument("names", type=PROVIDER, nargs=-1)


def drawing_command(name: str) -> click.Command:
    """The command that draws trees, under this name."""
    text = f"""Draw the whole trees of these providers; without names, all trees.

    A bar shows the used part of the capacity of each inventory. The capacity is
    (total - reserved) x allocation ratio. JSON and YAML nest children in their parents; CSV
    has a line for each inventory.

    \b
    Examples:
      roost {name}
      roost {name} compute-1 --details
      roost {name} compute-1 --watch
      roost {name} 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --json
    """

    @server_command(
        name.rpartition(" ")[2], "Draw trees with their usage.", text=text, watches=True
    )
    @_names_argument
    @click.option("--details", is_flag=True, help="Spell out all traits and aggregates.")
    @click.option(
        "--limit",
        metavar="NUMBER",
        type=click.IntRange(0),
        default=TREES_SHOWN,
        show_default=True,
        help="How many trees to draw without names; 0 for all.",
    )
    def draw_trees(
        *, server: Administration, names: tuple[str, ...], details: bool, limit: int
    ) -> Output:
        roots = _roots(server, names, by_name=True)
        shown = roots if names else roots[: limit or None]
        trees = [inspect_tree(server, root) for root in shown]
        notes = []
        if not roots:
            notes = ["There are no providers yet. `roost agent --driver linux` reports this host."]
        elif len(shown) < len(roots):
            hidden = len(roots) - len(shown)
            notes = [f"... and {hidden} more trees: name some, or --limit 0"]
        return Output(
            Table(_COLUMNS, [row for tree in trees for row in _rows(tree)]),
            [tree.as_json() for tree in trees],
            Group(*(TreeDrawing(tree, details) for tree in trees)),
            notes=notes,
        )

    return draw_trees


show = drawing_command("tree show")


def _roots(placement: Placement, names: tuple[str, ...], *, by_name: bool = False) -> list[str]:
    """The roots of the trees of these providers; without names, of all trees."""
    if names:
        found = (find_provider(placement, name)["root_provider_uuid"] for name in names)
        return list(dict.fromkeys(found))
    roots = placement.roots()
    if by_name:
        roots.sort(key=lambda provider: str(provider["name"]))
    return [provider["uuid"] for provider in roots]


def _rows(inspected: InspectedTree) -> list[list[object]]:
    """A row for each inventory; one without amounts for a provider without inventory."""
    root = inspected.tree.data(inspected.root_uuid)
    rows: list[list[object]] = []
    for provider in inspected.members():
        head: list[object] = [root.name, provider.name, provider.uuid]
        tail: list[object] = [sorted(provider.traits), sorted(provider.aggregates)]
        tail.append(owners_of(provider))
        used = inspected.usages.get(provider.uuid, {})
        for name, fields in sorted(provider.inventory.items()):
            capacity = Inventory(name, **fields).capacity
            shown = (fields["total"], fields["reserved"], fields["allocation_ratio"])
            rows.append([*head, name, used.get(name, 0), int(capacity), *shown, *tail])
        if not provider.inventory:
            rows.append([*head, *[None] * 6, *tail])
    return rows


@command("export", "Print trees as a file that `apply` takes.")
@_names_argument
@click.option("--owner", metavar="NAME", help="Name this owner in the file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@server_options
def export(
    *, server: Administration, names: tuple[str, ...], owner: str | None, as_json: bool
) -> None:
    """Print the whole trees of these providers; without names, all trees.

    The file is for `roost tree apply`, and does not contain the usage.

    \b
    Examples:
      roost tree export compute-1 > compute-1.yaml
      roost tree export --json > everything.json
    """
    roots = _roots(server, names)
    providers: list[DeclaredProvider] = []
    with progress_bar("reading trees", transient=True) as advance:
        advance(len(roots), 0)
        for declaration in declarations_of(server, roots):
            providers += declaration.providers
            advance(len(roots), 1)
    text = render_tree_file(Declaration(tuple(providers)), owner, as_json=as_json)
    # A tree file is UTF-8 even if the terminal has another encoding.
    click.echo(text.encode(), nl=False)
