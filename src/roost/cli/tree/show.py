"""The command `roost tree show`, which draws trees with their usage; also `roost provider tree`."""

from __future__ import annotations

import click
from rich.console import Group

from roost.cli.bars import progress_bar
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options
from roost.cli.parameters import WORD
from roost.cli.tree.drawing import TreeDrawing
from roost.cli.watching import present, watch_option
from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.inspection import InspectedTree, declarations_of, inspect_tree, owners_of
from roost.client.lookup import find_provider
from roost.client.placement import Placement
from roost.client.tree_file import render_tree_file
from roost.model.inventory import Inventory

TREES_SHOWN = 10

_COLUMNS = columns_of(
    "TREE, PROVIDER, UUID, RESOURCE CLASS, >USED, >CAPACITY, >TOTAL, >RESERVED, "
    ">ALLOCATION RATIO, TRAITS, AGGREGATES, OWNERS"
)


def drawing_command(name: str) -> click.Command:
    """The command that draws trees, under this name."""

    @click.command(
        name.rsplit(maxsplit=1)[-1],
        short_help="Draw trees with their usage.",
        epilog=f"""\b
Examples:
  roost {name}
  roost {name} compute-1 --details
  roost {name} compute-1 --watch
  roost {name} 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --json
""",
    )
    @click.argument(
        "names", type=WORD, metavar="[NAME_OR_UUID]...", nargs=-1, shell_complete=complete_providers
    )
    @click.option("--details", is_flag=True, help="Spell out all traits and aggregates.")
    @click.option(
        "--limit",
        metavar="NUMBER",
        type=click.IntRange(0),
        default=TREES_SHOWN,
        show_default=True,
        help="How many trees to draw without names; 0 for all.",
    )
    @output_options
    @watch_option
    @connection_options
    def draw_trees(
        *,
        connection: ConnectionSettings,
        names: tuple[str, ...],
        details: bool,
        limit: int,
        output: OutputForm,
        watch: float | None,
    ) -> None:
        """Draw the whole trees of these providers; without names, all trees.

        A bar shows the used part of the capacity of each inventory. The capacity is
        (total - reserved) x allocation ratio. JSON and YAML nest children in their parents; CSV
        has a line for each inventory.
        """
        with connection.open() as transport:
            reading = _Reading(Placement(transport), names, limit)
            present(lambda: _output(reading.trees(), details=details), output, watch)
        reading.tell_what_is_not_shown()

    return draw_trees


show = drawing_command("tree show")


class _Reading:
    """Reads the trees that the operator named, or the first ones of all."""

    def __init__(self, placement: Placement, names: tuple[str, ...], limit: int) -> None:
        self._placement = placement
        self._names = names
        self._limit = limit
        self._hidden = 0
        self._is_empty = True

    def trees(self) -> list[InspectedTree]:
        """The trees as they are now."""
        roots, self._hidden = _roots(self._placement, self._names, self._limit)
        self._is_empty = not roots
        return [inspect_tree(self._placement, root) for root in roots]

    def tell_what_is_not_shown(self) -> None:
        """Print how many trees the last picture left out, or why it was empty."""
        if self._hidden:
            click.echo(f"... and {self._hidden} more trees: name some, or --limit 0", err=True)
        elif self._is_empty:
            click.echo(
                "There are no providers yet. `roost agent --driver linux` reports this host.",
                err=True,
            )


def _output(trees: list[InspectedTree], *, details: bool) -> Output:
    return Output(
        Table(_COLUMNS, [row for tree in trees for row in _rows(tree)]),
        [tree.as_json() for tree in trees],
        Group(*(TreeDrawing(tree, details) for tree in trees)),
    )


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


def _roots(placement: Placement, names: tuple[str, ...], limit: int) -> tuple[list[str], int]:
    """The roots of the trees to show, and the number of trees beyond the limit."""
    if names:
        found = [find_provider(placement, name)["root_provider_uuid"] for name in names]
        return list(dict.fromkeys(found)), 0
    roots = sorted(placement.roots(), key=lambda provider: provider["name"])
    shown = roots[: limit or None]
    return [provider["uuid"] for provider in shown], len(roots) - len(shown)


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
