"""The command `roost owner rebind`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from roost.cli.completers import complete_owners
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.owner.records import one_owner
from roost.cli.records_option import records_option
from roost.cli.terminal import echo_line
from roost.cli.words import WORD
from roost.client.errors import NotConfigured
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.rebinding import rebind as rebind_records
from roost.client.ownership.rebinding import records_of_server
from roost.client.ownership.store import FileOwnershipStore
from roost.client.placement import Placement
from roost.client.provider_finder import ProviderFinder
from roost.model.text import counted


@click.command(
    short_help="Say that the records of an owner belong to another server.",
    epilog="""\b
Examples:
  roost owner rebind agent --from http://old:8778 --url https://new:8778
  roost owner rebind agent --from http://old:8778 --os-cloud mycloud --dry-run
""",
)
@click.argument("name", type=WORD, metavar="OWNER", shell_complete=complete_owners)
@click.option(
    "--from",
    "former",
    metavar="SERVER",
    required=True,
    help="The server of the records so far: its address as `roost owner show` prints it, or its "
    "identity.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be bound; bind nothing.")
@records_option
@connection_options
def rebind(
    *,
    connection: ConnectionSettings,
    name: str,
    former: str,
    dry_run: bool,
    records: Path | None,
) -> None:
    """Say that the records of an owner belong to another server than before.

    A record tells what its owner put on one server, and is not used for any other. Use this
    command if the server has a new address or a new identity and the same providers. A copy of the
    server, such as a lab, needs records of its own: choose another directory with --records.
    Stop the agent of this owner meanwhile.
    """
    owner = one_owner(name, records).name
    store = FileOwnershipStore(owner, records)
    with connection.open() as transport, nullcontext() if dry_run else store.held():
        placement = Placement(transport)
        server = KnownServer(placement).get()
        if not server:
            raise NotConfigured("The server has neither an address nor an identity: give --url")
        found = records_of_server(store, former)
        finder = ProviderFinder(placement, len(found))
        missing = [root_uuid for root_uuid in found if finder.with_uuid(root_uuid) is None]
        if not dry_run:
            rebind_records(store, found, server)
    verb = "would be bound" if dry_run else "bound"
    echo_line(f"{verb} to {server}: {counted(len(found), 'record')} of {owner}")
    if missing:
        echo_line(
            f"warning: {server} does not have the root of {counted(len(missing), 'tree')} of them: "
            f"{', '.join(missing[:5])}",
            err=True,
        )
