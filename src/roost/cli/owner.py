"""The command `roost owner` and its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from roost.cli.shared.command import command
from roost.cli.shared.completers import OWNER
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.exit_status import ExitStatus
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Facts,
    Output,
    OutputForm,
    Table,
    TableColumn,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.shared.parameters import records_option
from roost.cli.shared.terminal import complain, echo_line
from roost.client.errors import NotConfigured
from roost.client.ownership.known_server import KnownServer, records_of_server
from roost.client.ownership.known_server import rebind as rebind_records
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.record import OwnedProvider, OwnershipRecord, RecordedServer
from roost.client.ownership.store import (
    FileOwnershipStore,
    RecordedOwner,
    default_directory,
    owned_traits,
    owners_in,
    read_owner,
)
from roost.client.placement import Placement
from roost.client.reading.lookup import ProviderFinder
from roost.model.text import counted, nearest_names, printable, with_next


@click.group(cls=CommandGroup)
def owner() -> None:
    """Show what the owners of this machine have written to servers, out of their records.

    `roost agent` and `roost tree apply` keep a record of what they put on a server. An owner
    removes what its record claims and its declaration no longer has. A record belongs to one
    server.

    \b
    Examples:
      roost owner list
      roost owner show agent --check
      roost owner rebind agent --from http://old:8778 --url http://new:8778
    """


check_option = click.option(
    "--check",
    is_flag=True,
    help="Also ask the server which providers of the records it still has.",
)
"""Adds `--check`; without it, a command asks no server."""


def all_owners(directory: Path | None) -> list[RecordedOwner]:
    """The owners that claim something, or whose records a process holds."""
    place = directory or default_directory()
    return [owner for name in owners_in(place) if (owner := read_owner(name, place))]


def one_owner(name: str, directory: Path | None) -> RecordedOwner:
    """The owner of this name, in any spelling; an error has the names near it."""
    name = owner_name(name)
    place = directory or default_directory()
    known = owners_in(place)
    if name in known:
        return read_owner(name, place)
    if not known:
        raise NotConfigured(with_next(nothing_recorded(directory), "roost owner list --help"))
    near = nearest_names(name, known)
    hint = f" Near it: {', '.join(near)}." if near else ""
    raise NotConfigured(
        with_next(f"No owner {name} has records in {place}.{hint}", "roost owner list")
    )


def nothing_recorded(directory: Path | None) -> str:
    """What it means that there are no records."""
    return (
        f"No owner has records in {directory or default_directory()}. `roost agent` and "
        "`roost tree apply` write them on the machine and as the user that they run as; "
        "the service roost-agent has its own in /var/lib/roost-agent (--records)."
    )


def gone_providers(
    connection: ConnectionSettings, owners: Iterable[RecordedOwner]
) -> frozenset[str]:
    """The uuids of the recorded providers that the server does not have.

    Records of other servers tell nothing about this one.
    """
    with connection.open() as transport:
        placement = Placement(transport)
        server = KnownServer(placement)
        recorded = {
            uuid
            for owner in owners
            for record in owner.trees.values()
            if not server.is_another(record)
            for uuid in record.providers
        }
        finder = ProviderFinder(placement, len(recorded))
        return frozenset(uuid for uuid in recorded if finder.with_uuid(uuid) is None)


def end_with_problems(owners: Iterable[RecordedOwner]) -> None:
    """Print which records cannot be read; such records are a failure."""
    problems = [problem for owner in owners for problem in owner.problems]
    for problem in problems:
        complain(problem)
    if problems:
        sys.exit(ExitStatus.FAILED)


def shown_moment(seconds: float | None) -> str | None:
    """A time of a record as people read it, in the time zone of this machine."""
    return _moment(seconds, lambda time: time.strftime("%Y-%m-%d %H:%M:%S"))


def moment_json(seconds: float | None) -> str | None:
    """A time for programs, with its zone."""
    return _moment(seconds, lambda time: time.isoformat(timespec="seconds"))


def _moment(seconds: float | None, write: Callable[[datetime], str]) -> str | None:
    return None if seconds is None else write(datetime.fromtimestamp(seconds).astimezone())


_LISTED = columns_of(
    "OWNER, >TREES, >CREATED, >MISSING, >INVENTORIES?, >TRAITS?, >AGGREGATES?, WRITTEN, "
    ">PROCESS, COMMAND?, SERVERS?"
)
_GONE_COUNT = TableColumn("GONE", right=True)


@command("list", "List the owners that have records on this machine.", of=owner)
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

    \b
    Examples:
      roost owner list
      roost owner list --check
      roost owner list --records /var/lib/roost-agent --json
    """
    owners = all_owners(records)
    gone = gone_providers(connection, owners) if check else None
    values = [_in_list(owner, gone) for owner in owners]
    rows = [
        # The number of a process is a name, which has no separators.
        list(
            (
                value
                | {
                    "written": shown_moment(owner.written_at),
                    "process": str(value["process"] or ""),
                }
            ).values()
        )
        for owner, value in zip(owners, values, strict=True)
    ]
    columns = _LISTED if gone is None else (*_LISTED, _GONE_COUNT)
    print_output(Output(Table(columns, rows), values), output)
    if not owners:
        echo_line(nothing_recorded(records), err=True)
    end_with_problems(owners)


