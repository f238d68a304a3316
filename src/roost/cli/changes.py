"""What a command changes: `--dry-run`, a line for each change, and the sum at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group

from roost.cli.output import Output, OutputForm, Table, TableColumn, print_output
from roost.cli.terminal import echo_line, unbroken
from roost.client.outcome import Outcome, outcome_of
from roost.model.text import counted, done_or_planned

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would change, and change nothing."
)
_COLUMNS = (TableColumn("CHANGE"),)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One of several changes: of which thing, as JSON, and the call that makes it."""

    name: str
    value: Any
    make: Callable[[], object]


def make_changes(
    word: str, planned: Sequence[PlannedChange], form: OutputForm, *, dry_run: bool
) -> None:
    """Make changes one after another, and print them; `word` says what happens to each thing.

    An error or Ctrl-C ends them. Then the changes made before it are printed, and the rest named.
    """
    made = 0
    try:
        for one in planned:
            if not dry_run:
                one.make()
            made += 1
    except BaseException as error:
        if made:
            _print_planned(word, planned[:made], form, dry_run=dry_run)
        _name_the_rest(word, planned[made:], error)
        raise
    _print_planned(word, planned, form, dry_run=dry_run)


def _print_planned(
    word: str, changes: Sequence[PlannedChange], form: OutputForm, *, dry_run: bool
) -> None:
    verb = done_or_planned(word, planned=dry_run)
    lines = [f"{one.name}: {verb}" for one in changes]
    print_changes(lines, [one.value for one in changes], form, dry_run=dry_run)


def _name_the_rest(word: str, rest: Sequence[PlannedChange], error: BaseException) -> None:
    """Say of each thing that it is as before, or that this is unknown of the first one."""
    for number, one in enumerate(rest):
        is_unknown = number == 0 and outcome_of(error) is Outcome.UNKNOWN
        echo_line(f"{one.name}: {'perhaps' if is_unknown else 'not'} {word}", err=True)


def print_changes(
    lines: Sequence[str], changes: Sequence[Any], form: OutputForm, *, dry_run: bool
) -> None:
    """Print changes as lines, or as one value for a program."""
    value = {"dry_run": dry_run, "changes": list(changes)}
    table = Table(_COLUMNS, [[line] for line in lines])
    if lines or form is not OutputForm.TABLE:
        print_output(Output(table, value, Group(*map(unbroken, lines))), form)
    if form is OutputForm.TABLE:
        made = done_or_planned("made", planned=dry_run)
        echo_line(f"{counted(len(lines), 'change')} {made}", err=True)
