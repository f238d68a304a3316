"""What `roost tree apply` and `roost tree diff` print: changes, what was kept, and failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.connection import ConnectionSettings
from roost.cli.driver import driver_options
from roost.cli.parameters import adding
from roost.cli.terminal import echo_above_bar, echo_line
from roost.cli.tree.drawing import form_of, form_option, print_declaration
from roost.client.agent.host_report import HostReport
from roost.client.drivers.driver import DeclaringDriver, declared_offline
from roost.client.drivers.registry import load_driver
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.owner_names import DEFAULT_OWNER
from roost.client.ownership.store import FileOwnershipStore
from roost.client.ownership.tree_application import AppliedTree
from roost.client.reporting.reporter import Reporter
from roost.model.text import counted, done_or_planned

_AGAIN = "the server may have carried it out. Apply the file again to find out"

_OF_FILES = {"prune": "--prune", "jobs": "--jobs"}
_OF_DRIVERS = {
    "driver_options": "--option",
    "name": "--name",
    "uuid": "--uuid",
    "offline": "--offline",
}


@dataclass(slots=True)
class ApplyResults:
    """Prints each tree as it comes, or all trees at the end as one JSON value; counts them.

    A driver that edits the tree itself has no owner.
    """

    owner: str | None
    total: int
    dry_run: bool
    as_json: bool
    done: int = 0
    changes: int = 0
    kept: int = 0
    is_different: bool = False
    failed: list[AppliedTree] = field(default_factory=list)
    _printed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def not_begun(self) -> int:
        """The number of trees that the command has not come to."""
        return self.total - self.done - len(self.failed)

    def take(self, applied: AppliedTree) -> None:
        """Count a tree, and print its changes."""
        if applied.report is None:
            self.failed.append(applied)
            return
        self.take_report(applied.tree.name, applied.report)

    def take_report(self, name: str, report: Report) -> None:
        """Count the tree of this name, and print what was reported of it."""
        self.done += 1
        self._print(name, report)

    def finish(self) -> None:
        """Print the JSON value, the failures and the sums."""
        if self.as_json:
            click.echo(json.dumps(self._as_json(), indent=2))
        else:
            made = done_or_planned("made", planned=self.dry_run)
            by = "" if self.owner is None else f", as owner {self.owner}"
            echo_line(f"{counted(self.changes, 'change')} {made}{by}", err=True)
        if self.kept:
            what = counted(self.kept, "part")
            echo_line(f"{what} of the declaration cannot be made true: see `kept`", err=True)
        for applied in self.failed:
            # Such an error ends the command, which prints it once.
            if not applied.ends_all:
                echo_line(_failure_line(applied), err=True)
        if self.not_begun:
            echo_line(f"{counted(self.not_begun, 'tree')} not begun", err=True)
        if self.failed:
            echo_line(f"{len(self.failed)} of {counted(self.total, 'tree')} failed", err=True)

    def _print(self, name: str, report: Report) -> None:
        lines = report.difference.lines(planned=self.dry_run)
        self.changes += len(lines)
        self.kept += len(report.kept)
        self.is_different |= bool(report.difference)
        if self.as_json:
            difference = report.difference.as_json()
            # Thousands of reports would need much more memory than what is printed of them.
            self._printed.append(
                {"tree": name, "difference": difference, "kept": list(report.kept)}
            )
            return
        kept = done_or_planned("kept", planned=self.dry_run)
        for line in (*lines, *(f"{kept}: {line}" for line in report.kept)):
            echo_above_bar(line)

    def _as_json(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "dry_run": self.dry_run,
            "trees": self._printed,
            "failures": [
                {
                    "tree": applied.tree.name,
                    "error": str(applied.error),
                    "outcome": "unknown" if applied.is_unknown else "failed",
                }
                for applied in self.failed
            ],
            "not_begun": self.not_begun,
        }


def _failure_line(applied: AppliedTree) -> str:
    # Sentences of servers have line feeds.
    reason = " ".join(str(applied.error).split())
    if applied.is_unknown:
        return f"unknown: {applied.tree.name}: {reason}; {_AGAIN}"
    return f"failed: {applied.tree.name}: {reason}"


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
    wrapped: Callable[..., Any] = adding(driver_options, offline, form_option)(with_driver)
    return wrapped


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
