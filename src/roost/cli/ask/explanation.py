"""The drawing of an explanation: a funnel for each group, the nearest misses, the hints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from roost.cli.ask.asked import WHOLE_REQUEST, asked_at, group_name
from roost.cli.bars import Ink, ink_for, share_bar
from roost.cli.request.query_text import QueryPairs
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import plain_line, unbroken
from roost.client.questions import Json

_NARROW = 100
_BAR_WIDTHS = (10, 24)
_MARK = " <- no tree is left"
_REQUEST = "request"
_FUNNEL_COLUMNS = (
    TableColumn("STAGE"),
    TableColumn("PROVIDERS", right=True),
    TableColumn("TREES", right=True),
    TableColumn(""),
    TableColumn("WHAT IT ASKS"),
)
_CSV_COLUMNS = tuple(map(TableColumn, ("GROUP", "STAGE", "PROVIDERS", "TREES", "TEXT")))


def stage_table(answer: Json) -> Table:
    """Every stage of an explanation as a row, for programs."""
    rows = [
        [group_name(group["group"], group.get("alternative", 0)), *_counts(stage)]
        for group in answer["groups"]
        for stage in group["funnel"]
    ]
    rows += [[_REQUEST, *_counts(stage)] for stage in answer["trees"]]
    return Table(_CSV_COLUMNS, rows)


def _counts(stage: Json) -> list[Any]:
    return [stage["stage"], stage.get("providers"), stage["trees"], stage.get("text")]


@dataclass(frozen=True, slots=True)
class ExplanationPicture:
    """An answer of `GET /roost/explain` as people see it."""

    answer: Json
    # The query that the answer is about.
    pairs: QueryPairs
    # The command that asks a query of a hint in the same way.
    hinted_command: Callable[[str], str]
    # The host that the question is about; `None` for all trees.
    host: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ink, width = ink_for(console), _BAR_WIDTHS[options.max_width >= _NARROW]
        yield verdict(self.answer, self.host)
        if self.answer.get("exact") is False:
            yield plain_line("The search ended before it was complete: counts of trees are bounds.")
        for group in self.answer["groups"]:
            yield Text()
            alternative = group.get("alternative", 0)
            yield plain_line(f"Group {group_name(group['group'], alternative)}", "bold")
            yield self._funnel(group["funnel"], group["group"], ink, width, alternative)
        yield Text()
        yield plain_line("All groups together", "bold")
        yield self._funnel(self.answer["trees"], WHOLE_REQUEST, ink, width)
        yield from _misses(self.answer["misses"], self.host)
        yield from self._hints()

    def _funnel(
        self,
        stages: Sequence[Json],
        group: str | None,
        ink: Ink,
        width: int,
        alternative: int = 0,
    ) -> Table:
        """A row for each stage at which the query asks something."""
        most = _most_trees(self.answer)
        keys = ("trees",) if group is WHOLE_REQUEST else ("providers", "trees")
        rows = []
        for stage in stages:
            asked = asked_at(self.pairs, group, stage["stage"], alternative)
            is_reason = self._is_reason(stage, group, alternative)
            if asked is None and not is_reason:
                continue
            style = "red" if is_reason else "green" if stage["trees"] else "dim"
            text = plain_line(asked or "", "bold" if is_reason else "")
            if is_reason:
                text.append(_MARK, style="bold red")
            share = stage["trees"] / most if most else 0.0
            drawn = share_bar(share, ink, width, style)
            counts = [f"{stage[key]:,}" for key in keys]
            rows.append([stage["stage"], *counts, drawn, text])
        columns = [
            column
            for column in _FUNNEL_COLUMNS
            if column.title != "PROVIDERS" or group is not WHOLE_REQUEST
        ]
        return Table(columns, rows)

    def _hints(self) -> Iterator[RenderableType]:
        hints = self.answer["hints"]
        if not hints:
            return
        yield Text()
        yield plain_line("What would have candidates", "bold")
        for hint in hints:
            yield plain_line(hint["text"])
            yield unbroken(f"  {self.hinted_command(hint['query'])}", "cyan")

    def _is_reason(self, stage: Json, group: str | None, alternative: int) -> bool:
        reason = self.answer.get("reason") or {}
        if (reason.get("stage"), reason.get("group")) != (stage["stage"], group):
            return False
        chosen = reason.get("alternatives") or {}
        return group is None or bool(chosen.get(group, 0) == alternative)


def verdict(answer: Json, host: str | None = None) -> Text:
    """The answer in a sentence: whether there are candidates, and the dominant reason if not."""
    where = f" on {host}" if host else ""
    if answer["feasible"]:
        return plain_line(f"There are candidates{where}.", "bold green")
    line = plain_line(f"There are no candidates{where}.", "bold red")
    reason = answer.get("reason") or {}
    line.append_text(plain_line(f" {reason.get('text') or ''}".rstrip(), "not bold default"))
    return line


def _most_trees(answer: Json) -> int:
    stages = [stage for group in answer["groups"] for stage in group["funnel"]]
    return max((stage["trees"] for stage in [*stages, *answer["trees"]]), default=0)


def _misses(misses: Sequence[Json], host: str | None) -> Iterator[RenderableType]:
    if not misses:
        return
    yield Text()
    yield plain_line("What it lacks" if host else "Nearest misses", "bold")
    for miss in misses:
        if not host:
            yield plain_line(miss["root"]["name"])
        for lack in miss["lacks"]:
            yield Padding(plain_line(lack["text"]), (0, 0, 0, 2), expand=False)
