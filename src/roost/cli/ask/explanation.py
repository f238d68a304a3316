"""The drawing of an explanation: a funnel for each group, the nearest misses, the hints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from roost.cli.bars import bar, ink_of
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import plain
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
    TableColumn("WHAT IS LEFT"),
)
_CSV_COLUMNS = tuple(map(TableColumn, ("GROUP", "STAGE", "PROVIDERS", "TREES", "TEXT")))


def group_name(suffix: str) -> str:
    """A group as people type it.

    >>> group_name("_net"), group_name("")
    ('net', 'unsuffixed')
    """
    return suffix.removeprefix("_") or "unsuffixed"


def stage_table(answer: Json) -> Table:
    """Every stage of an explanation as a row, for programs."""
    rows = [
        [group_name(group["group"]), *_counts(stage)]
        for group in answer["groups"]
        for stage in group["funnel"]
    ]
    rows += [[_REQUEST, *_counts(stage)] for stage in answer["trees"]]
    return Table(_CSV_COLUMNS, rows)


def _counts(stage: Json) -> list[Any]:
    return [stage["stage"], stage.get("providers"), stage["trees"], stage.get("text")]


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer of `GET /roost/explain` as people see it."""

    answer: Json
    # The host that the question is about; `None` for all trees.
    host: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield verdict(self.answer, self.host)
        for group in self.answer["groups"]:
            yield Text()
            yield plain(f"Group {group_name(group['group'])}", "bold")
            yield self._funnel(group["funnel"], group["group"], options)
        yield Text()
        yield plain("All groups together", "bold")
        yield self._funnel(self.answer["trees"], None, options)
        yield from _misses(self.answer["misses"], self.host)
        yield from _hints(self.answer["hints"])

    def _funnel(self, stages: Sequence[Json], group: str | None, options: ConsoleOptions) -> Table:
        reason = self.answer.get("reason") or {}
        most = _most_trees(self.answer)
        ink, width = ink_of(options), _BAR_WIDTHS[options.max_width >= _NARROW]
        rows = []
        for stage in stages:
            is_reason = (reason.get("stage"), reason.get("group")) == (stage["stage"], group)
            style = "red" if is_reason else "green" if stage["trees"] else "dim"
            text = plain(stage.get("text") or "", "bold" if is_reason else "")
            if is_reason:
                text.append(_MARK, style="bold red")
            share = stage["trees"] / most if most else 0.0
            providers = stage.get("providers")
            rows.append(
                [
                    stage["stage"],
                    "" if providers is None else f"{providers:,}",
                    f"{stage['trees']:,}",
                    bar(share, width, ink, style),
                    text,
                ]
            )
        columns = [
            column for column in _FUNNEL_COLUMNS if column.title != "PROVIDERS" or group is not None
        ]
        if group is None:
            rows = [[row[0], *row[2:]] for row in rows]
        return Table(columns, rows)


def verdict(answer: Json, host: str | None = None) -> Text:
    """The answer in a sentence: whether there are candidates, and the dominant reason if not."""
    where = f" on {host}" if host else ""
    if answer["feasible"]:
        return plain(f"There are candidates{where}.", "bold green")
    line = plain(f"There are no candidates{where}.", "bold red")
    reason = answer.get("reason") or {}
    line.append_text(plain(f" {reason.get('text') or ''}".rstrip(), "not bold default"))
    return line


def _most_trees(answer: Json) -> int:
    stages = [stage for group in answer["groups"] for stage in group["funnel"]]
    return max((stage["trees"] for stage in [*stages, *answer["trees"]]), default=0)


def _misses(misses: Sequence[Json], host: str | None) -> Iterator[RenderableType]:
    if not misses:
        return
    yield Text()
    yield plain("What it lacks" if host else "Nearest misses", "bold")
    for miss in misses:
        if not host:
            yield plain(miss["root"]["name"])
        for lack in miss["lacks"]:
            yield plain(f"  {lack['text']}")


def _hints(hints: Sequence[Json]) -> Iterator[RenderableType]:
    if not hints:
        return
    yield Text()
    yield plain("What would have candidates", "bold")
    for hint in hints:
        yield plain(hint["text"])
        yield plain(f"  roost candidates --from-query {shlex.quote(hint['query'])}", "cyan")
