"""The command `roost consumer` and its subcommands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import click
from rich.console import Group, RenderableType
from rich.text import Text

from roost.cli.bars import progress_bar
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import (
    Facts,
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.parameters import WORD
from roost.cli.terminal import echo_line
from roost.cli.watching import present, watch_option
from roost.client.cloud_reader import (
    CloudReader,
    Facet,
    Holder,
    ProviderChoice,
    consumers_of,
)
from roost.client.errors import NotConfigured, PlacementError
from roost.client.lookup import find_provider
from roost.client.placement.placement import Administration
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import counted, with_next

_SHOWN = 1000
_LISTED = columns_of("CONSUMER, RESOURCES, PROVIDERS?, TYPE?, PROJECT?, USER?")


@click.command(
    "list",
    short_help="List consumers and what they hold.",
    epilog="""\b
Examples:
  roost consumer list --provider compute-1
  roost consumer list --project 7d5b2c0e3f3c4b0e8a2d --output csv
  roost consumer list --type INSTANCE --limit 0 --json
""",
)
@click.option(
    "--provider",
    "providers",
    type=WORD,
    metavar="NAME_OR_UUID",
    multiple=True,
    shell_complete=complete_providers,
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
@output_options
@connection_options
def list_consumers(
    *,
    connection: ConnectionSettings,
    providers: tuple[str, ...],
    project: str | None,
    user: str | None,
    kind: str | None,
    limit: int,
    output: OutputForm,
) -> None:
    """List the consumers that hold something of these providers; of all providers without names.

    Placement has no list of consumers. This command asks each provider for its allocations, and
    then for each consumer: on a large cloud, name some providers.
    """
    with connection.open() as transport:
        server = Administration(transport)
        reader = CloudReader(server)
        names = {provider.uuid: provider.name for provider in reader.providers()}
        tops = [find_provider(server, name) for name in providers]
        chosen = ProviderChoice(below=tops if providers else None)
        with progress_bar("asking providers", transient=True) as advance:
            asked = list(reader.providers(chosen, (Facet.ALLOCATIONS,), advance))
        with progress_bar("asking consumers", transient=True) as advance:
            holders = reader.consumers(consumers_of(asked), advance)
            # One more than the limit tells whether there are more.
            found = _first(limit + 1 if limit else None, holders, project, user, kind)
    shown = found[: limit or None]
    print_output(_listed(shown, names), output)
    echo_line(
        f"{counted(len(shown), 'consumer')}, gathered from the allocations of "
        f"{counted(len(asked), 'provider')}.",
        err=True,
    )
    if len(found) > len(shown):
        echo_line("There are more such consumers: --limit 0 lists all.", err=True)


def _first(
    number: int | None,
    holders: Iterator[Holder],
    project: str | None,
    user: str | None,
    kind: str | None,
) -> list[Holder]:
    """So many of the consumers that the filters choose, or all; the rest is not asked for."""
    chosen = (
        holder
        for holder in holders
        if project in (None, holder.project)
        and user in (None, holder.user)
        and kind in (None, holder.type)
    )
    return list(islice(chosen, number))


def _listed(holders: Sequence[Holder], names: dict[str, str]) -> Output:
    rows = [
        [
            holder.uuid,
            [f"{name}={amount}" for name, amount in holder.amounts.items()],
            sorted(names.get(uuid, uuid) for uuid in holder.holds),
            holder.type,
            holder.project,
            holder.user,
        ]
        for holder in holders
    ]
    return Output(Table(_LISTED, rows), [holder_json(holder, names) for holder in holders])


def holder_json(holder: Holder, names: dict[str, str]) -> dict[str, object]:
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


_COLUMNS = columns_of("PROVIDER, UUID?, RESOURCE CLASS, >AMOUNT")


@click.command(
    short_help="Show what a consumer holds, and where.",
    epilog="""\b
Examples:
  roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
  roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --output yaml
""",
)
@click.argument("uuid", type=WORD, metavar="UUID")
@output_options
@watch_option
@connection_options
def show(
    *, connection: ConnectionSettings, uuid: str, output: OutputForm, watch: float | None
) -> None:
    """Show the allocations of a consumer, such as a server of Nova, with project and user."""
    if not is_uuid(uuid):
        raise NotConfigured(
            with_next(
                f"{uuid} is no uuid, and Placement knows consumers by uuid only.",
                "openstack server show NAME -c id",
            )
        )
    with connection.open() as transport:
        server = Administration(transport)
        present(lambda: _output(server, canonical_uuid(uuid)), output, watch)


def _output(server: Administration, uuid: str) -> Output:
    holder = CloudReader(server).consumer(uuid)
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
    return Output(table, holder_json(holder, names), _drawing(holder, table))


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


@click.group(short_help="List and show consumers of resources.")
def consumer() -> None:
    """List consumers, and show what one of them holds.

    \b
    Examples:
      roost consumer list --provider compute-1
      roost consumer show 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
    """


consumer.add_command(list_consumers)
consumer.add_command(show)
