"""The body of `POST /roost/whatif`: changes and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from roost.api.candidates.schemas import FIRST, ORDERS
from roost.api.handlers.inventories import FIELDS
from roost.api.http.errors import HttpError, bad_value
from roost.api.http.json_schemas import (
    CLASS_NAME,
    EXAMPLE_PROVIDER,
    UUID,
    Document,
    integer,
    list_of,
    record,
    text,
)
from roost.api.http.microversions import MIN_VERSION
from roost.api.http.validation import parse_json
from roost.api.routing import JsonBody
from roost.model.candidate_query.query import CandidateQuery
from roost.model.imagined_changes import (
    AddTrees,
    ChangeInventory,
    ChangeTraits,
    ClaimCandidate,
    Drain,
    ImaginedChange,
    Release,
    Remove,
)
from roost.search.candidates.ranking import RankingKind
from roost.service.errors import naming_place

_CHANGES_MAX = 100
_QUESTIONS_MAX = 20
# The trees that one change adds.
_COUNT_MAX = 1000
_TRAITS_MAX = 1000

# A name has at most 200 characters in the tables.
_PROVIDER = text(minimum=1, maximum=200)
_QUERY = text(maximum=64 * 1024)
_TRAIT = text(r"^[A-Z0-9_]+$", minimum=1, maximum=255)
_TRAITS = list_of(_TRAIT, unique=True) | {"maxItems": _TRAITS_MAX}


def _one_of(properties: Document) -> Document:
    """An object with exactly one of these members, which says what it is."""
    return record({}, properties) | {"minProperties": 1, "maxProperties": 1}


_CHANGE = _one_of(
    {
        "drain": _PROVIDER,
        "remove": _PROVIDER,
        "inventory": record({"provider": _PROVIDER, "resource_class": text(CLASS_NAME)}, FIELDS)
        | {"minProperties": 3},
        "traits": record({"provider": _PROVIDER}, {"add": _TRAITS, "remove": _TRAITS}),
        "add": record(
            {"like": _PROVIDER}, {"count": integer(1, _COUNT_MAX), "empty": {"type": "boolean"}}
        ),
        "claim": record(
            {"query": _QUERY}, {"order": {"enum": list(ORDERS)}, "seed": integer(0, 2**32 - 1)}
        ),
        "release": UUID,
    }
)
_QUESTION = _one_of({"candidates": _QUERY, "capacity": _QUERY, "explain": _QUERY})

BODY = JsonBody(
    "WhatIfQuestion",
    "Changes and questions. A query is a query string of `GET /roost/candidates`.",
    (
        "1.0",
        record(
            {"ask": list_of(_QUESTION, minimum=1) | {"maxItems": _QUESTIONS_MAX}},
            {"changes": list_of(_CHANGE) | {"maxItems": _CHANGES_MAX}},
        ),
    ),
    example={
        "changes": [{"drain": EXAMPLE_PROVIDER}],
        "ask": [{"candidates": "resources=VCPU:4,MEMORY_MB:8192"}],
    },
)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question, asked before and after the changes."""

    # `candidates`, `capacity` or `explain`.
    kind: str
    query: CandidateQuery


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All that a client asks at once."""

    changes: Sequence[ImaginedChange]
    questions: Sequence[AskedQuestion]


def parse_whatif(body: bytes, read_query: Callable[[str], CandidateQuery]) -> WhatIf:
    """The changes and questions of a body; 400 that names the bad one by its position."""
    value = _valid(body)
    changes: list[ImaginedChange] = []
    for position, change in enumerate(value.get("changes", ())):
        with naming(f"changes[{position}]"):
            changes.append(_parse_change(change, read_query))
    questions: list[AskedQuestion] = []
    for position, question in enumerate(value["ask"]):
        ((kind, query),) = question.items()
        with naming(f"ask[{position}]"):
            questions.append(AskedQuestion(kind, read_query(query)))
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
        problem = BODY.schemas.at(MIN_VERSION).placed_problem(value)
    except RecursionError:
        # Valid bodies have a few levels.
        problem = "it is nested too deeply"
    if problem is not None:
        raise bad_value(f"JSON does not validate: {problem}")
    found: Mapping[str, Any] = value
    return found


def _check_lengths(value: Any) -> None:
    """400 for a list that is too long. The sentence of the schema would repeat the list."""
    if not isinstance(value, dict):
        return
    for name, most in (("changes", _CHANGES_MAX), ("ask", _QUESTIONS_MAX)):
        sent = value.get(name)
        if isinstance(sent, list) and len(sent) > most:
            raise bad_value(
                f"{name}: {len(sent)} are more than the {most} that a request may have. Send fewer."
            )


def _parse_change(
    change: Mapping[str, Any], read_query: Callable[[str], CandidateQuery]
) -> ImaginedChange:
    ((kind, value),) = change.items()
    if kind == "claim":
        query = read_query(value["query"])
        order = value.get("order", FIRST)
        if "seed" in value and order != RankingKind.RANDOM:
            raise bad_value("seed belongs to the order random. Leave seed out, or send this order.")
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
        raise bad_value(f"{both[0]} is to be added and removed. Leave one out.")
    if not added and not removed:
        raise bad_value("the change names no trait. Send `add` or `remove`.")
    return ChangeTraits(value["provider"], added, removed)


# Every change but a claim, which has a query.
_PARSERS: Mapping[str, Callable[[Any], ImaginedChange]] = {
    "drain": Drain,
    "remove": Remove,
    "inventory": _parse_inventory,
    "traits": _parse_traits,
    "add": _parse_addition,
    "release": Release,
}
