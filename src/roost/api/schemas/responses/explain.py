"""The explanation of a search."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of
from roost.api.schemas.responses.building import (
    COUNT,
    PROVIDER_REFERENCE,
    STRING,
    TEXT,
    AnswerSchema,
    described,
    members,
    or_null,
)
from roost.search.lack import LackRule

_GROUP_STAGES = ("class", "unit", "room", "traits", "aggregates", "in_tree")
_TREE_STAGES = ("root", "groups", "together")
_STAGE: Document = {
    "type": "string",
    "enum": [*_GROUP_STAGES, *_TREE_STAGES],
    "description": "The stage of the search that leaves too little.",
}
_TREES = described(COUNT, "How many trees the stage leaves.")
_GROUP = described(STRING, "The suffix of the request group; empty for the group without one.")
_CLASS = or_null(STRING, "The resource class that alone is to blame, if one is.")
_CHOSEN = described(
    {"type": "object", "additionalProperties": COUNT},
    "Of a query with alternatives, those that come furthest, by the suffix of the group.",
)

REASON = AnswerSchema(
    "Reason",
    "The dominant reason: the first stage that leaves no tree.",
    (
        "1.0",
        members(
            {
                "stage": _STAGE,
                "group": or_null(STRING, "The request group; null for a stage of the request."),
                "resource_class": _CLASS,
                "text": TEXT,
            },
            {"alternatives": _CHOSEN},
        ),
    ),
)

_FUNNEL = members(
    {
        "group": _GROUP,
        "funnel": list_of(
            members(
                {
                    "stage": {"type": "string", "enum": list(_GROUP_STAGES)},
                    "providers": described(COUNT, "How many providers the stage leaves."),
                    "trees": _TREES,
                    "text": TEXT,
                }
            )
        ),
    },
    {"alternative": described(COUNT, "Which alternative of the group; 0 is `resources`.")},
)
_LACK = members(
    {
        "group": or_null(STRING, "The request group; null for the request as a whole."),
        "provider": or_null(PROVIDER_REFERENCE, "The provider that comes nearest, if one does."),
        "stage": _STAGE,
        "resource_class": or_null(STRING),
        "wanted": or_null({"type": "integer"}, "The amount that the request asks for."),
        "free": or_null({"type": "integer"}, "The amount that the provider has left."),
        "rule": {
            "type": "string",
            "enum": [rule.value for rule in LackRule],
            "description": "What the failed check asks for.",
        },
        "traits": described(list_of(STRING), "One of these is missing, or this one is forbidden."),
        "aggregates": described(
            list_of(STRING), "One of these is missing, or this one is forbidden."
        ),
        "groups": described(list_of(STRING), "The groups that fail the check together."),
        "text": TEXT,
    }
)

EXPLANATION = AnswerSchema(
    "Explanation",
    "Why a query has candidates, or why it has none.",
    (
        "1.0",
        members(
            {
                "feasible": {"type": "boolean", "description": "Whether the query has candidates."},
                "reason": or_null(REASON, "Null if the query has candidates."),
                "groups": described(
                    list_of(_FUNNEL), "What each stage leaves of each group, in fixed order."
                ),
                "trees": described(
                    list_of(
                        members(
                            {
                                "stage": {"type": "string", "enum": list(_TREE_STAGES)},
                                "trees": _TREES,
                                "text": TEXT,
                            }
                        )
                    ),
                    "What each stage of the request leaves.",
                ),
                "misses": described(
                    list_of(
                        members(
                            {
                                "root": PROVIDER_REFERENCE,
                                "failed": described(COUNT, "How many checks the tree fails."),
                                "lacks": list_of(_LACK),
                            },
                            {"alternatives": _CHOSEN},
                        )
                    ),
                    "The trees that fail the fewest constraints, best first.",
                ),
                "hints": described(
                    list_of(members({"text": TEXT, "query": STRING})),
                    "Queries that have candidates, near the one asked.",
                ),
                "exact": {
                    "type": "boolean",
                    "description": "False if the search ended before it saw every combination.",
                },
            }
        ),
    ),
    example=(
        "1.0",
        {
            "feasible": False,
            "reason": {
                "stage": "room",
                "group": "",
                "resource_class": "VCPU",
                "text": "No provider has 64 VCPU left.",
            },
            "groups": [
                {
                    "group": "",
                    "funnel": [
                        {
                            "stage": stage,
                            "providers": count,
                            "trees": count,
                            "text": f"{count} trees are left.",
                        }
                        for stage, count in zip(_GROUP_STAGES, (12, 12, 0, 0, 0, 0), strict=True)
                    ],
                }
            ],
            "trees": [
                {"stage": stage, "trees": count, "text": f"{count} trees are left."}
                for stage, count in zip(_TREE_STAGES, (12, 0, 0), strict=True)
            ],
            "misses": [],
            "hints": [{"text": "Ask for 48 VCPU.", "query": "resources=VCPU:48"}],
            "exact": True,
        },
    ),
)
