"""The command `roost capacity`: how many consumers with a request fit."""

from __future__ import annotations

from dataclasses import dataclass

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.asking import (
    announce,
    answered,
    any_server_command,
    asking,
    ready_pairs,
    waiting,
)
from roost.cli.bars import Ink, ink_for, share_bar
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options
from roost.cli.request.command import RequestCommand, request_options
from roost.cli.request.query_text import query_string
from roost.cli.request.words import TypedRequest
from roost.cli.terminal import plain_line
from roost.cli.watching import present, watch_option
from roost.client.questions import Json, ask_capacity


@click.command(
    cls=RequestCommand,
    short_help="Count how many more of a request fit.",
    epilog="""\b
Examples:
  roost capacity VCPU=4 MEMORY_MB=8192
  roost capacity VCPU=4 MEMORY_MB=8192 --by-root --output csv
  roost capacity --group a VGPU=1 --group b VGPU=1 --isolate --watch=5
""",
)
@click.option("--by-root", is_flag=True, help="Show for each root how many fit there alone.")
@request_options
@watch_option
@output_options
@connection_options
def capacity(
    *,
    connection: ConnectionSettings,
    request: TypedRequest,
    by_root: bool,
    only_query: bool,
    output: OutputForm,
    watch: float | None,
) -> None:
    """Count how many more consumers with exactly this request fit, and what limits them."""
    with asking(connection, any_server_command(request.pairs)) as server:
        pairs = ready_pairs(server, request)
        query = query_string(pairs)
        if only_query:
            click.echo(query)
            return
        question = ask_capacity(query, by_root=by_root)
        announce(f"GET {question.address}")

        def read() -> Output:
            with waiting("The server counts ...", quiet=watch is not None):
                answer = answered(server, pairs, question)
            table = root_table(answer) if by_root else total_table(answer)
            return Output(table, answer, CapacityPicture(answer, by_root))

        present(read, output, watch)


def fits_in_words(answer: Json) -> str:
    """The number that fits, or its two bounds.

    >>> fits_in_words({"fits": 1234, "exact": True})
    '1,234'
    >>> fits_in_words({"fits": 5, "exact": False, "at_most": 9})
    '5 to 9'
    """
    fits, most = answer["fits"], answer.get("at_most")
    if answer["exact"] or most is None or most == fits:
        return f"{fits:,}" if answer["exact"] else f"{fits:,} or more"
    return f"{fits:,} to {most:,}"


def total_table(answer: Json) -> Table:
    """The whole answer in one row, for programs."""
    columns = columns_of("FITS, EXACT, AT MOST, LIMITED BY, TEXT")
    limit = answer.get("limited_by") or {}
    at_most = answer["fits"] if answer["exact"] else answer.get("at_most")
    row = [answer["fits"], answer["exact"], at_most, limit.get("resource_class"), limit.get("text")]
    return Table(columns, [row])


def root_table(answer: Json) -> Table:
    """A row for each root, for programs."""
    columns = columns_of("ROOT, FITS, AT MOST, UUID")
    return Table(
        columns,
        [
            [
                root["root"]["name"],
                root["fits"],
                root.get("at_most", root["fits"]),
                root["root"]["uuid"],
            ]
            for root in answer.get("roots") or ()
        ],
    )


@dataclass(frozen=True, slots=True)
class CapacityPicture:
    """An answer of `GET /roost/capacity` as people see it."""

    answer: Json
    by_root: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        answer = self.answer
        line = plain_line(fits_in_words(answer), "bold")
        line.append(" fit." if answer["exact"] else " fit. The number is not exact.")
        yield line
        limit = answer.get("limited_by") or {}
        if limit.get("text"):
            yield plain_line(limit["text"])
        if self.by_root:
            yield Text()
            yield self._roots(ink_for(console))

    def _roots(self, ink: Ink) -> Table:
        roots = sorted(
            self.answer.get("roots") or (), key=lambda root: (-root["fits"], root["root"]["name"])
        )
        most = max((root["fits"] for root in roots), default=0)
        rows = [
            [
                root["root"]["name"],
                fits_in_words({**root, "exact": "at_most" not in root}),
                share_bar(root["fits"] / most if most else 0.0, ink, style="green"),
            ]
            for root in roots
        ]
        return Table(columns_of("ROOT, >FITS, "), rows)
