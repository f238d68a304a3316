"""The records that `roost owner` reads: those of all owners or of one, and what a server lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import click

from roost.cli.connection import ConnectionSettings
from roost.cli.terminal import complain
from roost.client.errors import NotConfigured
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.recorded_owners import RecordedOwner, owners_in, read_owner
from roost.client.ownership.store import default_directory
from roost.client.placement import Placement
from roost.client.provider_finder import ProviderFinder
from roost.model.text import nearest_names, with_next

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
    """Print which records cannot be read, and end with status 1 if there are any."""
    problems = [problem for owner in owners for problem in owner.problems]
    for problem in problems:
        complain(problem)
    if problems:
        sys.exit(1)


def moment(seconds: float | None) -> datetime | None:
    """A time of a record, in the time zone of this machine."""
    return None if seconds is None else datetime.fromtimestamp(seconds).astimezone()


def shown_moment(seconds: float | None) -> str | None:
    """A time as people read it."""
    time = moment(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S") if time else None


def moment_json(seconds: float | None) -> str | None:
    """A time for programs, with its zone."""
    time = moment(seconds)
    return time.isoformat(timespec="seconds") if time else None
