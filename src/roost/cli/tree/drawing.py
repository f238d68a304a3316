"""Trees in the terminal: a branch for each provider, a bar for each inventory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from roost.client.inspecting import InspectedTree
from roost.client.provider_tree import ProviderData
from roost.model.inventory import Inventory
from roost.model.printable import printable

BAR_WIDTH = 20
# Where less is left beside the branches, the terminal may break the lines: no level is left out.
LABEL_WIDTH = 40
IN_ASCII = str.maketrans("├└│─█░", "+`|-#.")


@dataclass(slots=True)
class _Branch:
    label: Text
    children: list[_Branch] = field(default_factory=list)


def draw(inspected: InspectedTree, console: Console, *, details: bool) -> None:
    """Draw a tree with its usage; traits and aggregates are spelt out with `details`."""
    lines = _lines(_grown(inspected, details), console)
    if not console.encoding.startswith("utf"):
        lines = map(_in_ascii, lines)
    console.print(*lines, sep="\n", soft_wrap=True)


def _in_ascii(line: Text) -> Text:
    line.plain = line.plain.translate(IN_ASCII)
    return line


def _grown(inspected: InspectedTree, details: bool) -> _Branch:
    root = inspected.tree.data(inspected.root_uuid)
    trunk = _Branch(_label(inspected, root, details))
    waiting = [(trunk, root.uuid)]
    while waiting:
        branch, uuid = waiting.pop()
        for child in inspected.children(uuid):
            branch.children.append(_Branch(_label(inspected, child, details)))
            waiting.append((branch.children[-1], child.uuid))
    if inspected.sharing:
        lenders = map(inspected.tree.data, inspected.sharing)
        shared = [_Branch(_label(inspected, lender, details)) for lender in lenders]
        trunk.children.append(_Branch(Text("shared with it", style="italic dim"), shared))
    return trunk


def _lines(trunk: _Branch, console: Console) -> Iterator[Text]:
    """The lines of a tree, one branch below the other.

    Neither recursive nor a tree of the library: that one leaves out what does not fit.
    """
    waiting = [(trunk, "", "")]
    while waiting:
        branch, before_first, before_others = waiting.pop()
        before = before_first
        for line in _broken(branch.label, console, len(before_others)):
            yield Text.assemble((before, "dim"), line)
            before = before_others
        for number, child in enumerate(reversed(branch.children)):
            fork, side = ("├── ", "│   ") if number else ("└── ", "    ")
            waiting.append((child, before_others + fork, before_others + side))


def _broken(label: Text, console: Console, indentation: int) -> Iterator[Text]:
    """The lines of a label; of those that are too long for a terminal, the parts."""
    width = console.width - indentation
    for line in label.split("\n"):
        if console.is_terminal and width >= LABEL_WIDTH:
            yield from line.wrap(console, width)
        else:
            yield line


def _label(inspected: InspectedTree, provider: ProviderData, details: bool) -> Text:
    label = Text(printable(provider.name), style="bold")
    label.append(f"  {printable(provider.uuid)}", style="not bold dim")
    used = inspected.usages.get(provider.uuid, {})
    width = max((len(printable(name)) for name in provider.inventory), default=0)
    for name, fields in sorted(provider.inventory.items()):
        label.append(f"\n{printable(name):{width}}  ", style="not bold")
        label.append_text(_bar(name, fields, used.get(name, 0)))
    for noun, items in (("trait", provider.traits), ("aggregate", provider.aggregates)):
        if items:
            label.append(f"\n{printable(_listed(noun, items, details))}", style="not bold dim")
    return label


def _bar(name: str, fields: Mapping[str, Any], used: int) -> Text:
    capacity = Inventory(name, **fields).capacity
    # What has nothing to give is not full; it is full if something is taken all the same.
    share = min(1.0, used / capacity) if capacity > 0 else float(used > 0)
    filled = round(share * BAR_WIDTH)
    colour = "red" if share >= 0.9 else "yellow" if share >= 0.7 else "green"
    bar = Text("█" * filled, style=f"not bold {colour}")
    bar.append("░" * (BAR_WIDTH - filled), style="not bold dim")
    bar.append(f"  {used} of {_number(capacity)}{_remarks(fields)}", style="not bold")
    return bar


def _number(amount: float) -> str:
    """Whole numbers in full, others shortly."""
    return str(int(amount)) if amount == int(amount) else f"{amount:.2f}"


def _remarks(fields: Mapping[str, Any]) -> str:
    remarks = []
    if fields["reserved"]:
        remarks.append(f"{fields['reserved']} of {fields['total']} reserved")
    if fields["allocation_ratio"] != 1.0:
        remarks.append(f"allocation ratio {fields['allocation_ratio']:g}")
    return f" ({', '.join(remarks)})" if remarks else ""


def _listed(noun: str, items: set[str], details: bool) -> str:
    if details or len(items) <= 2:
        return f"{noun}{'s' if len(items) > 1 else ''} {', '.join(sorted(items))}"
    return f"{len(items)} {noun}s"
