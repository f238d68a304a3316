"""Drawings of trees as text, which tests compare. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from roost.client.provider_tree import ProviderTree
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.owner_names import is_owner_trait

_WIDTH = 100
_INDENT = "    "


def drawing(tree: ProviderTree | Declaration) -> str:
    """A line for each provider, below its parent: its name, inventories, then `:` and traits.

    The drawing of a provider tree has siblings and inventories by name, and leaves out uuids,
    aggregates and the marks of owners.
    """
    declaration = tree if isinstance(tree, Declaration) else _declaration_of(tree)
    return "".join(f"{line}\n" for line in _lines(declaration, None, ""))


def _declaration_of(tree: ProviderTree) -> Declaration:
    found = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
    names = {provider.uuid: provider.name for provider in found}
    return Declaration(
        tuple(
            DeclaredProvider(
                provider.name,
                parent=None if provider.parent_uuid is None else names[provider.parent_uuid],
                inventories=dict(sorted(provider.inventory.items())),
                traits=frozenset(name for name in provider.traits if not is_owner_trait(name)),
            )
            for provider in sorted(found, key=lambda provider: provider.name)
        )
    )


def _lines(declaration: Declaration, parent: str | None, indent: str) -> Iterator[str]:
    for provider in declaration.providers:
        if provider.parent != parent:
            continue
        inventories = ", ".join(
            f"{resource_class} {_inventory(fields)}"
            for resource_class, fields in provider.inventories.items()
        )
        traits = " ".join(sorted(provider.traits))
        yield f"{indent}{provider.name}  {inventories}".rstrip()
        mark = f"{indent}: "
        yield from wrap(traits, _WIDTH, initial_indent=mark, subsequent_indent=mark)
        yield from _lines(declaration, provider.name, indent + _INDENT)


def _inventory(fields: Mapping[str, Any]) -> str:
    reserved = f" reserved {fields['reserved']}" if fields.get("reserved") else ""
    given = fields.get("allocation_ratio", 1)
    ratio = f" ratio {given}" if given != 1 else ""
    return f"{fields['total']}{reserved}{ratio}"