def _in_list(owner: RecordedOwner, gone: frozenset[str] | None) -> dict[str, Any]:
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


_COLUMNS = columns_of(
    "TREE, PROVIDER, UUID, CREATED, RESOURCE CLASS, FIELDS, TRAITS, AGGREGATES, "
    "MISSING SINCE, SERVER"
)
_GONE = TableColumn("GONE")


@command("show", "Show what the record of an owner claims.", of=owner)
@click.argument("name", type=OWNER)
@check_option
@records_option
@output_options
@connection_options
def show(
    *,
    connection: ConnectionSettings,
    name: str,
    check: bool,
    records: Path | None,
    output: OutputForm,
) -> None:
    """Show what an owner claims of each tree: providers, inventories, traits and aggregates.

    The owner removes what is shown here, as soon as its declaration no longer has it. Anything
    else on the same providers belongs to other writers. Of an inventory the owner owns the fields
    in brackets. With --check, the command marks providers that the server should have and does
    not. A record of another server is not compared.

    \b
    Examples:
      roost owner show network-team
      roost owner show agent --records /var/lib/roost-agent --check
      roost owner show agent --json
    """
    owner = one_owner(name, records)
    gone = gone_providers(connection, [owner]) if check else None
    print_output(_output(owner, gone), output)
    if gone:
        echo_line(
            f"Not on the server: {counted(len(gone), 'provider')} of the records. The next report "
            "of the owner creates what it still declares.",
            err=True,
        )
    end_with_problems([owner])


def _output(owner: RecordedOwner, gone: frozenset[str] | None) -> Output:
    columns = _COLUMNS if gone is None else (*_COLUMNS, _GONE)
    rows = [
        row
        for root_uuid, record in _trees(owner)
        for uuid, owned in _sorted(record, root_uuid)
        for row in _rows(root_uuid, record.server, uuid, owned, gone)
    ]
    return Output(Table(columns, rows), _as_json(owner, gone), _drawing(owner, gone or frozenset()))


def _trees(owner: RecordedOwner) -> list[tuple[str, OwnershipRecord]]:
    """The trees by the name of their first provider. A record that a user wrote may have none."""

    def place(item: tuple[str, OwnershipRecord]) -> tuple[str, str]:
        root_uuid, record = item
        return min((owned.name for owned in record.providers.values()), default=""), root_uuid

    return sorted(owner.trees.items(), key=place)


def _sorted(record: OwnershipRecord, root_uuid: str) -> list[tuple[str, OwnedProvider]]:
    """The providers of a tree: the root, then the rest by name."""
    return sorted(
        record.providers.items(), key=lambda item: (item[0] != root_uuid, item[1].name, item[0])
    )


def _rows(
    root_uuid: str,
    server: RecordedServer | None,
    uuid: str,
    owned: OwnedProvider,
    gone: frozenset[str] | None,
) -> list[list[Any]]:
    """A row for each inventory; one without class for a provider without inventory."""
    head: list[Any] = [root_uuid, owned.name, uuid, owned.created]
    tail: list[Any] = [owned_traits(owned), sorted(owned.aggregates)]
    tail.append(moment_json(owned.absence.since) if owned.absence else None)
    tail.append(None if server is None else str(server))
    tail += [] if gone is None else [uuid in gone]
    rows = [
        [*head, name, sorted(fields), *tail] for name, fields in sorted(owned.inventories.items())
    ]
    return rows or [[*head, None, None, *tail]]


