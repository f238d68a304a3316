"""The command `roost aggregate`: groups of providers, which have a uuid and no name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from roost.cli.cloud.consumer import totals_of, totals_table
from roost.cli.shared.bars import progress_bar
from roost.cli.shared.command import behind_own, command, server_command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import server_options
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Facts,
    Output,
    OutputForm,
    PlannedChange,
    Table,
    columns_of,
    dry_run_option,
    make_changes,
    output_options,
)
from roost.cli.shared.parameters import WORD
from roost.cli.shared.terminal import echo_line
from roost.client.errors import PlacementError
from roost.client.ledger.roost import Roost
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.client.reading.cloud_reader import CloudReader, ProviderChoice
from roost.client.reading.lookup import find_provider
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import listed, with_next

_LISTED = columns_of("AGGREGATE, >PROVIDERS, NAMES?")
_MEMBERS = columns_of("PROVIDER, UUID, PARENT?")
_NAMED_MAX = 4

_AGGREGATE = click.argument("aggregate", type=WORD, metavar="UUID")
_PROVIDERS = click.argument(
    "providers", type=PROVIDER, metavar="PROVIDER...", nargs=-1, required=True
)


@click.group(cls=CommandGroup)
def aggregate() -> None:
    """List, show and change aggregates: groups of providers.

    Placement knows an aggregate by its uuid alone. It begins with its first member, and ends with
    its last one. Any new uuid names a new aggregate, such as one of `uuidgen`.

    \b
    Examples:
      roost aggregate list
      roost aggregate show 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11
      roost aggregate add 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 compute-1 compute-2 --dry-run
    """


def aggregate_uuid(text: str) -> str:
    """The uuid of an aggregate that an operator names; there is no other name for it."""
    if not is_uuid(text):
        raise WrongUsage(
            with_next(
                f"{text} is no uuid, and Placement knows aggregates by uuid only.",
                "roost help aggregate",
            )
        )
    return canonical_uuid(text)


@server_command("list", "List aggregates and their members.", of=aggregate)
def list_aggregates(*, server: Administration) -> Output:
    """List the aggregates that have members.

    Placement has no list of aggregates, so this command asks each provider.

    \b
    Examples:
      roost aggregate list
      roost aggregate list --sort providers:desc -o csv
    """
    found = Roost(server.transport).aggregates()
    rows, value = [], []
    for uuid, members in found.items():
        names = sorted(member.name for member in members)
        rows.append([uuid, len(members), listed(names, at_most=_NAMED_MAX)])
        providers = [{"uuid": member.uuid, "name": member.name} for member in members]
        value.append({"aggregate": uuid, "providers": providers})
    notes = [] if rows else ["No provider is in an aggregate."]
    return Output(Table(_LISTED, rows), value, notes=notes)


@server_command("show", "Show the members of an aggregate, and what they have.", of=aggregate)
@_AGGREGATE
def show(*, server: Administration, aggregate: str) -> Output:
    """Show the members of an aggregate, and the totals of them and of all providers below them.

    \b
    Examples:
      roost aggregate show 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11
      roost aggregate show 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 --json
    """
    uuid = aggregate_uuid(aggregate)
    members = server.matching_providers([("member_of", f"in:{uuid}")])
    if not members:
        raise PlacementError(
            with_next(
                f"No provider is in the aggregate {uuid}, and Placement forgets such an aggregate.",
                "roost aggregate list",
            )
        )
    members = sorted(members, key=lambda body: body["name"])
    with progress_bar("asking providers", transient=True) as advance:
        totals = totals_of(CloudReader(server), ProviderChoice(below=members), advance)
    names = {body["uuid"]: body["name"] for body in members}
    rows = [
        [body["name"], body["uuid"], names.get(above, above)]
        for body in members
        for above in [body["parent_provider_uuid"]]
    ]
    table = Table(_MEMBERS, rows)
    value = {
        "aggregate": uuid,
        "providers": [{"uuid": body["uuid"], "name": body["name"]} for body in members],
        "totals": {name: dict(total) for name, total in sorted(totals.items())},
    }
    facts = Facts([("aggregate", uuid), ("providers", len(members))])
    drawing = Group(facts, Text(), table, Text(), totals_table(totals))
    return Output(table, value, drawing)


def _membership_command(name: str, summary: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command that changes the members of an aggregate."""

    def declare(function: Callable[..., None]) -> click.Command:
        shared = (_AGGREGATE, _PROVIDERS, dry_run_option, output_options, server_options)
        return command(name, summary, of=aggregate)(behind_own(function, *shared))

    return declare


@_membership_command("add", "Put providers into an aggregate.")
def add(
    *,
    server: Administration,
    aggregate: str,
    providers: tuple[str, ...],
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Put providers into an aggregate; `roost provider set --add-aggregate` does it for one.

    \b
    Examples:
      roost aggregate add 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 compute-1 compute-2
      roost aggregate add 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 pool-1 --dry-run
    """
    uuid, ledger = aggregate_uuid(aggregate), Roost(server.transport)
    outside = _chosen(server, uuid, providers, are_members=False)
    planned = [_change(uuid, body, partial(ledger.join_aggregate, uuid)) for body in outside]
    make_changes("added", planned, output, dry_run=dry_run)


@_membership_command("remove", "Take providers out of an aggregate.")
def remove(
    *,
    server: Administration,
    aggregate: str,
    providers: tuple[str, ...],
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Take providers out of an aggregate. A provider that is no member is no error.

    \b
    Examples:
      roost aggregate remove 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 compute-1 --dry-run
      roost aggregate remove 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 compute-1 compute-2
    """
    uuid, ledger = aggregate_uuid(aggregate), Roost(server.transport)
    inside = _chosen(server, uuid, providers, are_members=True)
    planned = [_change(uuid, body, partial(ledger.leave_aggregate, uuid)) for body in inside]
    make_changes("removed", planned, output, dry_run=dry_run)


def _chosen(
    server: Administration, aggregate: str, names: tuple[str, ...], *, are_members: bool
) -> list[ProviderBody]:
    """The named providers that are members, or no members; a warning names each further one."""
    bodies = {body["uuid"]: body for body in (find_provider(server, name) for name in names)}
    chosen = []
    for uuid, body in bodies.items():
        if (aggregate in server.aggregates(uuid)[1]) == are_members:
            chosen.append(body)
        else:
            state = "not in" if are_members else "already in"
            echo_line(f"roost: warning: {body['name']} is {state} {aggregate}.", err=True)
    return chosen


def _change(aggregate: str, body: ProviderBody, make: Callable[[str], object]) -> PlannedChange:
    value: dict[str, Any] = {"aggregate": aggregate, "uuid": body["uuid"], "name": body["name"]}
    return PlannedChange(body["name"], value, partial(make, body["uuid"]))
