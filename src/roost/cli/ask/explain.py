"""The commands `roost explain` and `roost why`: why a request has candidates or none."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from roost.cli.ask.asking import (
    TypedQuestion,
    any_server_command,
    question_command,
    room_command,
)
from roost.cli.ask.options import request_options
from roost.cli.ask.words import group_name
from roost.cli.shared.bars import Ink, ink_for, share_bar
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.output import Output, Table, columns_of
from roost.cli.shared.terminal import plain_line, unbroken
from roost.client.ledger.query import QueryPairs, query_string
from roost.client.questions import Json, ask_why

_NARROW = 100
_BAR_WIDTHS = (10, 24)
_MARK = " <- no tree is left"
_REQUEST = "request"
_FUNNEL_COLUMNS = columns_of("STAGE, >PROVIDERS, >TREES, , WHAT IT ASKS")
_CSV_COLUMNS = columns_of("GROUP, STAGE, PROVIDERS, TREES, TEXT")


@question_command()
@click.option(
    "--misses",
    metavar="NUMBER",
    type=click.IntRange(0, 100),
    help="How many of the nearest misses to show if nothing fits. [default: 5]",
)
@request_options
def explain(*, asked: TypedQuestion, misses: int | None) -> Output:
    """Say why a request has candidates or none.

    A funnel shows for each group of the request what each stage leaves. Below it stand the trees
    that lack the least, and requests that would have candidates.

    \b
    Examples:
      roost explain VCPU=4 MEMORY_MB=8192
      roost explain VCPU=4 --require HW_CPU_X86_AVX2 --group net SRIOV_NET_VF=1
      roost explain --from-query 'resources=VCPU%3A4&limit=1000'
      roost explain VCPU=4 --watch=5

    \b
    Exit status: 0 if there are candidates, 3 if there are none, 1 after an error.
    """
    return _explained(asked, None, misses)


@question_command()
@click.argument("host", type=PROVIDER, metavar="HOST")
@request_options
def why(*, asked: TypedQuestion, host: str) -> Output:
    """Say why a request fits on one host or not.

    HOST is the name or uuid of any provider of the host's tree.

    \b
    Examples:
      roost why compute-1 VCPU=4 MEMORY_MB=8192
      roost why compute-1 --from-query 'resources=VCPU%3A4'

    \b
    Exit status: 0 if there are candidates, 3 if there are none, 1 after an error.
    """
    return _explained(asked, host, None)


def _explained(asked: TypedQuestion, host: str | None, misses: int | None) -> Output:
    query = query_string(asked.pairs)
    answer = asked.answer(
        query,
        ask_why(query, host, misses),
        sign="The server explains ...",
        providers=[host] if host else [],
        elsewhere=partial(_elsewhere, host),
    )
    picture = ExplanationPicture(answer, asked.pairs, partial(_hinted_command, host), host)
    return Output(stage_table(answer), answer, picture, status=yes_or_no(answer["feasible"]))


def _elsewhere(host: str | None, pairs: QueryPairs) -> str:
    """A server without explanations lists providers, or candidates in the tree of a host."""
    return room_command(pairs) if host is None else any_server_command((*pairs, ("in_tree", host)))


def _hinted_command(host: str | None, query: str) -> str:
    """The command that asks the same question of a query close by."""
    asked = "roost candidates" if host is None else f"roost why {shlex.quote(host)}"
    return f"{asked} --from-query {shlex.quote(query)}"


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
        if not self.answer["feasible"]:
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


WHOLE_REQUEST = None
"""Stands for the stages of all groups together."""


def asked_at(pairs: QueryPairs, group: str | None, stage: str, alternative: int = 0) -> str | None:
    """What the query asks of this group at this stage; `None` if it asks nothing there.

    An alternative is one of `or_resources`, from 1 on; 0 is `resources`.

    >>> asked_at((("resources", "VCPU:4,MEMORY_MB:1024"),), "", "room")
    'VCPU=4, MEMORY_MB=1024 free'
    >>> asked_at((("resources", "VCPU:4"),), "", "traits") is None
    True
    """
    if group is WHOLE_REQUEST:
        return _of_request(pairs, stage)
    amounts = [part.replace(":", "=") for part in _taken(pairs, group, alternative)]
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
    if stage == "in_tree":
        values += [f"below {value}" for key, value in pairs if key == f"in_subtree{group}"]
    if stage == "traits" and not group:
        # The providers of this group have its required traits together.
        values = [part for part in _parts(pairs, "required") if part.startswith("!")]
    return f"{stage.rstrip('s')} {' and '.join(values)}" if values else None


def _of_request(pairs: QueryPairs, stage: str) -> str | None:
    if stage == "root":
        traits = [value for key, value in pairs if key == "root_required"]
        root = [" and ".join(traits)] if traits else []
        root += [value for key, value in pairs if key in ("in_tree", "in_subtree")]
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
        elif key == "isolate":
            yield f"a provider for each of {', '.join(map(group_name, value.split(',')))}"


def _required(value: str) -> list[str]:
    """The required traits of a value; alternatives stay together."""
    if value.startswith("in:"):
        return [value]
    return [part for part in value.split(",") if not part.startswith("!")]


def _taken(pairs: QueryPairs, group: str, alternative: int) -> list[str]:
    """The amounts that a group takes, by its alternative."""
    if not alternative:
        return _parts(pairs, f"resources{group}")
    values = [value for key, value in pairs if key == f"or_resources{group}"]
    return values[alternative - 1].split(",") if alternative <= len(values) else []


def _parts(pairs: QueryPairs, wanted: str) -> list[str]:
    return [part for key, value in pairs if key == wanted for part in value.split(",")]
