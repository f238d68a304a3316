"""The command `roost consumer show`."""

from __future__ import annotations

import click
from rich.console import Group, RenderableType
from rich.text import Text

from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.consumer.list import holder_json
from roost.cli.output import Output, OutputForm, output_options
from roost.cli.table import Facts, Table, TableColumn
from roost.cli.watching import present, watch_option
from roost.cli.words import WORD
from roost.client.consumers import Holder, read_holder
from roost.client.errors import NotConfigured, PlacementError
from roost.client.placement.administration import Administration
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import with_next

_COLUMNS = (
    TableColumn("PROVIDER"),
    TableColumn("UUID", optional=True),
    TableColumn("RESOURCE CLASS"),
    TableColumn("AMOUNT", right=True),
)


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
    holder = read_holder(server, uuid)
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
