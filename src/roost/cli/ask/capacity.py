"""The commands `roost capacity`, `roost fragmentation` and `roost resilience`: how much fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.asking import TypedQuestion, question_command, usage_command
from roost.cli.ask.options import request_in_text, request_options
from roost.cli.shared.bars import Ink, ink_for, share_bar
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.output import Output, Table, TableColumn, columns_of
from roost.cli.shared.terminal import plain_line
from roost.client.ledger.query import query_string
from roost.client.questions import Json, ask_capacity, ask_fragmentation, ask_resilience

_BAR_WIDTHS = (10, 20)
_NARROW = 100


@question_command()
@click.option("--by-root", is_flag=True, help="Show for each root how many fit there alone.")
@request_options
def capacity(*, asked: TypedQuestion, by_root: bool) -> Output:
    """Count how many more consumers with exactly this request fit, and what limits them.

    \b
    Examples:
      roost capacity VCPU=4 MEMORY_MB=8192
      roost capacity VCPU=4 MEMORY_MB=8192 --by-root --output csv
      roost capacity --group a VGPU=1 --group b VGPU=1 --isolate --watch=5

    \b
    Exit status: 0 if at least one surely fits, 3 if not, 1 after an error.
    """
    query = query_string(asked.pairs)
    answer = asked.answer(
        query,
        ask_capacity(query, by_root=by_root),
        sign="The server counts ...",
    )
    table = root_table(answer) if by_root else total_table(answer)
    status = yes_or_no(answer["fits"])
    return Output(table, answer, CapacityPicture(answer, by_root), status=status)


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


@question_command(needs_request=False)
@click.option(
    "--ask",
    "asks",
    metavar="REQUEST",
    multiple=True,
    help="One more request, as words or as a query string; may be repeated.",
)
@request_options
def fragmentation(*, asked: TypedQuestion, asks: tuple[str, ...]) -> Output:
    """Compare what is free of each resource class with what requests can use.

    Free amounts count as usable for a request on trees where it has a candidate.

    \b
    Examples:
      roost fragmentation VCPU=8 MEMORY_MB=32768
      roost fragmentation --ask 'VCPU=2' --ask 'VCPU=16 --require HW_CPU_X86_AVX2'
      roost fragmentation VGPU=2 --watch=10
    """
    others = [asked.pairs_of(request) for request in map(request_in_text, asks)]
    every = [*([asked.pairs] if asked.pairs else []), *others]
    queries = list(map(query_string, every))
    answer = asked.answer(
        "\n".join(queries),
        ask_fragmentation(queries),
        sign="The server measures ...",
        pairs=tuple(pair for pairs in every for pair in pairs),
        elsewhere=usage_command,
    )
    picture = FragmentationPicture(answer, queries)
    return Output(class_table(answer, len(queries)), answer, picture)


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


@question_command(watches=False, needs_request=False)
@click.option(
    "--lose",
    metavar="NUMBER",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many roots are lost at a time.",
)
def resilience(*, asked: TypedQuestion, lose: int) -> Output:
    """Ask of each root whether what it holds would fit on the remaining ones.

    \b
    Examples:
      roost resilience
      roost resilience --output json

    \b
    Exit status: 0 if every root may be lost, 3 if not, 1 after an error.
    """
    answer = asked.answer(
        "",
        ask_resilience(lose),
        sign="The server loses each root in turn ...",
        elsewhere=usage_command,
    )
    status = yes_or_no(not answer["roots"])
    return Output(lost_table(answer), answer, LossPicture(answer), status=status)


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
