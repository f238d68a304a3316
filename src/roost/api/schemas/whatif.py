"""Changes and questions of a what-if."""

from __future__ import annotations

from roost.api.schemas.building import (
    CLASS_NAME,
    UUID,
    Document,
    integer,
    list_of,
    record,
    text,
)
from roost.api.schemas.inventories import FIELDS
from roost.api.validation import Schema
from roost.search.ranking import RankingKind

CHANGES_MAX = 100
QUESTIONS_MAX = 20
# The trees that one change adds.
_COUNT_MAX = 1000
_TRAITS_MAX = 1000
# As the search finds them, or by a ranking.
FIRST = "first"
ORDERS = (FIRST, *RankingKind)

# A name has at most 200 characters in the tables.
_PROVIDER = text(minimum=1, maximum=200)
_QUERY = text(maximum=64 * 1024)
_TRAIT = text(r"^[A-Z0-9_]+$", minimum=1, maximum=255)
_TRAITS = list_of(_TRAIT, unique=True) | {"maxItems": _TRAITS_MAX}


def _one_of(properties: Document) -> Document:
    """An object with exactly one of these members, which says what it is."""
    return record({}, properties) | {"minProperties": 1, "maxProperties": 1}


CHANGE = _one_of(
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
QUESTION = _one_of({"candidates": _QUERY, "capacity": _QUERY, "explain": _QUERY})

ASK = Schema(
    record(
        {"ask": list_of(QUESTION, minimum=1) | {"maxItems": QUESTIONS_MAX}},
        {"changes": list_of(CHANGE) | {"maxItems": CHANGES_MAX}},
    )
)
