"""The body of `POST /roost/whatif`: changes and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from roost.api.errors import HttpError
from roost.api.schemas import whatif as schemas
from roost.api.schemas.inventories import FIELDS
from roost.api.validation import parse_json
from roost.model.candidates import CandidateQuery
from roost.model.changes import (
    AddTrees,
    Change,
    ChangeInventory,
    ChangeTraits,
    ClaimCandidate,
    Drain,
    Release,
    Remove,
)
from roost.search.ranking import RankingKind
from roost.service.errors import ErrorCode, naming_place


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question, asked before and after the changes."""

    # `candidates`, `capacity` or `explain`.
    kind: str
    query: CandidateQuery


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All that a client asks at once."""

    changes: Sequence[Change]
    questions: Sequence[AskedQuestion]


def parse_whatif(body: bytes, read_query: Callable[[str], CandidateQuery]) -> WhatIf:
    """The changes and questions of a body; 400 that names the bad one by its position."""
    value = _valid(body)
    changes: list[Change] = []
    for position, change in enumerate(value.get("changes", ())):
        with naming(f"changes[{position}]"):
            changes.append(_parse_change(change, read_query))
    questions: list[AskedQuestion] = []
    for position, question in enumerate(value["ask"]):
        ((kind, text),) = question.items()
        with naming(f"ask[{position}]"):
            questions.append(AskedQuestion(kind, read_query(text)))
    return WhatIf(changes, questions)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Let every refusal inside begin with a place in the body."""
    try:
        with naming_place(place):
            yield
    except HttpError as error:
        error.text = f"{place}: {error.text}"
        raise


def _valid(body: bytes) -> Mapping[str, Any]:
    try:
        value = parse_json(body)
        _check_lengths(value)
        problem = schemas.ASK.placed_problem(value)
    except RecursionError:
        # Valid bodies have a few levels.
        problem = "it is nested too deeply"
    if problem is not None:
        raise _refused(f"JSON does not validate: {problem}")
    found: Mapping[str, Any] = value
    return found


def _check_lengths(value: Any) -> None:
    """400 for a list that is too long. The sentence of the schema would repeat the list."""
    if not isinstance(value, dict):
        return
    for name, most in (("changes", schemas.CHANGES_MAX), ("ask", schemas.QUESTIONS_MAX)):
        sent = value.get(name)
        if isinstance(sent, list) and len(sent) > most:
            raise _refused(
                f"{name}: {len(sent)} are more than the {most} that a request may have. Send fewer."
            )


def _parse_change(change: Mapping[str, Any], read_query: Callable[[str], CandidateQuery]) -> Change:
    ((kind, value),) = change.items()
    if kind == "claim":
        query = read_query(value["query"])
        order = value.get("order", schemas.FIRST)
        if "seed" in value and order != RankingKind.RANDOM:
            raise _refused("seed belongs to the order random. Leave seed out, or send this order.")
        return ClaimCandidate(query, order, value.get("seed", 0))
    return _PARSERS[kind](value)


def _parse_inventory(value: Mapping[str, Any]) -> ChangeInventory:
    fields = {key: field for key, field in value.items() if key in FIELDS}
    return ChangeInventory(value["provider"], value["resource_class"], fields)


def _parse_addition(value: Mapping[str, Any]) -> AddTrees:
    return AddTrees(value["like"], value.get("count", 1), value.get("empty", True))


def _parse_traits(value: Mapping[str, Any]) -> ChangeTraits:
    added, removed = tuple(value.get("add", ())), tuple(value.get("remove", ()))
    both = sorted(set(added).intersection(removed))
    if both:
        raise _refused(f"{both[0]} is to be added and removed. Leave one out.")
    if not added and not removed:
        raise _refused("the change names no trait. Send `add` or `remove`.")
    return ChangeTraits(value["provider"], added, removed)


def _refused(sentence: str) -> HttpError:
    return HttpError(400, sentence, ErrorCode.QUERY_BAD_VALUE)


# Every change but a claim, which has a query.
_PARSERS: Mapping[str, Callable[[Any], Change]] = {
    "drain": Drain,
    "remove": Remove,
    "inventory": _parse_inventory,
    "traits": _parse_traits,
    "add": _parse_addition,
    "release": Release,
}
