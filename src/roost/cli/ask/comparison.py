"""Answers before and after imagined changes, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.capacity import fits_in_words
from roost.cli.ask.explanation import ExplanationPicture
from roost.cli.request.query_text import QueryPairs
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import plain_line
from roost.client.questions import Json

_COLUMNS = tuple(map(TableColumn, ("QUESTION", "BEFORE", "AFTER", "DIFFERENCE")))


def comparison_table(answer: Json, question: str) -> Table:
    """A row for each question."""
    rows = [
        [
            question,
            _IN_WORDS[question](sides["before"]),
            _IN_WORDS[question](sides["after"]),
            _difference(question, sides),
        ]
        for sides in answer["answers"]
    ]
    return Table(_COLUMNS, rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """An answer of `POST /roost/whatif` as people see it."""

    answer: Json
    question: str
    # The query of the question.
    pairs: QueryPairs
    # The command that asks a query of a hint after the same changes.
    hinted_command: Callable[[str], str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, alike in groupby(self.answer.get("changes", ()), lambda change: change["text"]):
            times = len(list(alike))
            yield plain_line(f"{text} ({times} times)" if times > 1 else text)
        yield Text()
        yield comparison_table(self.answer, self.question)
        for sides in self.answer["answers"]:
            if self.question == "explain":
                yield Text()
                yield plain_line("After the changes:", "bold")
                yield ExplanationPicture(sides["after"], self.pairs, self.hinted_command)
            elif self.question == "capacity":
                limit = sides["after"].get("limited_by") or {}
                yield from ([plain_line(f"After: {limit['text']}")] if limit.get("text") else [])


def _candidates_in_words(side: Json) -> str:
    """How many candidates there are.

    >>> _candidates_in_words({"allocation_requests": [{}, {}], "truncated": True})
    '2 or more'
    """
    more = " or more" if side.get("truncated") else ""
    return f"{len(side['allocation_requests']):,}{more}"


def _feasible_in_words(side: Json) -> str:
    return "candidates" if side["feasible"] else "no candidates"


_IN_WORDS: Mapping[str, Callable[[Json], str]] = {
    "capacity": fits_in_words,
    "explain": _feasible_in_words,
    "candidates": _candidates_in_words,
}


def _difference(question: str, sides: Json) -> Any:
    """The difference of two exact numbers; nothing where they are bounds or no numbers."""
    before, after = sides["before"], sides["after"]
    if question == "capacity" and before["exact"] and after["exact"]:
        return f"{after['fits'] - before['fits']:+,}"
    if question == "candidates" and not (before.get("truncated") or after.get("truncated")):
        counts = len(before["allocation_requests"]), len(after["allocation_requests"])
        return f"{counts[1] - counts[0]:+,}"
    return None
