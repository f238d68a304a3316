"""The command `roost whatif`: the same question before and after imagined changes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

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
from roost.cli.ask.capacity import fits_in_words
from roost.cli.ask.explanation import ExplanationPicture
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options, print_output
from roost.cli.parameters import WORD, adding
from roost.cli.request.changes import (
    CHANGE_OPTIONS,
    ImaginedChange,
    named_providers,
    read_changes,
)
from roost.cli.request.command import (
    RequestCommand,
    explaining_usage,
    request_options,
    typed_words,
    unexposed_option,
)
from roost.cli.request.query_text import QueryPairs, UnreadableRequest, query_string
from roost.cli.request.words import TypedRequest, read_request
from roost.cli.terminal import plain_line
from roost.client.questions import Json, Questions, ask_whatif

_COLUMNS = columns_of("QUESTION, BEFORE, AFTER, DIFFERENCE")


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


_SHOWN_MAX = 1000
QUESTIONS = ("capacity", "explain", "candidates")


_PROVIDER: dict[str, Any] = {"type": WORD, "shell_complete": complete_providers}
_change_options = adding(
    unexposed_option(
        "--drain",
        "HOST",
        "Nothing new goes to this provider and those below it; allocations stay.",
        **_PROVIDER,
    ),
    unexposed_option(
        "--remove",
        "HOST",
        "This provider and those below it go, with their allocations.",
        **_PROVIDER,
    ),
    unexposed_option(
        "--add-host",
        "LIKE",
        "A new, empty tree as that of this provider; `10*LIKE` adds ten.",
        **_PROVIDER,
    ),
    unexposed_option(
        "--set",
        "HOST:CLASS=TOTAL",
        "An inventory gets this total; HOST:CLASS.reserved=2 changes another field.",
    ),
    unexposed_option("--add-trait", "HOST:TRAIT", "A provider gets this trait."),
    unexposed_option("--drop-trait", "HOST:TRAIT", "A provider loses this trait."),
    unexposed_option(
        "--claim",
        "REQUEST",
        "A new consumer claims this, given as words or as a query string; `10*REQUEST` for ten.",
    ),
    unexposed_option("--release", "CONSUMER", "A consumer gives back all that it holds."),
)


@click.command(
    cls=RequestCommand,
    short_help="Ask a question before and after imagined changes.",
    epilog="""\b
Examples:
  roost whatif --drain compute-1 capacity VCPU=4 MEMORY_MB=8192
  roost whatif --add-host '10*compute-1' capacity VCPU=64
  roost whatif --set compute-1:VCPU=64 --add-trait compute-1:CUSTOM_GOLD \\
      explain VCPU=32 --require CUSTOM_GOLD
  roost whatif --claim '5*VCPU=8 MEMORY_MB=16384' capacity VCPU=4
""",
)
@_change_options
@click.argument("question", type=click.Choice(QUESTIONS))
@request_options
@output_options
@connection_options
def whatif(
    *,
    connection: ConnectionSettings,
    question: str,
    request: TypedRequest,
    only_query: bool,
    output: OutputForm,
) -> None:
    """Ask a question before and after changes that are made nowhere but in the answer.

    Changes apply in their order. The question is `capacity`, `explain` or `candidates`, and its
    request stands behind it.
    """
    with asking(connection, any_server_command(request.pairs)) as server:
        pairs = ready_pairs(server, request)
        query = query_string(pairs)
        changes, named = _changes(server)
        if only_query:
            click.echo(query)
            return
        asked = ask_whatif(changes, [{question: query}])
        announce(f"POST {asked.address} {_cut(json.dumps(asked.body))}")
        with waiting("The server imagines ..."):
            answer = answered(server, pairs + named, asked, named_providers(changes))
        picture = Comparison(answer, question, pairs, _hinted_command)
        print_output(Output(comparison_table(answer, question), answer, picture), output)


def _hinted_command(query: str) -> str:
    """The command that asks a query close by after the same changes."""
    changes = " ".join(
        f"{option} {shlex.quote(value)}"
        for option, value in typed_words()
        if option in CHANGE_OPTIONS
    )
    return f"roost whatif {changes} candidates --from-query {shlex.quote(query)}"


def _cut(text: str) -> str:
    """The beginning of a body that many claims make long."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]} ..."


def _changes(server: Questions) -> tuple[Sequence[ImaginedChange], QueryPairs]:
    """The changes of the command line, and the pairs of all their claims."""
    named: list[tuple[str, str]] = []

    def query_of(text: str) -> str:
        pairs = ready_pairs(server, read_request(text))
        named.extend(pairs)
        return query_string(pairs)

    with explaining_usage():
        changes = read_changes(typed_words(), query_of)
        if not changes:
            raise UnreadableRequest(
                "There is no change to imagine. Name one, such as --drain compute-1"
            )
    return changes, tuple(named)
