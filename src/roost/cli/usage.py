"""The command `roost usage`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from roost.cli.bars import ink_for, progress_bar, usage_bar
from roost.cli.command import server_command
from roost.cli.completers import PROVIDER
from roost.cli.output import Output, Table, columns_of
from roost.cli.parameters import WORD
from roost.cli.terminal import echo_line, output_console
from roost.client.gathering import Holder, gather, read_holders, uuids_of_consumers
from roost.client.lookup import find_uuid
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration

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


@server_command(watches=True)
@click.option("--in-tree", type=PROVIDER, help="Only the tree of this provider.")
@click.option(
    "--project", type=WORD, metavar="ID", help="What this project uses, by type of consumer."
)
@click.option("--user", type=WORD, metavar="ID", help="With --project: only what this user uses.")
@click.option("--by-project", is_flag=True, help="What each project uses.")
def usage(
    *,
    server: Administration,
    in_tree: str | None,
    project: str | None,
    user: str | None,
    by_project: bool,
) -> Output:
    """Show used amounts and capacity of each resource class, of the whole cloud or of a tree.

    Placement has no totals and no list of projects. So this command asks each provider, and with
    --by-project each consumer. The question for one --project is a single request.

    \b
    Examples:
      roost usage
      roost usage --in-tree compute-1 --watch
      roost usage --project 7d5b2c0e3f3c4b0e8a2d
      roost usage --by-project --output csv
    """
    if user and not project:
        raise click.UsageError("--user needs --project, as in the API.")
    if project and (by_project or in_tree):
        raise click.UsageError("--project stands alone, or with --user.")
    if project:
        return _of_project(server, project, user)
    bodies = server.tree(find_uuid(server, in_tree)) if in_tree else server.providers()
    return (_by_project if by_project else _totals)(server, bodies)


def _totals(server: Administration, bodies: Sequence[ProviderBody]) -> Output:
    totals: defaultdict[str, _ClassTotal] = defaultdict(_ClassTotal)
    with progress_bar("asking providers", transient=True) as advance:
        for provider in gather(server, bodies, advance):
            for name in provider.inventories.keys() | provider.used.keys():
                total, used = totals[name], provider.used.get(name, 0)
                total.used += used
                if name in provider.inventories:
                    inventory = provider.inventory(name)
                    total.capacity += int(inventory.capacity)
                    total.free += max(0, int(inventory.capacity) - used)
                    total.reserved += inventory.reserved
                    total.providers += 1
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


def _by_project(server: Administration, bodies: Sequence[ProviderBody]) -> Output:
    with progress_bar("asking providers", transient=True) as advance:
        uuids = uuids_of_consumers(server, bodies, advance)
    with progress_bar("asking consumers", transient=True) as advance:
        holders = list(read_holders(server, uuids, advance))
    here = {body["uuid"] for body in bodies}
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
