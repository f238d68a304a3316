"""The command `roost usage`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import click

from roost.cli.bars import ink_for, progress_bar, usage_bar
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options
from roost.cli.parameters import WORD
from roost.cli.terminal import echo_line, output_console
from roost.cli.watching import present, watch_option
from roost.client.cloud_reader import CloudReader, Facet, Holder, ProviderChoice, consumers_of
from roost.client.errors import NotOffered, QuestionRefused
from roost.client.lookup import find_uuid
from roost.client.placement.placement import Administration
from roost.client.questions import Questions, ask_totals

_TOTALS = columns_of("RESOURCE CLASS, >USED, >CAPACITY, >FREE, >RESERVED, >PROVIDERS")
_DRAWN = columns_of("RESOURCE CLASS, , >USED, >CAPACITY, >FREE, >RESERVED?, >PROVIDERS?")
_BAR_WIDTH = 10
_OF_PROJECT = columns_of("CONSUMER TYPE, RESOURCE CLASS, >USED")
_BY_PROJECT = columns_of("PROJECT, >CONSUMERS, RESOURCE CLASS, >USED")
_COUNT = "consumer_count"


@dataclass
class _ClassTotal:
    """One resource class of all providers."""

    used: int = 0
    capacity: int = 0
    free: int = 0
    reserved: int = 0
    providers: int = 0


@click.command(
    short_help="Show what is used of each resource class.",
    epilog="""\b
Examples:
  roost usage
  roost usage --in-tree compute-1 --watch
  roost usage --project 7d5b2c0e3f3c4b0e8a2d
  roost usage --by-project --output csv
""",
)
@click.option(
    "--in-tree",
    type=WORD,
    metavar="NAME_OR_UUID",
    shell_complete=complete_providers,
    help="Only the tree of this provider.",
)
@click.option(
    "--project", type=WORD, metavar="ID", help="What this project uses, by type of consumer."
)
@click.option("--user", type=WORD, metavar="ID", help="With --project: only what this user uses.")
@click.option("--by-project", is_flag=True, help="What each project uses.")
@output_options
@watch_option
@connection_options
def usage(
    *,
    connection: ConnectionSettings,
    in_tree: str | None,
    project: str | None,
    user: str | None,
    by_project: bool,
    output: OutputForm,
    watch: float | None,
) -> None:
    """Show used amounts and capacity of each resource class, of the whole cloud or of a tree.

    Placement has no totals and no list of projects. So this command asks each provider, and with
    --by-project each consumer. Roost tells the totals of the whole cloud in one answer. The
    question for one --project is a single request.
    """
    if user and not project:
        raise click.UsageError("--user needs --project, as in the API.")
    if project and (by_project or in_tree):
        raise click.UsageError("--project stands alone, or with --user.")
    with connection.open() as transport:
        server = Questions(transport)
        uuid = find_uuid(server, in_tree) if in_tree else None
        read: Callable[[], Output]
        if project:
            read = partial(_of_project, server, project, user)
        elif not by_project and uuid is None:
            read = partial(_of_cloud, server, silent=watch is not None)
        else:
            make = _by_project if by_project else _totals
            chosen = ProviderChoice(in_trees=[uuid] if uuid else None)
            read = partial(make, CloudReader(server), chosen, silent=watch is not None)
        present(read, output, watch)


def _of_cloud(server: Questions, *, silent: bool) -> Output:
    """The totals of all providers, from one answer if the server has such an answer."""
    try:
        totals = server.answer(ask_totals())["totals"]
    except (NotOffered, QuestionRefused) as error:
        # A policy may allow a caller every provider, but not this answer.
        if isinstance(error, QuestionRefused) and error.status != HTTPStatus.FORBIDDEN:
            raise
        return _totals(CloudReader(server), ProviderChoice(), silent=silent)
    fields = _ClassTotal.__dataclass_fields__
    return _shown(
        {
            name: _ClassTotal(**{field: total[field] for field in fields})
            for name, total in totals.items()
        }
    )


def _totals(reader: CloudReader, chosen: ProviderChoice, *, silent: bool) -> Output:
    totals: defaultdict[str, _ClassTotal] = defaultdict(_ClassTotal)
    with progress_bar("asking providers", transient=True, silent=silent) as advance:
        facets = (Facet.INVENTORIES, Facet.ALLOCATIONS)
        for provider in reader.providers(chosen, facets, advance):
            for name in provider.inventories.keys() | provider.used.keys():
                total, used = totals[name], provider.used.get(name, 0)
                total.used += used
                if name in provider.inventories:
                    inventory = provider.inventory(name)
                    total.capacity += int(inventory.capacity)
                    total.free += max(0, int(inventory.capacity) - used)
                    total.reserved += inventory.reserved
                    total.providers += 1
    return _shown(totals)


def _shown(totals: Mapping[str, _ClassTotal]) -> Output:
    rows: list[list[Any]] = [
        [name, one.used, one.capacity, one.free, one.reserved, one.providers]
        for name, one in sorted(totals.items())
    ]
    ink = ink_for(output_console())
    drawn = [[row[0], usage_bar(row[1], row[2], ink, _BAR_WIDTH), *row[1:]] for row in rows]
    totals_table = Table(_TOTALS, rows)
    return Output(totals_table, totals_table.as_json(), Table(_DRAWN, drawn))


def _of_project(server: Administration, project: str, user: str | None) -> Output:
    found = server.usages_of_project(project, user)
    # From 1.38 on, amounts stand below the type of their consumers.
    by_type: Mapping[str, Mapping[str, Any]] = (
        found if all(isinstance(value, dict) for value in found.values()) else {"all": found}
    )
    rows = [
        [kind, name, amount]
        for kind, amounts in sorted(by_type.items())
        for name, amount in sorted(amounts.items())
        if name != _COUNT
    ]
    if not rows:
        echo_line(f"Project {project} uses nothing, or does not exist.", err=True)
    value = {"project": project, "user": user, "usages": by_type}
    return Output(Table(_OF_PROJECT, rows), value)


def _by_project(reader: CloudReader, chosen: ProviderChoice, *, silent: bool) -> Output:
    with progress_bar("asking providers", transient=True, silent=silent) as advance:
        providers = list(reader.providers(chosen, (Facet.ALLOCATIONS,), advance))
    with progress_bar("asking consumers", transient=True, silent=silent) as advance:
        holders = list(reader.consumers(consumers_of(providers), advance))
    here = {provider.uuid for provider in providers}
    consumers: Counter[str] = Counter()
    amounts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for holder in holders:
        project = holder.project or "-"
        consumers[project] += 1
        _add(amounts[project], holder, here)
    rows = [
        [project, consumers[project], name, amount]
        for project in sorted(amounts)
        for name, amount in sorted(amounts[project].items())
    ]
    value = [
        {
            "project": project,
            "consumers": consumers[project],
            "usages": dict(sorted(amounts[project].items())),
        }
        for project in sorted(amounts)
    ]
    return Output(Table(_BY_PROJECT, rows), value)


def _add(amounts: Counter[str], holder: Holder, providers: set[str]) -> None:
    """Add what a consumer holds on these providers."""
    for provider, held in holder.holds.items():
        if provider in providers:
            amounts.update(held)
