"""What a command prints: a table or a drawing for people, JSON, YAML or CSV for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any

import click
import yaml
from rich.console import RenderableType

from roost.cli.table import Table
from roost.cli.terminal import output_console
from roost.client.errors import PlacementError
from roost.model.errors import OperatorError
from roost.model.text import has_next, with_next


class OutputForm(StrEnum):
    """The forms of an output."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """One result in all its forms."""

    table: Table
    # What JSON and YAML show.
    value: Any
    # What a person sees instead of the table.
    drawing: RenderableType | None = None

    @classmethod
    def of(cls, table: Table) -> Output:
        """A table whose rows are also the objects of JSON and YAML."""
        return cls(table, table.as_json())

    @property
    def picture(self) -> RenderableType:
        """What a person sees."""
        return self.table if self.drawing is None else self.drawing

    def text(self, form: OutputForm, *, titles: bool = True) -> str:
        """The output for a program."""
        if form is OutputForm.JSON:
            return json.dumps(self.value, indent=2)
        if form is OutputForm.YAML:
            return yaml.safe_dump(self.value, sort_keys=False, default_flow_style=False).rstrip()
        file = io.StringIO()
        rows = list(self.table.text_rows())
        csv.writer(file, lineterminator="\n").writerows(rows if titles else rows[1:])
        return file.getvalue().rstrip("\n")


def print_output(output: Output, form: OutputForm) -> None:
    """Print a result in this form; colours and folded lines are for terminals only."""
    if form is not OutputForm.TABLE:
        click.echo(output.text(form))
        return
    console = output_console()
    if output.drawing is not None or console.is_terminal:
        console.print(output.picture, crop=False)
    else:
        for line in output.table.lines():
            click.echo(line)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--output` and `--json` to a command, which gets the form as the argument `output`."""

    @wraps(command)
    def with_output(*, output: str | None, as_json: bool, **arguments: Any) -> Any:
        if as_json and output not in (None, "json"):
            raise click.UsageError(f"--json and --output {output} contradict each other.")
        form = OutputForm.JSON if as_json else OutputForm(output or "table")
        try:
            return command(output=form, **arguments)
        except PlacementError as error:
            if has_next(str(error)):
                raise
            path = click.get_current_context().command_path
            raise OperatorError(with_next(str(error), f"{path} --help")) from error

    wrapped: Callable[..., Any] = with_output
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


_OPTIONS = (
    click.option(
        "-o",
        "--output",
        type=click.Choice([form.value for form in OutputForm]),
        help="Form of the output. [default: table]",
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as --output json."),
)
