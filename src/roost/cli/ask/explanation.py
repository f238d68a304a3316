"""The drawing of an explanation: a funnel for each group, the nearest misses, the hints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from roost.cli.bars import Ink, ink_for, share_bar
from roost.cli.output import Table, columns_of
from roost.cli.request.query_text import QueryPairs
from roost.cli.terminal import plain_line, unbroken
from roost.client.questions import Json

WHOLE_REQUEST = None
"""Stands for the stages of all groups together."""


def asked_at(pairs: QueryPairs, group: str | None, stage: str) -> str | None:
    """What the query asks of this group at this stage; `None` if it asks nothing there.

    >>> asked_at((("resources", "VCPU:4,MEMORY_MB:1024"),), "", "room")
    'VCPU=4, MEMORY_MB=1024 free'
    >>> asked_at((("resources", "VCPU:4"),), "", "traits") is None
    True
    """
    if group is WHOLE_REQUEST:
        return _of_request(pairs, stage)
    amounts = [part.replace(":", "=") for part in _parts(pairs, f"resources{group}")]
    if stage in ("class", "unit", "room"):
        if not amounts:
            return None
        names = ", ".join(part.partition("=")[0] for part in amounts)
        return {
            "class": f"inventory of {names}",
            "unit": f"units that allow {', '.join(amounts)}",
            "room": f"{', '.join(amounts)} free",
        }[stage]
    keys = {"traits": "required", "aggregates": "member_of", "in_tree": "in_tree"}
    if stage not in keys:
        return stage
    values = [value for key, value in pairs if key == f"{keys[stage]}{group}"]
    if stage == "traits" and not group:
        # The providers of this group have its required traits together.
        values = [part for part in _parts(pairs, "required") if part.startswith("!")]
    return f"{stage.rstrip('s')} {' and '.join(values)}" if values else None


def _of_request(pairs: QueryPairs, stage: str) -> str | None:
    given = dict(pairs)
    if stage == "root":
        root = [given[key] for key in ("root_required", "in_tree") if key in given]
        return f"root {' in '.join(root)}" if root else None
    if stage == "groups":
        return "each group by itself"
    return "; ".join(["all groups at once", *_between_groups(pairs)])


def _between_groups(pairs: QueryPairs) -> Iterator[str]:
    traits = [trait for key, value in pairs if key == "required" for trait in _required(value)]
    if traits:
        yield f"traits {', '.join(traits)}"
    for key, value in pairs:
        if key == "same_subtree":
            yield f"same subtree {', '.join(map(group_name, value.split(',')))}"
        elif (key, value) == ("group_policy", "isolate"):
            yield "a provider for each group"


def _required(value: str) -> list[str]:
    """The required traits of a value; alternatives stay together."""
    if value.startswith("in:"):
        return [value]
    return [part for part in value.split(",") if not part.startswith("!")]


def group_name(suffix: str) -> str:
    """A group as people type it.

    >>> group_name("_net"), group_name("")
    ('net', 'unsuffixed')
    """
    return suffix.removeprefix("_") or "unsuffixed"


def _parts(pairs: QueryPairs, wanted: str) -> list[str]:
    return [part for key, value in pairs if key == wanted for part in value.split(",")]


_NARROW = 100
_BAR_WIDTHS = (10, 24)
_MARK = " <- no tree is left"
_REQUEST = "request"
_FUNNEL_COLUMNS = columns_of("STAGE, >PROVIDERS, >TREES, , WHAT IT ASKS")
_CSV_COLUMNS = columns_of("GROUP, STAGE, PROVIDERS, TREES, TEXT")


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
            yield plain_line(f"Group {group_name(group['group'])}", "bold")
            yield self._funnel(group["funnel"], group["group"], ink, width)
        yield Text()
        yield plain_line("All groups together", "bold")
        yield self._funnel(self.answer["trees"], WHOLE_REQUEST, ink, width)
        yield from _misses(self.answer["misses"], self.host)
        yield from self._hints()

    def _funnel(self, stages: Sequence[Json], group: str | None, ink: Ink, width: int) -> Table:
        """A row for each stage at which the query asks something."""
        most = _most_trees(self.answer)
        keys = ("trees",) if group is WHOLE_REQUEST else ("providers", "trees")
        rows = []
        for stage in stages:
            asked = asked_at(self.pairs, group, stage["stage"])
            is_reason = self._is_reason(stage, group)
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

    def _is_reason(self, stage: Json, group: str | None) -> bool:
        reason = self.answer.get("reason") or {}
        return (reason.get("stage"), reason.get("group")) == (stage["stage"], group)


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
