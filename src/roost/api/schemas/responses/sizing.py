"""How much fits, and what happens when a root is lost."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of
from roost.api.schemas.responses.building import (
    COUNT,
    NEXT,
    PROVIDER_REFERENCE,
    TEXT,
    AnswerSchema,
    described,
    members,
)

_HOST = {"uuid": "c0ffee00-0000-4000-8000-000000000001", "name": "host-1"}
_EXACT: Document = {
    "type": "boolean",
    "description": "False if the search ended before it saw every arrangement.",
}

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
