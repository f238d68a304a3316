"""The command `roost resilience`: which roots cannot be lost."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.asking import announce, asking, waiting
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import (
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.parameters import usage_status
from roost.cli.request.command import EXIT_NONE, EXIT_UNKNOWN
from roost.cli.terminal import plain_line
from roost.client.questions import Json, ask_resilience


@click.command(
    cls=usage_status(EXIT_UNKNOWN),
    short_help="Find roots whose loss the rest could not absorb.",
    epilog="""\b
Examples:
  roost resilience
  roost resilience --output json

\b
Exit status: 0 if every root may be lost, 2 if not, 1 after an error.
""",
)
@click.option(
    "--lose",
    metavar="NUMBER",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many roots are lost at a time.",
)
@output_options
@connection_options
def resilience(*, connection: ConnectionSettings, lose: int, output: OutputForm) -> None:
    """Ask of each root whether what it holds would fit on the remaining ones."""
    with asking(connection, "roost usage") as server:
        question = ask_resilience(lose)
        announce(f"GET {question.address}")
        with waiting("The server loses each root in turn ..."):
            answer = server.answer(question)
        print_output(Output(lost_table(answer), answer, LossPicture(answer)), output)
    if answer["roots"]:
        sys.exit(EXIT_NONE)


def lost_table(answer: Json) -> Table:
    """A row for each root whose loss is no option, for programs."""
    columns = columns_of("ROOT, WHY, UUID?")
    return Table(
        columns,
        [
            [root["root"]["name"], root.get("text"), root["root"]["uuid"]]
            for root in answer["roots"]
        ],
    )


@dataclass(frozen=True, slots=True)
class LossPicture:
    """An answer of `GET /roost/resilience` as people see it."""

    answer: Json

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        survives, lost = self.answer["survives"], self.answer["roots"]
        if not lost:
            yield plain_line(f"Each of the {survives:,} roots may be lost.", "bold green")
        else:
            roots = "root" if len(lost) == 1 else "roots"
            yield plain_line(
                f"{len(lost):,} {roots} may not be lost; {survives:,} may.", "bold red"
            )
        if self.answer.get("exact") is False:
            yield plain_line("The search was not complete: more of them may be safe to lose.")
        if lost:
            yield Text()
            yield lost_table(self.answer)
