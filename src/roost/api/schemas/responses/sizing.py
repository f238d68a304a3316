"""How much fits, and what happens when a root is lost."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of
from roost.api.schemas.responses.building import (
    COUNT,
    NEXT,
    PROVIDER_REFERENCE,
    STRING,
    TEXT,
    AnswerSchema,
    described,
    members,
    or_null,
)
from roost.search.packing.capacity import Method

_HOST = {"uuid": "c0ffee00-0000-4000-8000-000000000001", "name": "host-1"}
_EXACT: Document = {
    "type": "boolean",
    "description": "False if the search ended before it saw every arrangement.",
}

_FITS = described(COUNT, "The largest number of consumers that fit; a lower bound if not exact.")
_AT_MOST: Document = {
    "at_most": described(COUNT, "An upper bound; absent if `fits` is exact."),
}

CAPACITY = AnswerSchema(
    "Capacity",
    "How many more consumers with exactly this request fit.",
    (
        "1.0",
        members(
            {
                "fits": _FITS,
                "exact": {"type": "boolean", "description": "Whether no more can fit."},
                "method": {"type": "string", "enum": [method.value for method in Method]},
                "limited_by": or_null(
                    members(
                        {
                            "resource_class": described(STRING, "The first of the classes."),
                            "resource_classes": described(
                                list_of(STRING), "The classes of which more lets more in."
                            ),
                            "together": {
                                "type": "boolean",
                                "description": "Whether it takes more of all classes, as far as "
                                "is known; otherwise more of each one lets more in by itself.",
                            },
                            "text": TEXT,
                        },
                    ),
                    "What more is needed of; null if nothing fits.",
                ),
                "roots": described(
                    list_of(members({"root": PROVIDER_REFERENCE, "fits": COUNT}, _AT_MOST)),
                    "With `by=root`: how many fit on each root alone. Roots may share a pool.",
                ),
                "next": NEXT,
            },
            _AT_MOST,
        ),
    ),
    example=(
        "1.0",
        {
            "fits": 3,
            "exact": True,
            "method": next(iter(Method)).value,
            "limited_by": {
                "resource_class": "VCPU",
                "resource_classes": ["VCPU"],
                "together": False,
                "text": "More VCPU lets more in.",
            },
            "roots": [{"root": _HOST, "fits": 3}],
            "next": None,
        },
    ),
)

FRAGMENTATION = AnswerSchema(
    "Fragmentation",
    "What is free, and what of it requests can use.",
    (
        "1.0",
        members(
            {
                "resource_classes": {
                    "type": "object",
                    "additionalProperties": members(
                        {
                            "free": described(COUNT, "What is free in all trees."),
                            "usable": described(
                                list_of(COUNT),
                                "For each question: what is free in trees where it fits.",
                            ),
                        }
                    ),
                },
                "empty_roots": described(COUNT, "How many roots hold nothing."),
            }
        ),
    ),
    example=(
        "1.0",
        {
            "resource_classes": {"VCPU": {"free": 1000, "usable": [640, 0]}},
            "empty_roots": 12,
        },
    ),
)

RESILIENCE = AnswerSchema(
    "Resilience",
    "Whether the rest of the cloud has room for what each root holds.",
    (
        "1.0",
        members(
            {
                "survives": described(COUNT, "How many roots may be lost, one at a time."),
                "of": described(COUNT, "How many roots there are."),
                "exact": _EXACT,
                "roots": described(
                    list_of(
                        members(
                            {
                                "root": PROVIDER_REFERENCE,
                                "fits": {"type": "boolean"},
                                "exact": _EXACT,
                                "consumers": described(COUNT, "How many consumers would move."),
                                "text": TEXT,
                            }
                        )
                    ),
                    "The roots whose consumers do not fit elsewhere.",
                ),
                "next": NEXT,
            }
        ),
    ),
    example=(
        "1.0",
        {
            "survives": 11,
            "of": 12,
            "exact": True,
            "roots": [
                {
                    "root": _HOST,
                    "fits": False,
                    "exact": True,
                    "consumers": 9,
                    "text": "What 9 consumers hold from host-1 does not fit elsewhere.",
                }
            ],
            "next": None,
        },
    ),
)
