"""The command `roost fragmentation`: what is free, and what of it a request can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.asking import announce, answered, asking, ready_pairs, waiting
from roost.cli.bars import Ink, ink_for, share_bar
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, TableColumn, output_options
from roost.cli.request.command import RequestCommand, optional_request_options, request_in_text
from roost.cli.request.query_text import QueryPairs, query_string
from roost.cli.request.words import TypedRequest
from roost.cli.terminal import plain_line
from roost.cli.watching import present, watch_option
from roost.client.questions import Json, ask_fragmentation

_BAR_WIDTHS = (10, 20)
_NARROW = 100


@click.command(
    cls=RequestCommand,
    short_help="Compare what is free with what requests can use.",
    epilog="""\b
Examples:
  roost fragmentation VCPU=8 MEMORY_MB=32768
  roost fragmentation --ask 'VCPU=2' --ask 'VCPU=16 --require HW_CPU_X86_AVX2'
  roost fragmentation VGPU=2 --watch=10
""",
)
@click.option(
    "--ask",
    "asks",
    metavar="REQUEST",
    multiple=True,
    help="One more request, as words or as a query string; may be repeated.",
)
@optional_request_options
@watch_option
@output_options
@connection_options
def fragmentation(
    *,
    connection: ConnectionSettings,
    request: TypedRequest | None,
    asks: tuple[str, ...],
    only_query: bool,
    output: OutputForm,
    watch: float | None,
) -> None:
    """Compare what is free of each resource class with what requests can use.

    Free amounts count as usable for a request on trees where it has a candidate.
    """
    requests = [*([request] if request else []), *map(request_in_text, asks)]
    with asking(connection, "roost usage") as server:
        asked = [ready_pairs(server, one) for one in requests]
        queries = list(map(query_string, asked))
        if only_query:
            click.echo("\n".join(queries))
            return
        question = ask_fragmentation(queries)
        announce(f"GET {question.address}")
        every: QueryPairs = tuple(pair for pairs in asked for pair in pairs)

        def read() -> Output:
            with waiting("The server measures ...", quiet=watch is not None):
                answer = answered(server, every, question)
            picture = FragmentationPicture(answer, queries)
            return Output(class_table(answer, len(queries)), answer, picture)

        present(read, output, watch)


def class_table(answer: Json, questions: int) -> Table:
    """A row for each resource class, for programs."""
    titles = ["RESOURCE CLASS", "FREE", *(f"USABLE {number + 1}" for number in range(questions))]
    rows = [
        [name, amounts["free"], *amounts["usable"]]
        for name, amounts in sorted(answer["resource_classes"].items())
    ]
    return Table(tuple(TableColumn(title, right=title != titles[0]) for title in titles), rows)


@dataclass(frozen=True, slots=True)
class FragmentationPicture:
    """An answer of `GET /roost/fragmentation` as people see it."""

    answer: Json
    queries: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, query in enumerate(self.queries, 1):
            yield plain_line(f"Usable {number}: where {query} has a candidate", "dim")
        empty = self.answer.get("empty_roots")
        if empty is not None:
            yield plain_line("1 root is empty." if empty == 1 else f"{empty:,} roots are empty.")
        yield Text()
        yield self._classes(ink_for(console), _BAR_WIDTHS[options.max_width >= _NARROW])

    def _classes(self, ink: Ink, width: int) -> Table:
        columns = [TableColumn("RESOURCE CLASS"), TableColumn("FREE", right=True)]
        for number in range(len(self.queries)):
            # A narrow terminal shows the numbers without their bars.
            columns += [
                TableColumn(f"USABLE {number + 1}", right=True),
                TableColumn("%", right=True),
                TableColumn("", optional=True),
            ]
        rows = []
        for name, amounts in sorted(self.answer["resource_classes"].items()):
            free = amounts["free"]
            row = [name, f"{free:,}"]
            for usable in amounts["usable"]:
                share = usable / free if free else 0.0
                percent = f"{100 * share:.0f}" if free else "-"
                style = "green" if share > 0.5 else "yellow"
                row += [f"{usable:,}", percent, share_bar(share, ink, width, style)]
            rows.append(row)
        return Table(columns, rows)
