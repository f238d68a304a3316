"""How much fits, and what happens when a root is lost."""

from __future__ import annotations

from roost.api.schemas.building import CLASS_NAME, Document, list_of, mapping
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

_HOST = {"uuid": "c0ffee00-0000-4000-8000-000000000001", "name": "host-1"}
_EXACT: Document = {
    "type": "boolean",
    "description": "False if the search ended before it saw every arrangement.",
}

_AT_MOST = described(COUNT, "No sequence of claims exceeds it. Only if it is more than `fits`.")

CAPACITY = AnswerSchema(
    "Capacity",
    "How many more consumers with exactly one request any sequence of claims reaches.",
    (
        "1.0",
        members(
            {
                "fits": COUNT,
                "exact": {
                    "type": "boolean",
                    "description": "False if `fits` is a lower bound; then `at_most` is there.",
                },
                "method": described(STRING, "How the number was found."),
                "limited_by": or_null(
                    members(
                        {
                            "resource_class": or_null(STRING, "The class that is used up first."),
                            "text": TEXT,
                        }
                    ),
                    "What limits the number; null if nothing fits.",
                ),
                "roots": described(
                    list_of(
                        members({"root": PROVIDER_REFERENCE, "fits": COUNT}, {"at_most": _AT_MOST})
                    ),
                    "How many fit on each root alone; empty unless `by=root`.",
                ),
                "next": NEXT,
            },
            {"at_most": _AT_MOST},
        ),
    ),
    example=(
        "1.0",
        {
            "fits": 3,
            "exact": True,
            "method": "counting",
            "limited_by": {
                "resource_class": "VCPU",
                "text": "VCPU is used up first on 1 of the 1 roots that hold such a consumer.",
            },
            "roots": [{"root": _HOST, "fits": 3}],
            "next": None,
        },
    ),
)

FRAGMENTATION = AnswerSchema(
    "Fragmentation",
    "What is free of each resource class, and what of it each question can use.",
    (
        "1.0",
        members(
            {
                "resource_classes": mapping(
                    CLASS_NAME, members({"free": COUNT, "usable": list_of(COUNT)})
                ),
                "empty_roots": described(COUNT, "How many roots hold nothing."),
            }
        ),
    ),
    example=(
        "1.0",
        {"resource_classes": {"VCPU": {"free": 1000, "usable": [640, 0]}}, "empty_roots": 12},
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
