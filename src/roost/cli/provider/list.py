"""The command `roost provider list`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from roost.cli.completers import complete_classes, complete_providers, complete_traits
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options
from roost.cli.parameters import WORD
from roost.cli.terminal import echo_line
from roost.cli.watching import present, watch_option
from roost.client.errors import NotConfigured
from roost.client.lookup import demand_classes, demand_traits, find_uuid
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.model.text import matches, with_next

_COLUMNS = columns_of("NAME, UUID, >GENERATION?, PARENT?, ROOT?")
_AMOUNT = re.compile(r"(?P<name>[A-Z0-9_]+)[=:](?P<amount>[0-9]+)")


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


@click.command(
    "list",
    short_help="List providers, all or those that match.",
    epilog="""\b
Examples:
  roost provider list
  roost provider list --name 'compute-*' --roots
  roost provider list --require HW_CPU_X86_AVX2 --forbid CUSTOM_DRAINED
  roost provider list --resources VCPU=4,MEMORY_MB=8192 --output csv
  roost provider list --in-tree compute-1 --json
""",
)
@click.option(
    "--name", type=WORD, metavar="NAME", help="Only this name; * and ? stand for any characters."
)
@click.option(
    "--member-of",
    type=WORD,
    metavar="UUID[,UUID]",
    multiple=True,
    help="Only members of one of these aggregates; !UUID for those outside. May be repeated.",
)
@click.option(
    "--require",
    type=WORD,
    metavar="TRAIT[,TRAIT]",
    multiple=True,
    shell_complete=complete_traits,
    help="Only providers with all of these traits; in:A,B for one of them. May be repeated.",
)
@click.option(
    "--forbid",
    type=WORD,
    metavar="TRAIT[,TRAIT]",
    multiple=True,
    shell_complete=complete_traits,
    help="Only providers with none of these traits. May be repeated.",
)
@click.option(
    "--resources",
    type=WORD,
    metavar="CLASS=AMOUNT[,...]",
    multiple=True,
    shell_complete=complete_classes,
    help="Only providers with room for these amounts. May be repeated.",
)
@click.option(
    "--in-tree",
    type=WORD,
    metavar="NAME_OR_UUID",
    shell_complete=complete_providers,
    help="Only providers in the tree of this one.",
)
@click.option("--roots", is_flag=True, help="Only providers without parent.")
@output_options
@watch_option
@connection_options
def list_providers(
    *, connection: ConnectionSettings, output: OutputForm, watch: float | None, **filters: Any
) -> None:
    """List the providers that match all filters; all providers without filters."""
    wanted = _Filters(**filters)
    with connection.open() as transport:
        server = Administration(transport)
        query = _query(server, wanted)
        present(lambda: _listed(server, wanted, query), output, watch)


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
        raise NotConfigured(
            with_next(
                f"--resources {text}: write CLASS=AMOUNT, such as VCPU=4.", "roost class list"
            )
        )
    return found["name"], int(found["amount"])


def _listed(server: Administration, wanted: _Filters, query: Sequence[tuple[str, str]]) -> Output:
    found = server.matching_providers(query)
    if wanted.pattern:
        found = [body for body in found if matches(body["name"], wanted.pattern)]
    if wanted.roots:
        found = [body for body in found if body["parent_provider_uuid"] is None]
    found = sorted(found, key=lambda body: body["name"])
    names = _names(server, found)
    if not found:
        echo_line("No provider matches. `roost provider list` shows all.", err=True)
    return Output(
        Table(_COLUMNS, [_row(body, names) for body in found]),
        [_as_json(body, names) for body in found],
    )


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
