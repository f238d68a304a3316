"""The command `roost provider show`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from roost.cli.bars import ink_for, usage_bar
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import (
    Facts,
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
)
from roost.cli.parameters import WORD
from roost.cli.terminal import output_console, plain
from roost.cli.watching import present, watch_option
from roost.client.cloud_reader import CloudProvider, CloudReader, Facet
from roost.client.lookup import find_provider
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.model.text import whole_number

_COLUMNS = columns_of(
    "RESOURCE CLASS, >USED, >CAPACITY, >TOTAL, >RESERVED, >ALLOCATION RATIO, >MIN UNIT?, "
    ">MAX UNIT?, >STEP SIZE?"
)
_FIELDS = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")


@dataclass(frozen=True, slots=True)
class _Shown:
    """All that the server has about one provider."""

    provider: CloudProvider
    tree: list[ProviderBody]

    @property
    def parent(self) -> dict[str, Any] | None:
        """The parent of the provider."""
        return self._reference(self.provider.body["parent_provider_uuid"])

    @property
    def root(self) -> dict[str, Any] | None:
        """The root of its tree."""
        return self._reference(self.provider.body["root_provider_uuid"])

    @property
    def children(self) -> list[dict[str, Any]]:
        """Its children by name."""
        below = [
            one for one in self.tree if one["parent_provider_uuid"] == self.provider.body["uuid"]
        ]
        return [
            {"uuid": one["uuid"], "name": one["name"]}
            for one in sorted(below, key=lambda one: one["name"])
        ]

    def _reference(self, uuid: str | None) -> dict[str, Any] | None:
        found = [{"uuid": uuid, "name": one["name"]} for one in self.tree if one["uuid"] == uuid]
        return found[0] if found else None


@click.command(
    short_help="Show one provider with all that it has.",
    epilog="""\b
Examples:
  roost provider show compute-1
  roost provider show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --json
  roost provider show compute-1 --watch 5
""",
)
@click.argument("name", type=WORD, metavar="NAME_OR_UUID", shell_complete=complete_providers)
@output_options
@watch_option
@connection_options
def show(
    *, connection: ConnectionSettings, name: str, output: OutputForm, watch: float | None
) -> None:
    """Show a provider: inventories and usage, traits, aggregates, and its place in its tree.

    CSV has a line for each inventory.
    """
    with connection.open() as transport:
        server = Administration(transport)
        present(lambda: _output(_read(server, name)), output, watch)


def _read(server: Administration, name: str) -> _Shown:
    body = find_provider(server, name)
    provider = CloudReader(server).provider(body, list(Facet))
    return _Shown(provider, server.tree(provider.uuid))


def _output(shown: _Shown) -> Output:
    table = Table(
        _COLUMNS, [_row(shown.provider, name) for name in sorted(shown.provider.inventories)]
    )
    return Output(table, _as_json(shown), _drawing(shown, table))


def _row(provider: CloudProvider, name: str) -> list[Any]:
    fields = provider.inventories[name]
    head = [name, provider.usages.get(name, 0), int(provider.inventory(name).capacity)]
    return [*head, *(fields.get(field) for field in _FIELDS)]


def _as_json(shown: _Shown) -> dict[str, Any]:
    provider = shown.provider
    return {
        "name": provider.body["name"],
        "uuid": provider.body["uuid"],
        "generation": provider.body["generation"],
        "parent": shown.parent,
        "root": shown.root,
        "children": shown.children,
        "inventories": {
            name: {
                **{field: fields.get(field) for field in _FIELDS},
                "capacity": int(provider.inventory(name).capacity),
                "used": provider.usages.get(name, 0),
            }
            for name, fields in sorted(provider.inventories.items())
        },
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
        "consumers": len(provider.allocations),
    }


def _drawing(shown: _Shown, table: Table) -> RenderableType:
    provider, parent, root = shown.provider, shown.parent, shown.root
    facts = Facts(
        [
            ("name", provider.body["name"]),
            ("uuid", provider.body["uuid"]),
            ("generation", provider.body["generation"]),
            ("parent", parent["name"] if parent else None),
            ("root", root["name"] if root else None),
            ("children", [child["name"] for child in shown.children]),
            ("traits", sorted(provider.traits)),
            ("aggregates", sorted(provider.aggregates)),
            ("consumers", len(provider.allocations)),
            *([] if provider.inventories else [("inventories", None)]),
        ]
    )
    return Group(facts, Text(), table, Text(), *_bars(provider)) if provider.inventories else facts


def _bars(provider: CloudProvider) -> list[Text]:
    ink = ink_for(output_console())
    width = max(map(len, provider.inventories))
    bars = []
    for name in sorted(provider.inventories):
        used, capacity = provider.usages.get(name, 0), provider.inventory(name).capacity
        line = plain(f"{name:{width}}  ")
        line.append_text(usage_bar(used, capacity, ink))
        bars.append(line.append(f"  {used} of {whole_number(capacity)}"))
    return bars
