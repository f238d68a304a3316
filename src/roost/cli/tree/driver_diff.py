"""`roost tree diff --driver`: what a driver declares of this host, compared with the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.connection import ConnectionSettings
from roost.cli.driver_options import driver_options
from roost.cli.tree.declared import form_of, form_option, print_declaration
from roost.cli.tree.results import ApplyResults
from roost.client.agent.host_report import HostReport
from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.loading import load_driver
from roost.client.drivers.offline import declared_offline
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.owner_names import DEFAULT_OWNER
from roost.client.ownership.store import FileOwnershipStore
from roost.client.reporting.reporter import Reporter

_OF_FILES = {"prune": "--prune", "jobs": "--jobs"}
_OF_DRIVERS = {
    "driver_options": "--option",
    "name": "--name",
    "uuid": "--uuid",
    "offline": "--offline",
}


@dataclass(frozen=True, slots=True)
class DriverDiffOptions:
    """The options of a comparison with a driver."""

    driver_name: str | None
    driver_options: tuple[tuple[str, str], ...]
    name: str
    uuid: str | None
    offline: bool
    output: str | None


def driver_diff_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a driver to a command, which gets them as one argument `of_driver`."""
    names = DriverDiffOptions.__dataclass_fields__.keys()

    @wraps(command)
    def with_driver(**arguments: Any) -> Any:
        values = {name: arguments.pop(name) for name in names}
        return command(of_driver=DriverDiffOptions(**values), **arguments)

    offline = click.option(
        "--offline",
        is_flag=True,
        help="With --driver: ask no server, and print the tree that the driver declares.",
    )
    return driver_options(offline(form_option(with_driver)))


def check_diff_source(ctx: click.Context, of_driver: DriverDiffOptions, path: str | None) -> None:
    """Demand a file or a driver, and refuse options of the one that is not given."""
    if (path is None) is (of_driver.driver_name is None):
        raise click.UsageError("Give either a tree file (-f FILE) or a driver (--driver NAME).")
    other = _OF_FILES if path is None else _OF_DRIVERS
    for name, option in other.items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            given, missing = ("--driver", "-f") if path is None else ("-f", "--driver")
            raise click.UsageError(f"{option} belongs to {missing}, and {given} is given.")
    if of_driver.output is not None and not of_driver.offline:
        raise click.UsageError("--output is a form of --driver with --offline: add them.")


def diff_driver(
    connection: ConnectionSettings,
    options: DriverDiffOptions,
    *,
    owner: str | None,
    records: Path | None,
    adopt: bool,
    as_json: bool,
) -> bool:
    """Print what a report of the driver would change; whether it would change anything."""
    assert options.driver_name is not None, "check_diff_source demands it"
    driver = load_driver(options.driver_name, dict(options.driver_options))
    declares = isinstance(driver, DeclaringDriver)
    if not declares and (owner or adopt):
        raise click.UsageError(
            f"--owner and --adopt are for drivers that declare, and {options.driver_name} edits "
            "the tree itself. Leave them out."
        )
    writer = (owner or DEFAULT_OWNER) if declares else None
    if options.offline:
        declaration = declared_offline(driver, options.name, options.uuid)
        print_declaration(declaration, form_of(options.output, as_json=as_json), writer)
        return False
    with connection.open() as transport:
        reporter = Reporter(transport)
        declarative = writer and DeclarativeReporter(
            reporter, writer, FileOwnershipStore(writer, records), adopt=adopt
        )
        host = HostReport(driver, options.name, options.uuid, reporter, declarative or None)
        report = host.preview()
    results = ApplyResults(writer, 1, dry_run=True, as_json=as_json)
    results.take_report(options.name, report)
    results.finish()
    return results.is_different
