"""The command `roost owner list`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, output_options, print_output
from roost.cli.owner.records import (
    all_owners,
    check_option,
    end_with_problems,
    gone_providers,
    moment_json,
    nothing_recorded,
    shown_moment,
)
from roost.cli.records_option import records_option
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import echo_line
from roost.client.ownership.recorded_owners import RecordedOwner, owned_traits

_COLUMNS = (
    TableColumn("OWNER"),
    TableColumn("TREES", right=True),
    TableColumn("CREATED", right=True),
    TableColumn("MISSING", right=True),
    TableColumn("INVENTORIES", right=True, optional=True),
    TableColumn("TRAITS", right=True, optional=True),
    TableColumn("AGGREGATES", right=True, optional=True),
    TableColumn("WRITTEN"),
    TableColumn("PROCESS", right=True),
    TableColumn("COMMAND", optional=True),
    TableColumn("SERVERS", optional=True),
)
_GONE = TableColumn("GONE", right=True)


@click.command(
    "list",
    short_help="List the owners that have records on this machine.",
    epilog="""\b
Examples:
  roost owner list
  roost owner list --check
  roost owner list --records /var/lib/roost-agent --json
""",
)
@check_option
@records_option
@output_options
@connection_options
def list_owners(
    *, connection: ConnectionSettings, check: bool, records: Path | None, output: OutputForm
) -> None:
    """List the owners that have records on this machine, with what their records claim.

    The numbers are those of the trees, of the providers that the owner created, and of the
    inventories, traits and aggregates that it owns. Missing is a provider that the driver no longer
    finds, and that stays for now. A process is named if it holds the records. The servers are
    those that the records belong to. With --check, `gone` is the number of providers that the
    server should have and does not.
    """
    owners = all_owners(records)
    gone = gone_providers(connection, owners) if check else None
    print_output(_output(owners, gone), output)
    if not owners:
        echo_line(nothing_recorded(records), err=True)
    end_with_problems(owners)


def _output(owners: Sequence[RecordedOwner], gone: frozenset[str] | None) -> Output:
    values = [_as_json(owner, gone) for owner in owners]
    columns = _COLUMNS if gone is None else (*_COLUMNS, _GONE)
    return Output(
        Table(columns, [_row(*both) for both in zip(owners, values, strict=True)]), values
    )


def _as_json(owner: RecordedOwner, gone: frozenset[str] | None) -> dict[str, Any]:
    owned = [provider for _, provider in owner.providers()]
    value = {
        "owner": owner.name,
        "trees": len(owner.trees),
        "created": sum(provider.created for provider in owned),
        "missing": sum(provider.absence is not None for provider in owned),
        "inventories": sum(len(provider.inventories) for provider in owned),
        "traits": sum(len(owned_traits(provider)) for provider in owned),
        "aggregates": sum(len(provider.aggregates) for provider in owned),
        "written": moment_json(owner.written_at),
        "process": owner.holder.process_id if owner.holder else None,
        "command": owner.holder.command if owner.holder else None,
        "servers": owner.servers,
    }
    if gone is not None:
        value["gone"] = sum(uuid in gone for uuid, _ in owner.providers())
    return value


def _row(owner: RecordedOwner, value: dict[str, Any]) -> list[Any]:
    return [*(value | {"written": shown_moment(owner.written_at)}).values()]
