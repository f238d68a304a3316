"""The command `roost provider`, and those of its subcommands that only read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from roost.cli.cloud.adoption import adopt_provider, merge_provider, rename_provider
from roost.cli.cloud.provider_changes import create_provider, delete, set_provider
from roost.cli.shared.bars import ink_for, usage_bar
from roost.cli.shared.command import server_command
from roost.cli.shared.completers import PROVIDER, RESOURCE_CLASS, TRAIT
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import Facts, Output, Table, columns_of
from roost.cli.shared.parameters import WORD, CommandDecorator, GivenWord, gathering
from roost.cli.shared.terminal import echo_line, output_console, plain
from roost.cli.tree.show import drawing_command
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.client.reading.cloud_provider import CloudProvider
from roost.client.reading.cloud_reader import CloudReader, Facet
from roost.client.reading.lookup import demand_classes, demand_traits, find_provider, find_uuid
from roost.model.text import matches, with_next, with_separators

_LISTED = columns_of("NAME, UUID, >GENERATION?, PARENT?, ROOT?")
_AMOUNT = re.compile(r"(?P<name>[A-Z0-9_]+)[=:](?P<amount>[0-9]+)")
_INVENTORIES = columns_of(
    "RESOURCE CLASS, >USED, >CAPACITY, >TOTAL, >RESERVED, >ALLOCATION RATIO, >MIN UNIT?, "
    ">MAX UNIT?, >STEP SIZE?"
)
_FIELDS = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")


@dataclass(frozen=True, slots=True)
class _Filters:
    """The filters of the command line."""

    name: str | None
    member_of: tuple[str, ...]
    require: tuple[str, ...]
    forbid: tuple[str, ...]
    resources: tuple[str, ...]
    in_tree: str | None
    roots: bool

    @property
    def pattern(self) -> str | None:
        """A name with wildcards, which servers do not understand."""
        return self.name if self.name and re.search(r"[*?]", self.name) else None


def _filter(option: str, metavar: str, text: str, type: GivenWord = WORD) -> CommandDecorator:
    """A filter that may be repeated."""
    return click.option(
        option, type=type, metavar=metavar, multiple=True, help=f"{text} May be repeated."
    )


@server_command("list", "List providers, all or those that match.", watches=True)
@gathering(
    "wanted",
    _Filters,
    click.option(
        "--name",
        type=WORD,
        metavar="NAME",
        help="Only this name; * and ? stand for any characters.",
    ),
    _filter(
        "--member-of",
        "UUID[,UUID]",
        "Only members of one of these aggregates; !UUID for those outside.",
    ),
    _filter(
        "--require",
        "TRAIT[,TRAIT]",
        "Only providers with all of these traits; in:A,B for one of them.",
        type=TRAIT,
    ),
    _filter("--forbid", "TRAIT[,TRAIT]", "Only providers with none of these traits.", type=TRAIT),
    _filter(
        "--resources",
        "CLASS=AMOUNT[,...]",
        "Only providers with room for these amounts.",
        type=RESOURCE_CLASS,
    ),
    click.option("--in-tree", type=PROVIDER, help="Only providers in the tree of this one."),
    click.option("--roots", is_flag=True, help="Only providers without parent."),
)
def list_providers(*, server: Administration, wanted: _Filters) -> Output:
    """List the providers that match all filters; all providers without filters.

    \b
    Examples:
      roost provider list
      roost provider list --name 'compute-*' --roots
      roost provider list --require HW_CPU_X86_AVX2 --forbid CUSTOM_DRAINED
      roost provider list --resources VCPU=4,MEMORY_MB=8192 --output csv
      roost provider list --in-tree compute-1 --json
    """
    found = server.matching_providers(_query(server, wanted))
    if wanted.pattern:
        found = [body for body in found if matches(body["name"], wanted.pattern)]
    if wanted.roots:
        found = [body for body in found if body["parent_provider_uuid"] is None]
    found = sorted(found, key=lambda body: body["name"])
    names = _names(server, found)
    if not found:
        echo_line("No provider matches. `roost provider list` shows all.", err=True)
    return Output(
        Table(_LISTED, [_row(body, names) for body in found]),
        [_as_json(body, names) for body in found],
    )


def _query(server: Administration, wanted: _Filters) -> list[tuple[str, str]]:
    """The filters as parameters of the API."""
    query: list[tuple[str, str]] = []
    if wanted.name and not wanted.pattern:
        query.append(("name", wanted.name))
    query += [("member_of", _any_of(value)) for value in wanted.member_of]
    alternatives = [value for value in wanted.require if value.startswith("in:")]
    required = _words(value for value in wanted.require if not value.startswith("in:"))
    forbidden = _words(wanted.forbid)
    named = {*required, *forbidden, *_words(value[3:] for value in alternatives)}
    demand_traits(server, {name.removeprefix("!") for name in named})
    both = [*required, *(f"!{name}" for name in forbidden)]
    if both:
        query.append(("required", ",".join(both)))
    query += [("required", value) for value in alternatives]
    amounts = dict(map(_amount, _words(wanted.resources)))
    demand_classes(server, amounts)
    if amounts:
        query.append(("resources", ",".join(f"{name}:{n}" for name, n in amounts.items())))
    if wanted.in_tree:
        query.append(("in_tree", find_uuid(server, wanted.in_tree)))
    return query


def _any_of(value: str) -> str:
    """Aggregates as the API writes them.

    >>> _any_of("a,b"), _any_of("!a"), _any_of("in:a,b")
    ('in:a,b', '!in:a', 'in:a,b')
    """
    if value.startswith(("in:", "!in:")):
        return value
    return f"!in:{value[1:]}" if value.startswith("!") else f"in:{value}"


def _words(values: Any) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _amount(text: str) -> tuple[str, int]:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise WrongUsage(
            with_next(
                f"--resources {text}: write CLASS=AMOUNT, such as VCPU=4.", "roost class list"
            )
        )
    return found["name"], int(found["amount"])


def _names(server: Administration, found: Sequence[ProviderBody]) -> dict[str, str]:
    """The names of these providers, of their parents and roots, by uuid."""
    names = {body["uuid"]: body["name"] for body in found}
    related = {body["parent_provider_uuid"] for body in found if body["parent_provider_uuid"]}
    related |= {body["root_provider_uuid"] for body in found}
    if related - names.keys():
        names |= {body["uuid"]: body["name"] for body in server.providers()}
    return names


def _row(body: ProviderBody, names: Mapping[str, str]) -> list[Any]:
    parent, root = body["parent_provider_uuid"], body["root_provider_uuid"]
    shown_parent = names.get(parent, parent) if parent else None
    return [body["name"], body["uuid"], body["generation"], shown_parent, names.get(root, root)]


def _as_json(body: ProviderBody, names: Mapping[str, str]) -> dict[str, Any]:
    parent, root = body["parent_provider_uuid"], body["root_provider_uuid"]
    return {
        "name": body["name"],
        "uuid": body["uuid"],
        "generation": body["generation"],
        "parent": {"uuid": parent, "name": names.get(parent)} if parent else None,
        "root": {"uuid": root, "name": names.get(root)},
    }


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
        below = [one for one in self.tree if one["parent_provider_uuid"] == self.provider.uuid]
        return [
            {"uuid": one["uuid"], "name": one["name"]}
            for one in sorted(below, key=lambda one: one["name"])
        ]

    def _reference(self, uuid: str | None) -> dict[str, Any] | None:
        found = [{"uuid": uuid, "name": one["name"]} for one in self.tree if one["uuid"] == uuid]
        return found[0] if found else None


@server_command("show", "Show one provider with all that it has.", watches=True)
@click.argument("name", type=PROVIDER)
def show(*, server: Administration, name: str) -> Output:
    """Show a provider: inventories and usage, traits, aggregates, and its place in its tree.

    CSV has a line for each inventory.

    \b
    Examples:
      roost provider show compute-1
      roost provider show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --json
      roost provider show compute-1 --watch 5
    """
    found = CloudReader(server).provider(find_provider(server, name), list(Facet))
    shown = _Shown(found, server.tree(found.uuid))
    table = Table(_INVENTORIES, [_inventory(found, name) for name in sorted(found.inventories)])
    return Output(table, _shown_json(shown), _drawing(shown, table), names=[shown.provider.name])


def _inventory(provider: CloudProvider, name: str) -> list[Any]:
    fields = provider.inventories[name]
    head = [name, provider.usages.get(name, 0), int(provider.inventory(name).capacity)]
    return [*head, *(fields.get(field) for field in _FIELDS)]


def _shown_json(shown: _Shown) -> dict[str, Any]:
    provider = shown.provider
    return {
        "name": provider.name,
        "uuid": provider.uuid,
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
            ("name", provider.name),
            ("uuid", provider.uuid),
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
        bars.append(line.append(f"  {with_separators(used)} of {with_separators(capacity)}"))
    return bars


@click.group(cls=CommandGroup)
def provider() -> None:
    """List, show, change and delete resource providers, by name or uuid.

    \b
    Examples:
      roost provider list --require HW_CPU_X86_AVX2 --resources VCPU=4
      roost provider tree compute-1
      roost provider set compute-1 --inventory VCPU:reserved=2 --dry-run
    """


for _command in (
    *(
        list_providers,
        show,
        drawing_command("provider tree"),
        create_provider,
        set_provider,
        delete,
    ),
    *(adopt_provider, rename_provider, merge_provider),
):
    provider.add_command(_command)