def _as_json(owner: RecordedOwner, gone: frozenset[str] | None) -> dict[str, Any]:
    holder = owner.holder
    return {
        "owner": owner.name,
        "written": moment_json(owner.written_at),
        "process": holder.process_id if holder else None,
        "command": holder.command if holder else None,
        "trees": [
            {
                "root": root_uuid,
                "server": None if record.server is None else asdict(record.server),
                "providers": [
                    _provider_json(uuid, owned, gone) for uuid, owned in _sorted(record, root_uuid)
                ],
            }
            for root_uuid, record in _trees(owner)
        ],
    }


def _provider_json(uuid: str, owned: OwnedProvider, gone: frozenset[str] | None) -> dict[str, Any]:
    absence = owned.absence
    return {
        "name": owned.name,
        "uuid": uuid,
        "created": owned.created,
        "inventories": {name: sorted(fields) for name, fields in sorted(owned.inventories.items())},
        "traits": sorted(owned.traits),
        "aggregates": sorted(owned.aggregates),
        "missing": absence and {"reports": absence.reports, "since": moment_json(absence.since)},
        **({} if gone is None else {"gone": uuid in gone}),
    }


# -- the drawing


def _drawing(owner: RecordedOwner, gone: frozenset[str]) -> RenderableType:
    facts = Facts(
        [
            ("owner", owner.name),
            ("trees", len(owner.trees)),
            ("written", shown_moment(owner.written_at)),
            ("in use by", str(owner.holder) if owner.holder else None),
            ("server", ", ".join(map(printable, owner.servers)) or None),
        ]
    )
    trees = (_trunk(root_uuid, record, gone) for root_uuid, record in _trees(owner))
    return Group(facts, *(part for tree in trees for part in (Text(), tree)))


def _trunk(root_uuid: str, record: OwnershipRecord, gone: frozenset[str]) -> Tree:
    providers = dict(_sorted(record, root_uuid))
    root = providers.pop(root_uuid, None)
    label = (
        _label(root_uuid, root, gone)
        if root is not None
        else Text(f"tree of {root_uuid}, nothing claimed of its root", style="italic")
    )
    trunk = Tree(label, guide_style="dim")
    for uuid, owned in providers.items():
        trunk.add(_label(uuid, owned, gone))
    return trunk


def _label(uuid: str, owned: OwnedProvider, gone: frozenset[str]) -> Text:
    label = Text(printable(owned.name), style="bold", overflow="fold")
    label.append(f"  {printable(uuid)}", style="not bold dim")
    if owned.created:
        label.append("  created", style="not bold")
    if uuid in gone:
        label.append("  not on the server", style="not bold red")
    if owned.absence is not None:
        since = shown_moment(owned.absence.since)
        reports = counted(owned.absence.reports, "report")
        label.append(f"\nmissing since {since}, in {reports}", style="not bold yellow")
    for line in _claims(owned):
        label.append(f"\n{printable(line)}", style="not bold dim")
    return label


def _claims(owned: OwnedProvider) -> list[str]:
    """What the owner owns of a provider, a line for each kind."""
    lines = [
        f"{name} ({', '.join(sorted(fields))})"
        for name, fields in sorted(owned.inventories.items())
    ]
    for noun, names in (("trait", owned_traits(owned)), ("aggregate", sorted(owned.aggregates))):
        if names:
            lines.append(f"{noun}{'s' if len(names) > 1 else ''} {', '.join(names)}")
    return lines


@command("rebind", "Say that the records of an owner belong to another server.", of=owner)
@click.argument("name", type=OWNER)
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
    *, connection: ConnectionSettings, name: str, former: str, dry_run: bool, records: Path | None
) -> None:
    """Say that the records of an owner belong to another server than before.

    A record tells what its owner put on one server, and is not used for any other. Use this
    command if the server has a new address or a new identity and the same providers. A copy of the
    server, such as a lab, needs records of its own: choose another directory with --records.
    Stop the agent of this owner meanwhile.

    \b
    Examples:
      roost owner rebind agent --from http://old:8778 --url https://new:8778
      roost owner rebind agent --from http://old:8778 --os-cloud mycloud --dry-run
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
