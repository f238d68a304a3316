"""Allocation candidates."""

from __future__ import annotations

from typing import Any

from roost.api.microversions import MAX_VERSION
from roost.api.schemas.building import (
    CLASS_NAME,
    Document,
    integer,
    list_of,
    mapping,
    record,
)
from roost.api.schemas.responses.building import COUNT, AnswerSchema, members, or_null

_PROVIDER = "c0ffee00-0000-4000-8000-000000000001"
_STRING: Document = {"type": "string"}
_ASKED = mapping(CLASS_NAME, integer(1))

_LIST = list_of(
    record({"resource_provider": record({"uuid": _STRING}), "resources": _ASKED}), minimum=1
)
_BY_PROVIDER: Document = {
    "type": "object",
    "description": "What to claim, by the uuid of the provider.",
    "minProperties": 1,
    "additionalProperties": record({"resources": _ASKED}),
}
_MAPPINGS: Document = {
    "type": "object",
    "description": "The providers of each request group, by its suffix.",
    "additionalProperties": list_of(_STRING, minimum=1),
}

REQUEST = AnswerSchema(
    "AllocationRequest",
    "One candidate. Its members are those of `PUT /allocations/{consumer}` of the same version.",
    ("1.10", record({"allocations": _LIST})),
    ("1.12", record({"allocations": _BY_PROVIDER})),
    ("1.34", record({"allocations": _BY_PROVIDER, "mappings": _MAPPINGS})),
)

_RESOURCES: Document = {
    "resources": mapping(
        CLASS_NAME,
        record(
            {
                # Other services may have reserved more than there is.
                "capacity": {"type": "integer"},
                "used": COUNT,
            }
        ),
    )
}
_TRAITS: Document = {"traits": list_of(_STRING)}
_TREE: Document = {
    "parent_provider_uuid": or_null({"type": "string"}, "The parent; null for a root."),
    "root_provider_uuid": _STRING,
}

SUMMARY = AnswerSchema(
    "ProviderSummary",
    "Capacity, usage and traits of a provider; from 1.29 on of each provider of a tree.",
    ("1.10", record(_RESOURCES)),
    ("1.17", record(_RESOURCES | _TRAITS)),
    ("1.29", record(_RESOURCES | _TRAITS | _TREE)),
)

_BODY: dict[str, Any] = {
    "allocation_requests": {"type": "array", "items": REQUEST},
    "provider_summaries": {
        "type": "object",
        "description": "By the uuid of the provider.",
        "additionalProperties": SUMMARY,
    },
}

EXAMPLE = {
    "allocation_requests": [
        {
            "allocations": {_PROVIDER: {"resources": {"VCPU": 4, "MEMORY_MB": 8192}}},
            "mappings": {"": [_PROVIDER]},
        }
    ],
    "provider_summaries": {
        _PROVIDER: {
            "resources": {
                "VCPU": {"capacity": 64, "used": 6},
                "MEMORY_MB": {"capacity": 131072, "used": 12288},
            },
            "traits": ["HW_CPU_X86_AVX2"],
            "parent_provider_uuid": None,
            "root_provider_uuid": _PROVIDER,
        }
    },
}

CANDIDATES = AnswerSchema(
    "AllocationCandidates",
    "Candidates, and a summary of each provider that they name.",
    ("1.10", record(_BODY)),
    example=("1.34", EXAMPLE),
)


def _newest(requests: Document, more: Document | None = None) -> Document:
    return members(
        {
            "allocation_requests": list_of(requests),
            "provider_summaries": {
                "type": "object",
                "additionalProperties": SUMMARY.versions.at(MAX_VERSION),
            },
            **(more or {}),
        }
    )


def newest_candidates(more: Document) -> Document:
    """Candidates in their newest form, with further members beside them."""
    return _newest(_EXTENDED_REQUEST, more)


_CHOSEN: Document = {
    "type": "object",
    "description": (
        "By the suffix of each group with `or_resources`: 0 for its `resources`, 1 for the first "
        "alternative, and so on."
    ),
    "additionalProperties": COUNT,
}

_EXTENDED_REQUEST = members(
    {"allocations": _BY_PROVIDER, "mappings": _MAPPINGS}, {"alternatives": _CHOSEN}
)

EXTENDED = AnswerSchema(
    "ExtendedCandidates",
    "Candidates in the form of the newest version, whatever version the client sends.",
    (
        "1.0",
        _newest(_EXTENDED_REQUEST),
    ),
    example=("1.0", EXAMPLE),
)
