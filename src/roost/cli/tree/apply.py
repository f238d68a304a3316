"""`roost tree apply` and `roost tree diff`: what a file declares, made true or compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from roost.cli.connection import Connection, connection_options
from roost.cli.terminal import echo_line
from roost.cli.usage import usage_status
from roost.client.drivers.file import PLACEHOLDER
from roost.client.errors import NotConfigured
from roost.client.owning.applying import Part, parts, undeclared_parts
from roost.client.owning.owner import Owner, Report
from roost.client.owning.ownership import owner_name
from roost.client.owning.records import FileRecords
from roost.client.reporting.placement import Placement
from roost.client.reporting.reporter import Reporter
from roost.client.tree_file import STANDARD_INPUT, TreeFile, read_tree_file

EXIT_UNKNOWN = 1
EXIT_DIFFERENT = 2

_OPTIONS = (
    click.option(
        "-f",
        "--file",
        "path",
        required=True,
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
        help="Where to remember what was written, to tell it from what others write. [default: "
        "$STATE_DIRECTORY, or a directory of yours such as ~/.local/state/roost/owners]",
    ),
    click.option(
        "--adopt",
        is_flag=True,
        help="Take all that is on the declared providers for written by this owner, so that what "
        "is not declared is removed.",
    ),
    click.option(
        "--prune",
        is_flag=True,
        help="Also remove what this owner wrote in trees of which the file has nothing any more.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON."),
)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asks for."""

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
    short_help="Make true on the server what a file declares.",
    epilog="""\b
A file, to begin with (`roost tree export` prints more):
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
def apply(*, connection: Connection, dry_run: bool, **wish: Any) -> None:
    """Make true on the server what a file declares.

    Providers, inventories, traits and aggregates that are missing are added, and inventories
    corrected. What this owner wrote earlier and no longer declares is removed; what others have
    put on the same providers is left alone.
    """
    _carry_out(connection, _Wish(**wish), dry_run=dry_run)


@click.command(
    cls=usage_status(EXIT_UNKNOWN),
    short_help="Print what `apply` would change.",
    epilog="""\b
Example:
  roost tree diff -f rack-1.yaml

\b
Exit status: 0 nothing would change, 2 something would, 1 it could not be found out.
""",
)
@_file_options
@connection_options
def diff(*, connection: Connection, **wish: Any) -> None:
    """Print what `roost tree apply` would change, and change nothing."""
    if _carry_out(connection, _Wish(**wish), dry_run=True):
        sys.exit(EXIT_DIFFERENT)


def _carry_out(connection: Connection, wish: _Wish, *, dry_run: bool) -> bool:
    """Apply or compare; whether anything is different."""
    tree_file = read_tree_file(wish.path)
    for warning in tree_file.warnings:
        echo_line(f"warning: {warning}", err=True)
    _refuse_placeholders(wish.path, tree_file)
    name = _owner_name(wish, tree_file)
    records = FileRecords(name, wish.records)
    with connection.open() as transport:
        placement = Placement(transport)
        owner = Owner(Reporter(transport), name, records, adopt=wish.adopt)
        if not dry_run:
            records.prepare()
        declared = parts(placement, tree_file.declaration)
        undeclared = list(undeclared_parts(placement, records, declared))
        wanted = declared + (undeclared if wish.prune else [])
        with _telling(wish, name, dry_run) as tell:
            # Reports of thousands of trees are not kept once they are told.
            different = [tell(part, part.apply(owner, dry_run=dry_run)) for part in _shown(wanted)]
    if undeclared and not wish.prune:
        names = ", ".join(part.name for part in undeclared)
        echo_line(
            f"{name} declared something of {names} before, which is not in the file and stays; "
            "--prune removes it",
            err=True,
        )
    return any(different)


def _refuse_placeholders(path: str, tree_file: TreeFile) -> None:
    for provider in tree_file.declaration.providers:
        if PLACEHOLDER in provider.name:
            raise NotConfigured(
                f"{path}:{tree_file.lines[provider.name]}: `{provider.name}` is a name on the host "
                "that `roost agent --driver file` runs on; here it has to be written out"
            )


def _owner_name(wish: _Wish, tree_file: TreeFile) -> str:
    said = wish.owner or tree_file.owner
    if said:
        return owner_name(said)
    if wish.path == STANDARD_INPUT:
        raise NotConfigured("Whose declaration is it? Give --owner, or `owner:` in the file.")
    try:
        return owner_name(Path(wish.path).stem)
    except NotConfigured as error:
        raise NotConfigured(f"{error}; give --owner, or `owner:` in the file") from None


def _shown(wanted: list[Part]) -> Iterator[Part]:
    console = Console(stderr=True)
    few = len(wanted) < 3
    yield from track(
        wanted, "Trees", console=console, transient=True, disable=few or not console.is_terminal
    )


@contextmanager
def _telling(wish: _Wish, owner: str, dry_run: bool) -> Iterator[Callable[[Part, Report], bool]]:
    """Tell each report as it comes, or all of them at the end as one JSON value.

    What it gives tells a report, and whether there is any difference in it.
    """
    told: list[dict[str, Any]] = []
    changes = 0

    def tell(part: Part, report: Report) -> bool:
        nonlocal changes
        lines = report.difference.lines()
        changes += len(lines)
        if wish.as_json:
            difference = report.difference.as_json()
            told.append({"tree": part.name, "difference": difference, "kept": list(report.kept)})
        else:
            for line in lines:
                echo_line(line)
            for line in report.kept:
                echo_line(f"kept: {line}")
        return bool(report.difference)

    try:
        yield tell
    finally:
        if wish.as_json:
            click.echo(json.dumps({"owner": owner, "dry_run": dry_run, "trees": told}, indent=2))
    if not wish.as_json:
        verb = "would be made" if dry_run else "made"
        noun = "change" if changes == 1 else "changes"
        echo_line(f"{changes} {noun} {verb}, as owner {owner}", err=True)
