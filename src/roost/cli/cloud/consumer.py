"""The commands `roost consumer` and `roost usage`: consumers of resources, and used amounts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from roost.cli.shared.bars import ink_for, progress_bar, usage_bar
from roost.cli.shared.command import server_command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import Facts, Output, Table, columns_of
from roost.cli.shared.parameters import WORD
from roost.cli.shared.terminal import echo_line, output_console
from roost.client.errors import NotOffered, PlacementError, QuestionRefused
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.client.questions import Questions, ask_totals
from roost.client.reading.cloud_reader import CloudReader, Facet, ProviderChoice, TellProgress
from roost.client.reading.consumers import ConsumerChoice, ConsumerReader, Holder
from roost.client.reading.lookup import find_provider
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import counted, with_next

_SHOWN = 1000
_LISTED = columns_of("CONSUMER, RESOURCES, PROVIDERS?, TYPE?, PROJECT?, USER?")


@click.group(cls=CommandGroup)
def consumer() -> None:
    """List consumers, and show what one of them holds.

    \b
    Examples:
      roost consumer list --provider compute-1
      roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
    """


@server_command("list", "List consumers and what they hold.", of=consumer)
@click.option(
    "--provider",
    "providers",
    type=PROVIDER,
    multiple=True,
    help="Only consumers of this provider, and of all below it. May be repeated.",
)
@click.option("--project", type=WORD, metavar="ID", help="Only consumers of this project.")
@click.option("--user", type=WORD, metavar="ID", help="Only consumers of this user.")
@click.option("--type", "kind", type=WORD, metavar="TYPE", help="Only consumers of this type.")
@click.option(
    "--limit",
    metavar="NUMBER",
    type=click.IntRange(0),
    default=_SHOWN,
    show_default=True,
    help="How many of them to list; 0 for all.",
)
@click.option(
    "--older-than",
    type=WORD,
    metavar="AGE",
    help="Only consumers that were created so long ago: seconds, or a number with s, m, h or d. "
    "Only Roost answers it.",
)
@click.option(
    "--order",
    type=click.Choice(["age", "size"]),
    help="The oldest first, or the largest first. Only Roost answers it. [default: age]",
)
def list_consumers(
    *,
    server: Questions,
    providers: tuple[str, ...],
    project: str | None,
    user: str | None,
    kind: str | None,
    limit: int,
    older_than: str | None,
    order: str | None,
) -> Output:
    """List the consumers that hold something of these providers; of all providers without names.

    A server of Roost lists them, the oldest first. Placement has no list of consumers. So on other
    servers, this command asks each provider for its allocations: on a large cloud, name some
    providers.

    \b
    Examples:
      roost consumer list --provider compute-1
      roost consumer list --project 7d5b2c0e3f3c4b0e8a2d --output csv
      roost consumer list --type INSTANCE --limit 0 --json
      roost consumer list --older-than 30d --order size
    """
    chosen = ConsumerChoice(
        [find_provider(server, name) for name in providers], project, user, kind, older_than, order
    )
    # One more than the limit tells whether there are more.
    found = ConsumerReader(server).find(chosen, limit + 1 if limit else None, _progress)
    how = "the largest first" if order == "size" else "the oldest first"
    if found.asked is not None:
        how = f"gathered from the allocations of {counted(found.asked, 'provider')}"
    shown = found.consumers[: limit or None]
    notes = [f"{counted(len(shown), 'consumer')}, {how}."]
    if len(found.consumers) > len(shown):
        notes.append("There are more such consumers: --limit 0 lists all.")
    table = Table(_LISTED, [_row(holder) for holder in shown])
    return Output(table, [holder_json(holder, holder.names) for holder in shown], notes=notes)


def _progress(title: str) -> AbstractContextManager[TellProgress]:
    return progress_bar(title, transient=True)


def _row(holder: Holder) -> list[object]:
    return [
        holder.uuid,
        holder.amounts,
        sorted(holder.names.get(uuid, uuid) for uuid in holder.holds),
        holder.type,
        holder.project,
        holder.user,
    ]


def holder_json(holder: Holder, names: Mapping[str, str]) -> dict[str, object]:
    """A consumer as a JSON value, with the names of its providers."""
    return {
        "consumer": holder.uuid,
        "project": holder.project,
        "user": holder.user,
        "type": holder.type,
        "generation": holder.generation,
        "allocations": [
            {
                "provider": {"uuid": uuid, "name": names.get(uuid)},
                "resources": dict(sorted(amounts.items())),
            }
            for uuid, amounts in sorted(holder.holds.items())
        ],
    }


def consumer_uuid(text: str) -> str:
    """The uuid of a consumer that an operator names; there is no other name for it."""
    if not is_uuid(text):
        raise WrongUsage(
            with_next(
                f"{text} is no uuid, and Placement knows consumers by uuid only.",
                "openstack server show NAME -c id",
            )
        )
    return canonical_uuid(text)


_COLUMNS = columns_of("PROVIDER, UUID?, RESOURCE CLASS, >AMOUNT")


@server_command("show", "Show what a consumer holds, and where.", of=consumer, watches=True)
@click.argument("uuid", type=WORD, metavar="UUID")
def show(*, server: Administration, uuid: str) -> Output:
    """Show the allocations of a consumer, such as a server of Nova, with project and user.

    \b
    Examples:
      roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
      roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --output yaml
    """
    uuid = consumer_uuid(uuid)
    holder = ConsumerReader(server).one(uuid)
    if holder is None:
        raise PlacementError(
            with_next(
                f"Consumer {uuid} holds nothing, and Placement forgets such a consumer.",
                "roost consumer list",
            )
        )
    names = {}
    for provider in holder.holds:
        body = server.provider(provider)
        if body is not None:
            names[provider] = str(body["name"])
    table = Table(
        _COLUMNS,
        [
            [names.get(provider, provider), provider, name, amount]
            for provider, amounts in sorted(
                holder.holds.items(), key=lambda item: names.get(item[0], item[0])
            )
            for name, amount in sorted(amounts.items())
        ],
    )
    return Output(table, holder_json(holder, names), _drawing(holder, table), names=[holder.uuid])


def _drawing(holder: Holder, table: Table) -> RenderableType:
    facts = Facts(
        [
            ("consumer", holder.uuid),
            ("project", holder.project),
            ("user", holder.user),
            ("type", holder.type),
            ("generation", holder.generation),
        ]
    )
    return Group(facts, Text(), table)


_TOTALS = columns_of("RESOURCE CLASS, >USED, >CAPACITY, >FREE, >RESERVED, >PROVIDERS")
_DRAWN = columns_of("RESOURCE CLASS, , >USED, >CAPACITY, >FREE, >RESERVED?, >PROVIDERS?")
_BAR_WIDTH = 10
_OF_PROJECT = columns_of("CONSUMER TYPE, RESOURCE CLASS, >USED")
_BY_PROJECT = columns_of("PROJECT, >CONSUMERS, RESOURCE CLASS, >USED")
_COUNT = "consumer_count"
_SUMS = ("used", "capacity", "free", "reserved", "providers")


@server_command(watches=True)
@click.option("--in-tree", type=PROVIDER, help="Only the tree of this provider.")
@click.option(
    "--project", type=WORD, metavar="ID", help="What this project uses, by type of consumer."
)
@click.option("--user", type=WORD, metavar="ID", help="With --project: only what this user uses.")
@click.option("--by-project", is_flag=True, help="What each project uses.")
def usage(
    *,
    server: Questions,
    in_tree: str | None,
    project: str | None,
    user: str | None,
    by_project: bool,
) -> Output:
    """Show used amounts and capacity of each resource class, of the whole cloud or of a tree.

    Placement has no totals and no list of projects. So this command asks each provider, and with
    --by-project each consumer. Roost tells the totals of the whole cloud in one answer. The
    question for one --project is a single request.

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
    if not by_project and not in_tree:
        return _of_cloud(server)
    top = find_provider(server, in_tree) if in_tree else None
    if by_project:
        return _by_project(server, top)
    return _totals(server, ProviderChoice(in_trees=[top["uuid"]] if top else None))


