"""The commands `roost tree apply` and `roost tree diff`, which write or compare a tree file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.terminal import echo_line
from roost.cli.tree.driver_diff import (
    DriverDiffOptions,
    check_diff_source,
    diff_driver,
    driver_diff_options,
)
from roost.cli.usage_status import usage_status
from roost.client.drivers.file import PLACEHOLDER
from roost.client.errors import NotConfigured
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.store import FileOwnershipStore
from roost.client.ownership.tree_declaration import TreeDeclaration, tree_declarations, withdrawals
from roost.client.placement import Placement
from roost.client.reporting.reporter import Reporter
from roost.client.tree_file import STANDARD_INPUT, TreeFile, read_tree_file

EXIT_UNKNOWN = 1
EXIT_DIFFERENT = 2

_OPTIONS = (
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
        help="Name to write under. [default: `owner` in the file, or the file's name without its "
        "ending]",
    ),
    click.option(
        "--records",
        metavar="DIRECTORY",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory with the records of what this owner wrote. [default: $STATE_DIRECTORY, "
        "or a directory of the user such as ~/.local/state/roost/owners]",
    ),
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
    click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON."),
)


@dataclass(frozen=True, slots=True)
class _ApplyOptions:
    """The options of the command line."""

    path: str
    owner: str | None
    records: Path | None
    adopt: bool
    prune: bool
    as_json: bool


def _file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    short_help="Write to the server what a file declares.",
    epilog="""\b
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
""",
)
@_file_options
@click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")
@connection_options
def apply(*, connection: ConnectionSettings, dry_run: bool, **options: Any) -> None:
    """Write to the server what a file declares.

    The command adds missing providers, inventories, traits and aggregates, and corrects
    inventories. It removes what this owner wrote earlier and no longer declares. It keeps what
    other owners wrote on the same providers.
    """
    if options["path"] is None:
        raise click.UsageError("Missing option '-f' / '--file'.")
    _carry_out(connection, _ApplyOptions(**options), dry_run=dry_run)


@click.command(
    cls=usage_status(EXIT_UNKNOWN),
    short_help="Print what `apply` would change.",
    epilog="""\b
Examples:
  roost tree diff -f rack-1.yaml
  roost tree diff --driver linux
  roost tree diff --driver linux --offline

\b
Exit status: 0 if nothing would change, 2 if something would, 1 after an error.
""",
)
@_file_options
@driver_diff_options
@connection_options
def diff(*, connection: ConnectionSettings, of_driver: DriverDiffOptions, **options: Any) -> None:
    """Print what `roost tree apply` would change, and change nothing.

    With --driver, print what `roost agent` would change with this driver.
    """
    check_diff_source(click.get_current_context(), of_driver, options["path"])
    if of_driver.driver_name is not None:
        kept = {name: options[name] for name in ("owner", "records", "adopt", "as_json")}
        is_different = diff_driver(connection, of_driver, **kept)
    else:
        is_different = _carry_out(connection, _ApplyOptions(**options), dry_run=True)
    if is_different:
        sys.exit(EXIT_DIFFERENT)


def _carry_out(connection: ConnectionSettings, options: _ApplyOptions, *, dry_run: bool) -> bool:
    """Apply or compare a file; whether the server and the file differ."""
    tree_file = read_tree_file(options.path)
    for warning in tree_file.warnings:
        echo_line(f"warning: {warning}", err=True)
    _refuse_placeholders(options.path, tree_file)
    name = _owner_name(options, tree_file)
    records = FileOwnershipStore(name, options.records)
    with connection.open() as transport, nullcontext() if dry_run else records.held():
        placement = Placement(transport)
        reporter = DeclarativeReporter(Reporter(transport), name, records, adopt=options.adopt)
        declared = tree_declarations(placement, tree_file.declaration)
        undeclared = list(withdrawals(placement, records, declared))
        trees = declared + (undeclared if options.prune else [])
        with _printing(options, name, dry_run) as print_report:
            # Only the result of each report is kept: a file may have thousands of trees.
            different = [
                print_report(tree, tree.apply(reporter, dry_run=dry_run))
                for tree in _with_progress(trees)
            ]
    if undeclared and not options.prune:
        names = ", ".join(tree.name for tree in undeclared)
        echo_line(
            f"{name} declared parts of {names} before, which are not in the file and stay; "
            "--prune removes them",
            err=True,
        )
    return any(different)


def _refuse_placeholders(path: str, tree_file: TreeFile) -> None:
    for provider in tree_file.declaration.providers:
        if PLACEHOLDER in provider.name:
            raise NotConfigured(
                f"{path}:{tree_file.lines[provider.name]}: `{provider.name}` is a name on the host "
                "that `roost agent --driver file` runs on; write the name out for this command"
            )


def _owner_name(options: _ApplyOptions, tree_file: TreeFile) -> str:
    given = options.owner or tree_file.owner
    if given:
        return owner_name(given)
    if options.path == STANDARD_INPUT:
        raise NotConfigured("The declaration has no owner. Give --owner, or `owner:` in the file.")
    try:
        return owner_name(Path(options.path).stem)
    except NotConfigured as error:
        raise NotConfigured(f"{error}; give --owner, or `owner:` in the file") from None


def _with_progress(trees: list[TreeDeclaration]) -> Iterator[TreeDeclaration]:
    console = Console(stderr=True)
    few = len(trees) < 3
    yield from track(
        trees, "Trees", console=console, transient=True, disable=few or not console.is_terminal
    )


@contextmanager
def _printing(
    options: _ApplyOptions, owner: str, dry_run: bool
) -> Iterator[Callable[[TreeDeclaration, Report], bool]]:
    """Print each report as it comes, or all reports at the end as one JSON value.

    Yields a function that prints a report and returns whether it has a difference.
    """
    printed: list[dict[str, Any]] = []
    changes = 0

    def print_report(tree: TreeDeclaration, report: Report) -> bool:
        nonlocal changes
        lines = report.difference.lines()
        changes += len(lines)
        if options.as_json:
            difference = report.difference.as_json()
            printed.append({"tree": tree.name, "difference": difference, "kept": list(report.kept)})
        else:
            for line in lines:
                echo_line(line)
            for line in report.kept:
                echo_line(f"kept: {line}")
        return bool(report.difference)

    try:
        yield print_report
    finally:
        if options.as_json:
            click.echo(json.dumps({"owner": owner, "dry_run": dry_run, "trees": printed}, indent=2))
    if not options.as_json:
        verb = "would be made" if dry_run else "made"
        noun = "change" if changes == 1 else "changes"
        echo_line(f"{changes} {noun} {verb}, as owner {owner}", err=True)
