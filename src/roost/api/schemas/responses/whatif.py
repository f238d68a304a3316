"""The answers of a what-if."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of
from roost.api.schemas.responses.building import (
    PROVIDER_REFERENCE,
    STRING,
    TEXT,
    AnswerSchema,
    described,
    members,
)
from roost.api.schemas.responses.candidates import EXAMPLE, newest_candidates
from roost.api.schemas.responses.explain import EXPLANATION
from roost.api.schemas.responses.sizing import CAPACITY

_TRUNCATED: Document = {
    "truncated": {"type": "boolean", "description": "Whether there are more candidates."}
}

SIDE = AnswerSchema(
    "WhatIfSide",
    "The answer to one question: like that of the route which asks it directly.",
    ("1.0", {"anyOf": [newest_candidates(_TRUNCATED), CAPACITY, EXPLANATION]}),
)

_OUTCOME = members(
    {
        "change": described(STRING, "The kind of the change."),
        "applied": {"type": "boolean", "description": "False if a claim found no candidate."},
        "text": TEXT,
    },
    {
        "provider": PROVIDER_REFERENCE,
        "root": PROVIDER_REFERENCE,
        "roots": {"type": "array", "items": PROVIDER_REFERENCE},
        "made_up": {"type": "boolean", "description": "Whether the roots exist in no database."},
        "consumer": STRING,
        "allocations": {"type": "object", "description": "What a claim takes, by provider."},
        "mappings": {"type": "object", "description": "The providers of each request group."},
    },
)

WHATIF = AnswerSchema(
    "WhatIf",
    "What became of each change, and the answer to each question before and after all changes.",
    (
        "1.0",
        members(
            {
                "changes": list_of(_OUTCOME),
                "answers": list_of(members({"before": SIDE, "after": SIDE})),
            }
        ),
    ),
    example=(
        "1.0",
        {
            "changes": [
                {
                    "change": "drain",
                    "applied": True,
                    "text": "host-1 is drained: 3 inventories take no further allocation.",
                    "provider": {
                        "uuid": "c0ffee00-0000-4000-8000-000000000001",
                        "name": "host-1",
                    },
                }
            ],
            "answers": [
                {
                    "before": {**EXAMPLE, "truncated": False},
                    "after": {
                        "allocation_requests": [],
                        "provider_summaries": {},
                        "truncated": False,
                    },
                }
            ],
        },
    ),
)