def _of_cloud(server: Questions) -> Output:
    """The totals of all providers, from one answer if the server has such an answer."""
    try:
        return _shown(server.answer(ask_totals())["totals"])
    except (NotOffered, QuestionRefused) as error:
        # A policy may allow a caller every provider, but not this answer.
        if isinstance(error, QuestionRefused) and error.status != HTTPStatus.FORBIDDEN:
            raise
    return _totals(server, ProviderChoice())


def _totals(server: Questions, chosen: ProviderChoice) -> Output:
    with progress_bar("asking providers", transient=True) as advance:
        return _shown(totals_of(CloudReader(server), chosen, advance))


def totals_of(
    reader: CloudReader, chosen: ProviderChoice, advance: TellProgress
) -> Mapping[str, Mapping[str, int]]:
    """What the chosen providers have of each resource class, and what of it is used."""
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for provider in reader.providers(chosen, (Facet.INVENTORIES, Facet.USAGES), advance):
        for name in provider.inventories.keys() | provider.used.keys():
            used = provider.used.get(name, 0)
            totals[name]["used"] += used
            if name in provider.inventories:
                inventory = provider.inventory(name)
                capacity = int(inventory.capacity)
                totals[name].update(
                    capacity=capacity,
                    free=max(0, capacity - used),
                    reserved=inventory.reserved,
                    providers=1,
                )
    return totals


def totals_table(totals: Mapping[str, Mapping[str, int]]) -> Table:
    """A row for each resource class, for programs."""
    rows = [[name, *(total[key] for key in _SUMS)] for name, total in sorted(totals.items())]
    return Table(_TOTALS, rows)


def _shown(totals: Mapping[str, Mapping[str, int]]) -> Output:
    table = totals_table(totals)
    ink = ink_for(output_console())
    drawn = [[row[0], usage_bar(row[1], row[2], ink, _BAR_WIDTH), *row[1:]] for row in table.rows]
    return Output(table, table.as_json(), Table(_DRAWN, drawn))


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


def _by_project(server: Questions, top: ProviderBody | None) -> Output:
    tree = server.tree(top["uuid"]) if top else []
    here = {body["uuid"] for body in tree}
    roots = [body for body in tree if body["parent_provider_uuid"] is None]
    consumers: Counter[str] = Counter()
    amounts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for holder in ConsumerReader(server).find(ConsumerChoice(roots), None, _progress).consumers:
        project = holder.project or "-"
        consumers[project] += 1
        for provider, held in holder.holds.items():
            if top is None or provider in here:
                amounts[project].update(held)
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
