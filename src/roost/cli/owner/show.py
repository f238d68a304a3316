"""The command `roost owner show`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from roost.cli.completers import complete_owners
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, output_options, print_output
from roost.cli.owner.records import (
    check_option,
    end_with_problems,
    gone_providers,
    moment_json,
    one_owner,
    shown_moment,
)
from roost.cli.records_option import records_option
from roost.cli.table import Facts, Table, TableColumn
from roost.cli.terminal import echo_line
from roost.cli.words import WORD
from roost.client.ownership.record import Absence, OwnedProvider, OwnershipRecord
from roost.client.ownership.recorded_owners import RecordedOwner, owned_traits
from roost.client.ownership.recorded_server import RecordedServer
from roost.model.text import counted, printable

_COLUMNS = (
    TableColumn("TREE"),
    TableColumn("PROVIDER"),
    TableColumn("UUID"),
    TableColumn("CREATED"),
    TableColumn("RESOURCE CLASS"),
    TableColumn("FIELDS"),
    TableColumn("TRAITS"),
    TableColumn("AGGREGATES"),
    TableColumn("MISSING SINCE"),
    TableColumn("SERVER"),
)
_GONE = TableColumn("GONE")


@click.command(
    short_help="Show what the record of an owner claims.",
    epilog="""\b
Examples:
  roost owner show network-team
  roost owner show agent --records /var/lib/roost-agent --check
  roost owner show agent --json
""",
)
@click.argument("name", type=WORD, metavar="OWNER", shell_complete=complete_owners)
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
    return {
        "name": owned.name,
        "uuid": uuid,
        "created": owned.created,
        "inventories": {name: sorted(fields) for name, fields in sorted(owned.inventories.items())},
        "traits": sorted(owned.traits),
        "aggregates": sorted(owned.aggregates),
        "missing": _absence_json(owned.absence),
        **({} if gone is None else {"gone": uuid in gone}),
    }


def _absence_json(absence: Absence | None) -> dict[str, Any] | None:
    if absence is None:
        return None
    return {"reports": absence.reports, "since": moment_json(absence.since)}


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
