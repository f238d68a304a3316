"""The shapes of answers to questions: the members that the commands read. Pure."""

from __future__ import annotations

from roost.client.shapes import AMOUNTS, NULL, JsonShape

_REFERENCE: JsonShape = {"uuid": str, "name": str}
_STAGE: JsonShape = {"stage": str, "trees": int, "text?": (str, NULL)}
_LIMIT: JsonShape = {"resource_class?": (str, NULL), "text?": (str, NULL)}
_AT_MOST: JsonShape = {"at_most?": (int, NULL)}

CANDIDATES: JsonShape = {
    "allocation_requests": [
        {"allocations": {str: {"resources": AMOUNTS}}, "mappings?": {str: [str]}}
    ],
    "provider_summaries?": {
        str: {
            "resources?": {str: {"capacity": int, "used": int}},
            "root_provider_uuid?": str,
        }
    },
}
EXPLANATION: JsonShape = {
    "feasible": bool,
    "reason?": (NULL, {"stage?": str, "group?": (str, NULL), "text?": (str, NULL)}),
    "groups": [{"group": str, "funnel": [{**_STAGE, "providers": int}]}],
    "trees": [_STAGE],
    "misses": [{"root": _REFERENCE, "lacks": [{"text": str}]}],
    "hints": [{"text": str, "query": str}],
}
CAPACITY: JsonShape = {"fits": int, "exact": bool, "limited_by?": (NULL, _LIMIT), **_AT_MOST}
CAPACITY_OF_ROOTS: JsonShape = {
    **CAPACITY,
    "roots": [{"root": _REFERENCE, "fits": int, "at_most?": int}],
    "next?": (str, NULL),
}
FRAGMENTATION: JsonShape = {
    "resource_classes": {str: {"free": int, "usable": [int]}},
    "empty_roots?": (int, NULL),
}
RESILIENCE: JsonShape = {
    "survives": int,
    "of?": int,
    "roots": [{"root": _REFERENCE, "text?": (str, NULL)}],
    "next?": (str, NULL),
}
_SIDES: JsonShape = {
    "capacity": CAPACITY,
    "explain": EXPLANATION,
    "candidates": CANDIDATES,
}


def whatif_shape(questions: list[str]) -> JsonShape:
    """The shape of an answer to a what-if that asks these questions, in their order."""
    sides: JsonShape = tuple(_SIDES[question] for question in dict.fromkeys(questions))
    return {
        "changes?": [{"text": str, "applied?": bool}],
        "answers": [{"before": sides, "after": sides}],
    }
