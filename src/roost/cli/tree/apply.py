"""The commands `roost tree apply` and `roost tree diff`, which write or compare a tree file."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.driver import driver_options
from roost.cli.shared.bars import progress_bar
from roost.cli.shared.command import command
from roost.cli.shared.completers import complete_owners
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.exit_status import ExitStatus, yes_or_no
from roost.cli.shared.parameters import gathering, records_option
from roost.cli.shared.terminal import Interrupted, echo_above_bar, echo_line, ending_after_steps
from roost.cli.tree.drawing import form_of, form_option, print_declaration
from roost.client.agent.host_report import HostReport
from roost.client.drivers.driver import DeclaringDriver, declared_offline
from roost.client.drivers.file import PLACEHOLDER
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.owner_names import DEFAULT_OWNER, owner_name
from roost.client.ownership.store import FileOwnershipStore, default_directory
from roost.client.ownership.tree_application import (
    AppliedTree,
    TreeApplication,
    TreeDeclaration,
    tree_declarations,
    withdrawals,
)
from roost.client.placement import Placement
from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import KEPT_CONNECTIONS
from roost.client.tree_file import STANDARD_INPUT, TreeFile, read_tree_file
from roost.model.text import counted, done_or_planned, own_lines, with_next

_JOBS = 8
_NAMED_MAX = 5
_AGAIN = "the server may have carried it out. Apply the file again to find out"

_OF_FILES = {"prune": "--prune", "jobs": "--jobs"}
_OF_DRIVERS = {
    "driver_options": "--option",
    "name": "--name",
    "uuid": "--uuid",
    "offline": "--offline",
}


@dataclass(frozen=True, slots=True)
class _FileOptions:
    """The options of both commands."""

    path: str | None
    owner: str | None
    records: Path | None
    adopt: bool
    prune: bool
    jobs: int
    as_json: bool


_file_options = gathering(
    "options",
    _FileOptions,
    click.option(
        "-f",
        "--file",
        "path",
        metavar="FILE",
        help="The tree file, YAML or JSON; - for standard input.",
    ),
    click.option(
        "--owner",
        metavar="NAME",
        shell_complete=complete_owners,
        help="Name to write under; the first use of a file needs it. [default: `owner` in the "
        "file, or the file's name without its ending if this owner has records]",
    ),
    records_option,
    click.option(
        "--adopt",
        is_flag=True,
        help="Treat all that is on the declared providers as written by this owner: what the file "
        "does not declare is removed.",
    ),
    click.option(
        "--prune",
        is_flag=True,
        help="Also remove what this owner wrote in trees that the file no longer mentions.",
    ),
    click.option(
        "--jobs",
        metavar="NUMBER",
        type=click.IntRange(1, KEPT_CONNECTIONS),
        default=_JOBS,
        show_default=True,
        help="How many requests to send at a time; trees are independent of each other.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON."),
)


@dataclass(frozen=True, slots=True)
class DriverDiffOptions:
    """The options of a comparison with a driver."""

    driver_name: str | None
    driver_options: tuple[tuple[str, str], ...]
    name: str
    uuid: str | None
    offline: bool
    output: str | None


_driver_diff_options = gathering(
    "of_driver",
    DriverDiffOptions,
    driver_options,
    click.option(
        "--offline",
        is_flag=True,
        help="With --driver: ask no server, and print the tree that the driver declares.",
    ),
    form_option,
)


@command("apply", "Write to the server what a file declares.")
@_file_options
@click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")
@connection_options
def apply(*, connection: ConnectionSettings, dry_run: bool, options: _FileOptions) -> None:
    """Write to the server what a file declares.

    The command adds missing providers, inventories, traits and aggregates, and corrects
    inventories. It removes what this owner wrote earlier and no longer declares. It keeps what
    other owners wrote on the same providers. A tree that fails holds up no other one.

    \b
    A small file (`roost tree export` prints larger ones):
      providers:
        - name: compute-1
          traits: [CUSTOM_RACK_7]
          inventories: {VCPU: 16, MEMORY_MB: {total: 65536, reserved: 512}}
          children:
            - name: compute-1_gpu0
              inventories: {VGPU: 8}

    \b
    Examples:
      roost tree apply -f rack-1.yaml --dry-run
      roost tree apply -f rack-1.yaml --owner network-team

    \b
    Exit status: 0 all that the file declares is true now, 3 something was kept.
    1 if a tree or the command failed, 2 after wrong options, 130 after Ctrl-C.
    --dry-run is a success also if something would be kept.
    """
    if options.path is None:
        raise click.UsageError("Missing option '-f' / '--file'.")
    results = _carry_out(connection, options.path, options, dry_run=dry_run)
    if results.kept and not dry_run:
        sys.exit(ExitStatus.NO)


@command("diff", "Print what `apply` would change.")
@_file_options
@_driver_diff_options
@connection_options
def diff(
    *, connection: ConnectionSettings, of_driver: DriverDiffOptions, options: _FileOptions
) -> None:
    """Print what `roost tree apply` would change, and change nothing.

    With --driver, print what `roost agent` would change with this driver.

    \b
    Examples:
      roost tree diff -f rack-1.yaml
      roost tree diff -f rack-1.yaml --owner network-team --prune
      roost tree diff --driver linux
      roost tree diff --driver linux --offline

    \b
    Exit status: 0 nothing would change, 3 something would, 1 an error.
    """
    _check_source(click.get_current_context(), of_driver, options.path)
    if options.path is None:
        is_different = _diff_driver(connection, of_driver, options)
    else:
        is_different = _carry_out(connection, options.path, options, dry_run=True).is_different
    sys.exit(yes_or_no(not is_different))


def _carry_out(
    connection: ConnectionSettings, path: str, options: _FileOptions, *, dry_run: bool
) -> ApplyResults:
    """Apply or compare a file, and print the results; a failure is status 1."""
    tree_file = read_tree_file(path)
    for warning in tree_file.warnings:
        echo_line(f"warning: {warning}", err=True)
    _refuse_placeholders(path, tree_file)
    owner = owner_of_file(path, tree_file, options.owner, options.records, writes=not dry_run)
    records = FileOwnershipStore(owner, options.records)
    with connection.open() as transport, nullcontext() if dry_run else records.held():
        placement = Placement(transport)
        declared = tree_declarations(placement, tree_file.declaration)
        server = KnownServer(placement)
        undeclared = list(withdrawals(placement, records, declared, server))
        withdrawn = undeclared if options.prune else []
        total = len(declared) + len(withdrawn)
        results = ApplyResults(owner, total, dry_run, options.as_json)
        with ending_after_steps(at_once=dry_run) as asked_to_end:
            application = TreeApplication(
                transport,
                owner,
                records,
                jobs=options.jobs,
                adopt=options.adopt,
                dry_run=dry_run,
                stop=asked_to_end,
                server=server,
            )
            # A second Ctrl-C leaves the trees under way alone; the results so far are printed.
            with suppress(KeyboardInterrupt), _progress(application, asked_to_end) as advance:
                advance(total, 0)
                for applied in application.apply(declared, withdrawn):
                    results.take(applied)
                    advance(total, 1)
        if undeclared and not options.prune:
            _tell_undeclared(owner, undeclared)
        results.finish()
        _end_early(results, is_interrupted=asked_to_end.is_set())
    if results.failed:
        sys.exit(ExitStatus.FAILED)
    return results


def _progress(
    application: TreeApplication, asked_to_end: Event
) -> AbstractContextManager[Callable[[int, int], None]]:
    def remark() -> str:
        if asked_to_end.is_set():
            return "ending after the trees under way; Ctrl-C again ends at once"
        return f"{application.failures} failed" if application.failures else ""

    what = "comparing trees" if application.dry_run else "applying trees"
    return progress_bar(what, transient=True, remark=remark)


def _end_early(results: ApplyResults, *, is_interrupted: bool) -> None:
    """End the command if the operator did, or if every further tree would fail alike."""
    if is_interrupted:
        raise Interrupted(
            f"Interrupted. {results.done} of {counted(results.total, 'tree')} done. Run the same "
            "command again: it continues."
        )
    for applied in results.failed:
        if applied.ends_all and applied.error is not None:
            raise applied.error


def _tell_undeclared(owner: str, undeclared: list[TreeDeclaration]) -> None:
    names = [tree.name for tree in undeclared[:_NAMED_MAX]]
    more = len(undeclared) - len(names)
    listed = ", ".join(names) + (f" and {more} more" if more else "")
    echo_line(
        f"{owner} declared parts of {listed} before, which are not in the file and stay; "
        "--prune removes them",
        err=True,
    )


def _refuse_placeholders(path: str, tree_file: TreeFile) -> None:
    for provider in tree_file.declaration.providers:
        if PLACEHOLDER in provider.name:
            raise NotConfigured(
                f"{path}:{tree_file.lines[provider.name]}: `{provider.name}` is a name on the host "
                "that `roost agent --driver file` runs on; write the name out for this command"
            )


def owner_of_file(
    path: str, tree_file: TreeFile, given: str | None, records: Path | None, *, writes: bool
) -> str:
    """The owner that the option or the file names; the name of a file used before counts as well.

    The first use of a file has to name the owner: a silent owner would change with the name of
    the file, and what the file declared would have no owner any more. A command that writes
    nothing goes on with the name of the file.
    """
    named = given or tree_file.owner
    if named:
        return owner_name(named)
    name = _name_of_file(path)
    remedy = f"`owner: {name}` in the file, or --owner {name}"
    if FileOwnershipStore(name, records).trees():
        # The records are those of an earlier use.
        echo_line(
            f"note: {path} names no owner, and goes on as owner {name}, which has records. "
            f"A renamed file would lose them: better write {remedy}",
            err=True,
        )
    elif writes:
        raise _nameless(path, name, records)
    else:
        echo_line(
            f"note: {path} names no owner, and is compared as owner {name}. "
            f"`roost tree apply` needs {remedy}",
            err=True,
        )
    return name


def _name_of_file(path: str) -> str:
    if path == STANDARD_INPUT:
        text = "The declaration has no owner. Give --owner, or `owner:` in the file."
        raise NotConfigured(with_next(text, "roost help owner"))
    try:
        return owner_name(Path(path).stem)
    except NotConfigured as error:
        raise NotConfigured(f"{error}; give --owner, or `owner:` in the file") from None


def _nameless(path: str, name: str, records: Path | None) -> NotConfigured:
    directory = records or default_directory()
    with_records = f" --records {shlex.quote(str(records))}" if records else ""
    return NotConfigured(
        with_next(
            own_lines(
                f"{path} names no owner, and {directory} has no records of an owner {name}. An "
                "owner removes later what it wrote and no longer declares, so its name must stay "
                "when the file gets another name.",
                f"Add the line `owner: {name}` to the file, or give --owner {name}; any name will "
                "do.",
            ),
            f"roost tree apply -f {shlex.quote(path)} --owner {name}{with_records}",
        )
    )


def _check_source(ctx: click.Context, of_driver: DriverDiffOptions, path: str | None) -> None:
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


def _diff_driver(
    connection: ConnectionSettings, of_driver: DriverDiffOptions, options: _FileOptions
) -> bool:
    """Print what a report of the driver would change; whether it would change anything."""
    assert of_driver.driver_name is not None, "_check_source demands it"
    driver = load_driver(of_driver.driver_name, dict(of_driver.driver_options))
    declares = isinstance(driver, DeclaringDriver)
    if not declares and (options.owner or options.adopt):
        raise click.UsageError(
            f"--owner and --adopt are for drivers that declare, and {of_driver.driver_name} edits "
            "the tree itself. Leave them out."
        )
    writer = (options.owner or DEFAULT_OWNER) if declares else None
    if of_driver.offline:
        declaration = declared_offline(driver, of_driver.name, of_driver.uuid)
        print_declaration(declaration, form_of(of_driver.output, as_json=options.as_json), writer)
        return False
    with connection.open() as transport:
        reporter = Reporter(transport)
        declarative = writer and DeclarativeReporter(
            reporter, writer, FileOwnershipStore(writer, options.records), adopt=options.adopt
        )
        host = HostReport(driver, of_driver.name, of_driver.uuid, reporter, declarative or None)
        report = host.preview()
    results = ApplyResults(writer, 1, dry_run=True, as_json=options.as_json)
    results.take_report(of_driver.name, report)
    results.finish()
    return results.is_different


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
