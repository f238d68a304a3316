"""The command `roost whatif`: the same question before and after imagined changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from roost.cli.ask.asking import TypedQuestion, question_command
from roost.cli.ask.capacity import fits_in_words
from roost.cli.ask.explain import ExplanationPicture
from roost.cli.ask.options import (
    explaining_usage,
    request_options,
    typed_words,
    unexposed_option,
)
from roost.cli.ask.words import (
    RequestWord,
    UnreadableRequest,
    read_request,
)
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.output import Output, Table, columns_of
from roost.cli.shared.parameters import adding
from roost.cli.shared.terminal import plain_line
from roost.client.ledger.query import QueryPairs, query_string
from roost.client.questions import Json, ask_whatif
from roost.model.identifiers import is_uuid

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
_FITS: Mapping[str, Callable[[Json], Any]] = {
    "capacity": lambda side: side["fits"],
    "explain": lambda side: side["feasible"],
    "candidates": lambda side: side["allocation_requests"],
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


QUESTIONS = ("capacity", "explain", "candidates")


_change_options = adding(
    unexposed_option(
        "--drain",
        "HOST",
        "Nothing new goes to this provider and those below it; allocations stay.",
        type=PROVIDER,
    ),
    unexposed_option(
        "--remove",
        "HOST",
        "This provider and those below it go, with their allocations.",
        type=PROVIDER,
    ),
    unexposed_option(
        "--add-host",
        "LIKE",
        "A new, empty tree as that of this provider; `10*LIKE` adds ten.",
        type=PROVIDER,
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


@question_command(watches=False)
@_change_options
@click.argument("question", type=click.Choice(QUESTIONS))
@request_options
def whatif(*, asked: TypedQuestion, question: str) -> Output:
    """Ask a question before and after changes that are made nowhere but in the answer.

    Changes apply in their order. The question is `capacity`, `explain` or `candidates`, and its
    request stands behind it.

    \b
    Examples:
      roost whatif --drain compute-1 capacity VCPU=4 MEMORY_MB=8192
      roost whatif --add-host '10*compute-1' capacity VCPU=64
      roost whatif --set compute-1:VCPU=64 --add-trait compute-1:CUSTOM_GOLD \\
          explain VCPU=32 --require CUSTOM_GOLD
      roost whatif --claim '5*VCPU=8 MEMORY_MB=16384' capacity VCPU=4

    \b
    Exit status: 0 if something fits after the changes, 3 if not, 1 after an error.
    """
    query = query_string(asked.pairs)
    changes, named = _changes(asked)
    answer = asked.answer(
        query,
        ask_whatif(changes, [{question: query}]),
        sign="The server imagines ...",
        pairs=asked.pairs + named,
        providers=named_providers(changes),
    )
    picture = Comparison(answer, question, asked.pairs, _hinted_command)
    status = yes_or_no(all(_FITS[question](sides["after"]) for sides in answer["answers"]))
    return Output(comparison_table(answer, question), answer, picture, status=status)


def _hinted_command(query: str) -> str:
    """The command that asks a query close by after the same changes."""
    changes = " ".join(
        f"{option} {shlex.quote(value)}"
        for option, value in typed_words()
        if option in CHANGE_OPTIONS
    )
    return f"roost whatif {changes} candidates --from-query {shlex.quote(query)}"


def _changes(asked: TypedQuestion) -> tuple[Sequence[TypedChange], QueryPairs]:
    """The changes of the command line, and the pairs of all their claims."""
    named: list[tuple[str, str]] = []

    def query_of(text: str) -> str:
        pairs = asked.pairs_of(read_request(text))
        named.extend(pairs)
        return query_string(pairs)

    with explaining_usage():
        changes = read_changes(typed_words(), query_of)
        if not changes:
            raise UnreadableRequest(
                "There is no change to imagine. Name one, such as --drain compute-1"
            )
    return changes, tuple(named)


TypedChange: TypeAlias = dict[str, Any]

CHANGES_MAX = 100
"""The number of changes that a server takes at once."""

_SEVERAL = re.compile(r"([1-9][0-9]{0,4})\*(.+)\Z")
# A name of a provider may have colons, as the address of a device has.
_INVENTORY = re.compile(
    r"(?P<host>.+):(?P<name>[A-Za-z0-9_]+?)(?:\.(?P<field>[a-z_]+))?=(?P<value>[0-9]+(?:\.[0-9]+)?)\Z"
)
_TRAIT = re.compile(r"(?P<host>.+):(?P<name>[A-Za-z0-9_]+)\Z")
_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def read_changes(words: Iterable[RequestWord], query_of: Callable[[str], str]) -> list[TypedChange]:
    """The changes among these words, in their order; `query_of` makes a query of a claim's text.

    >>> read_changes([RequestWord("--drain", "compute-1"), RequestWord("", "VCPU=4")], str)
    [{'drain': 'compute-1'}]
    """
    changes: list[TypedChange] = []
    for option, value in words:
        if option == "--claim":
            times, text = _several(value)
            changes += [{"claim": {"query": query_of(text), "order": "first"}}] * times
        elif option in _CHANGES:
            changes.append(_CHANGES[option](value))
    if len(changes) > CHANGES_MAX:
        raise UnreadableRequest(
            f"{len(changes)} changes are more than the {CHANGES_MAX} that a server imagines at "
            "once. Leave some out; each claim counts as one."
        )
    return changes


def named_providers(changes: Iterable[TypedChange]) -> Iterator[str]:
    """The providers that these changes name.

    >>> list(named_providers([{"drain": "a"}, {"add": {"like": "b"}}, {"release": "c"}]))
    ['a', 'b']
    """
    for change in changes:
        for kind, value in change.items():
            if kind in ("drain", "remove"):
                yield value
            elif kind in ("add", "inventory", "traits"):
                yield value.get("like") or value["provider"]


def _several(value: str) -> tuple[int, str]:
    """A number of times, and the rest.

    >>> _several("3*compute-1"), _several("compute-1")
    ((3, 'compute-1'), (1, 'compute-1'))
    """
    found = _SEVERAL.match(value)
    return (int(found[1]), found[2]) if found else (1, value)


def _addition(value: str) -> TypedChange:
    count, like = _several(value)
    return {"add": {"like": like, "count": count}}


def _inventory(value: str) -> TypedChange:
    """A field of an inventory, which is the total if none is named.

    >>> _inventory("compute-1:VCPU.reserved=2")
    {'inventory': {'provider': 'compute-1', 'resource_class': 'VCPU', 'reserved': 2}}
    """
    found = _INVENTORY.match(value)
    field = found["field"] or "total" if found else ""
    if found is None or field not in _FIELDS:
        raise UnreadableRequest(
            f"--set {value}: write a provider, a resource class and an amount, as in "
            f"--set compute-1:VCPU=64 or compute-1:VCPU.reserved=2. Fields: {', '.join(_FIELDS)}."
        )
    is_ratio = field == "allocation_ratio"
    if "." in found["value"] and not is_ratio:
        raise UnreadableRequest(f"--set {value}: {field} is a whole number, such as 64.")
    amount = float(found["value"]) if is_ratio else int(found["value"])
    return {
        "inventory": {
            "provider": found["host"],
            "resource_class": found["name"].upper(),
            field: amount,
        }
    }


def _trait(value: str, option: str, key: str) -> TypedChange:
    found = _TRAIT.match(value)
    if found is None:
        raise UnreadableRequest(
            f"{option} {value}: write a provider and a trait, as in {option} compute-1:CUSTOM_GOLD"
        )
    return {"traits": {"provider": found["host"], key: [found["name"].upper()]}}


def _release(value: str) -> TypedChange:
    if not is_uuid(value):
        raise UnreadableRequest(
            f"--release {value}: consumers have uuids only. `roost consumer list` prints them."
        )
    return {"release": value}


_CHANGES: Mapping[str, Callable[[str], TypedChange]] = {
    "--drain": lambda value: {"drain": value},
    "--remove": lambda value: {"remove": value},
    "--add-host": _addition,
    "--set": _inventory,
    "--add-trait": lambda value: _trait(value, "--add-trait", "add"),
    "--drop-trait": lambda value: _trait(value, "--drop-trait", "remove"),
    "--release": _release,
}

CHANGE_OPTIONS = frozenset({"--claim", *_CHANGES})
"""The options that imagine a change."""
