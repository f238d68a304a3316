"""Trees in the terminal: a branch for each provider, a bar for each inventory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from rich.tree import Tree

from roost.cli.shared.bars import Ink, ink_for, usage_bar
from roost.cli.shared.terminal import UNBROKEN_WIDTH, output_console
from roost.client.drivers.driver import declared_tree
from roost.client.provider_tree import ProviderData
from roost.client.reading.inspection import InspectedTree, owners_of
from roost.client.tree_file import render_tree_file
from roost.model.inventory import Inventory
from roost.model.text import plain_number, printable, with_separators
from roost.model.trees.declaration import Declaration
from roost.model.trees.owner_names import is_owner_trait

LABEL_WIDTH_MIN = 40
"""The columns that every label gets. A terminal breaks a line that is longer than itself."""

_GUIDE_WIDTH = 4
"""The columns that rich indents each level of a tree by."""


@dataclass(frozen=True, slots=True)
class TreeDrawing:
    """A tree with its usage; `details` spells out all traits and aggregates.

    The drawing has a width of its own: rich leaves out what does not fit into the console's. It
    leaves out the uuids in `unknown_uuids`: only a server knows them.
    """

    inspected: InspectedTree
    details: bool = False
    unknown_uuids: frozenset[str] = frozenset()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        painter = _Painter(self.inspected, ink_for(console), self.details, self.unknown_uuids)
        trunk, levels = painter.trunk()
        width = options.max_width if console.is_terminal else UNBROKEN_WIDTH
        width = max(width, (levels - 1) * _GUIDE_WIDTH + LABEL_WIDTH_MIN)
        yield from console.render(trunk, options.update(width=width))


@dataclass(frozen=True, slots=True)
class _Painter:
    inspected: InspectedTree
    ink: Ink
    details: bool
    unknown_uuids: frozenset[str]

    def trunk(self) -> tuple[Tree, int]:
        """The whole tree, with its sharing providers, and the number of its levels."""
        root = self.inspected.tree.data(self.inspected.root_uuid)
        trunk = Tree(self.label(root), guide_style="dim")
        levels = self.grow(trunk, root.uuid)
        if self.inspected.sharing:
            shared = trunk.add(Text("shared with it", style="italic dim"))
            for uuid in self.inspected.sharing:
                shared.add(self.label(self.inspected.tree.data(uuid)))
            levels = max(levels, 3)
        return trunk, levels

    def grow(self, branch: Tree, uuid: str) -> int:
        """Add the providers below one to its branch; the number of levels from it down."""
        below = [
            self.grow(branch.add(self.label(child)), child.uuid)
            for child in self.inspected.children(uuid)
        ]
        return 1 + max(below, default=0)

    def label(self, provider: ProviderData) -> Text:
        """The name and uuid of a provider, its bars, traits and aggregates."""
        label = Text(printable(provider.name), style="bold", overflow="fold")
        if provider.uuid not in self.unknown_uuids:
            label.append(f"  {printable(provider.uuid)}", style="not bold dim")
        used = self.inspected.usages.get(provider.uuid, {})
        width = max((len(printable(name)) for name in provider.inventory), default=0)
        for name, fields in sorted(provider.inventory.items()):
            label.append(f"\n{printable(name):{width}}  ", style="not bold")
            label.append_text(_bar(name, fields, used.get(name, 0), self.ink))
        owners = owners_of(provider)
        if owners:
            noun = "owner" if len(owners) == 1 else "owners"
            label.append(f"\n{noun} {printable(', '.join(owners))}", style="not bold")
        for noun, items in (("trait", self.traits(provider)), ("aggregate", provider.aggregates)):
            if items:
                listed = printable(_listed(noun, items, self.details))
                label.append(f"\n{listed}", style="not bold dim")
        return label

    def traits(self, provider: ProviderData) -> set[str]:
        """The traits to draw: without details, the line of the owner stands for its mark."""
        if self.details:
            return provider.traits
        return {trait for trait in provider.traits if not is_owner_trait(trait)}


def _bar(name: str, fields: Mapping[str, Any], used: int, ink: Ink) -> Text:
    capacity = Inventory(name, **fields).capacity
    bar = usage_bar(used, capacity, ink)
    amounts = f"{with_separators(used)} of {with_separators(capacity)}"
    bar.append(f"  {amounts}{_remarks(fields)}", style="not bold")
    return bar


def _remarks(fields: Mapping[str, Any]) -> str:
    remarks = []
    if fields["reserved"]:
        reserved, total = map(with_separators, (fields["reserved"], fields["total"]))
        remarks.append(f"{reserved} of {total} reserved")
    if fields["allocation_ratio"] != 1.0:
        remarks.append(f"allocation ratio {plain_number(fields['allocation_ratio'])}")
    return f" ({', '.join(remarks)})" if remarks else ""


def _listed(noun: str, items: set[str], details: bool) -> str:
    if details or len(items) <= 2:
        return f"{noun}{'s' if len(items) > 1 else ''} {', '.join(sorted(items))}"
    return f"{len(items)} {noun}s"


class DeclarationForm(StrEnum):
    """The forms of a declaration: a drawing, or a tree file in YAML or JSON."""

    DRAWING = "drawing"
    YAML = "yaml"
    JSON = "json"


def print_declaration(declaration: Declaration, form: DeclarationForm, owner: str | None) -> None:
    """Print a declaration; a tree file names the owner that would write it."""
    if form is not DeclarationForm.DRAWING:
        as_json = form is DeclarationForm.JSON
        click.echo(render_tree_file(declaration, owner, as_json=as_json), nl=False)
        return
    console = output_console()
    for root in declaration.roots:
        drawn = declared_tree(declaration, root)
        known = {provider.uuid for provider in declaration.providers}
        unknown = frozenset(uuid for uuid in drawn.tree.get_provider_uuids() if uuid not in known)
        console.print(TreeDrawing(drawn, details=True, unknown_uuids=unknown), crop=False)


def form_of(output: str | None, *, as_json: bool) -> DeclarationForm:
    """The form that `--output` and `--json` ask for."""
    if as_json and output not in (None, DeclarationForm.JSON):
        raise click.UsageError(f"--json and --output {output} contradict each other.")
    if as_json:
        return DeclarationForm.JSON
    return DeclarationForm(output or DeclarationForm.DRAWING)


form_option = click.option(
    "-o",
    "--output",
    type=click.Choice([form.value for form in DeclarationForm]),
    help="With --offline: a drawing, or a tree file in YAML or JSON. [default: drawing]",
)
