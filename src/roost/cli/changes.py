"""What a command changes: `--dry-run`, a line for each change, and the sum at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Group

from roost.cli.output import Output, OutputForm, print_output
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import echo_line, unbroken
from roost.model.errors import OperatorError
from roost.model.text import counted

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would change, and change nothing."
)
_COLUMNS = (TableColumn("CHANGE"),)


@contextmanager
def telling_what_was_made(lines: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Print the changes made so far, if an error keeps the rest of them from being made."""
    try:
        yield
    except OperatorError:
        for line in lines():
            echo_line(f"made before the error: {line}", err=True)
        raise


def print_changes(
    lines: Sequence[str], changes: Sequence[Any], form: OutputForm, *, dry_run: bool
) -> None:
    """Print changes as lines, or as one value for a program."""
    value = {"dry_run": dry_run, "changes": list(changes)}
    table = Table(_COLUMNS, [[line] for line in lines])
    if lines or form is not OutputForm.TABLE:
        print_output(Output(table, value, Group(*map(unbroken, lines))), form)
    if form is OutputForm.TABLE:
        verb = "would be made" if dry_run else "made"
        echo_line(f"{counted(len(lines), 'change')} {verb}", err=True)
