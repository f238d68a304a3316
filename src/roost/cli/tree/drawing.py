"""Trees in the terminal: a branch for each provider, a bar for each inventory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

from roost.client.inspecting import InspectedTree
from roost.client.provider_tree import ProviderData
from roost.model.inventory import Inventory

BAR_WIDTH = 20


def draw(inspected: InspectedTree, *, details: bool) -> Tree:
    """A tree with its usage; traits and aggregates are spelt out with `details`."""
    root = inspected.tree.data(inspected.root_uuid)
    drawn = Tree(_label(inspected, root, details), guide_style="dim")
    _grow(drawn, inspected, root, details)
    if inspected.sharing:
        shared = drawn.add(Text("shared with it", style="italic dim"))
        for uuid in inspected.sharing:
            shared.add(_label(inspected, inspected.tree.data(uuid), details))
    return drawn


def _grow(branch: Tree, inspected: InspectedTree, provider: ProviderData, details: bool) -> None:
    # Not recursive: a tree may be deeper than the stack.
    waiting = [(branch, provider)]
    while waiting:
        branch, provider = waiting.pop()
        for child in inspected.children(provider.uuid):
            waiting.append((branch.add(_label(inspected, child, details)), child))


def _label(inspected: InspectedTree, provider: ProviderData, details: bool) -> Text:
    label = Text(provider.name, style="bold")
    label.append(f"  {provider.uuid}", style="not bold dim")
    used = inspected.usages.get(provider.uuid, {})
    width = max(map(len, provider.inventory), default=0)
    for name, fields in sorted(provider.inventory.items()):
        label.append(f"\n{name:{width}}  ", style="not bold")
        label.append_text(_bar(name, fields, used.get(name, 0)))
    for noun, items in (("trait", provider.traits), ("aggregate", provider.aggregates)):
        if items:
            label.append(f"\n{_listed(noun, items, details)}", style="not bold dim")
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
