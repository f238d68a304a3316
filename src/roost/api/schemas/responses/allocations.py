"""Allocations of a consumer, and the usages of a project."""

from __future__ import annotations

from roost.api.schemas.building import CLASS_NAME, INTEGER, Document, integer, mapping, record
from roost.api.schemas.responses.building import COUNT, GENERATION, AnswerSchema, described

_HELD: Document = {
    "type": "object",
    "description": "What the consumer holds, by the uuid of the provider.",
    "additionalProperties": record(
        {"generation": GENERATION, "resources": mapping(CLASS_NAME, integer(1))}
    ),
}
_OWNER: Document = {"project_id": {"type": "string"}, "user_id": {"type": "string"}}
_GENERATION: Document = {
    "consumer_generation": described(
        INTEGER, "Counts the changes of the consumer. Send it back with the next write."
    )
}
_TYPE: Document = {
    "consumer_type": {"type": "string", "description": "`unknown` if the consumer has no type."}
}

CONSUMER = AnswerSchema(
    "ConsumerAllocations",
    "The allocations of a consumer. A consumer without allocations has no other member.",
    ("1.0", record({"allocations": _HELD})),
    ("1.12", record({"allocations": _HELD}, _OWNER)),
    ("1.28", record({"allocations": _HELD}, _OWNER | _GENERATION)),
    ("1.38", record({"allocations": _HELD}, _OWNER | _GENERATION | _TYPE)),
    example=(
        "1.38",
        {
            "allocations": {
                "c0ffee00-0000-4000-8000-000000000001": {
                    "generation": 3,
                    "resources": {"VCPU": 2, "MEMORY_MB": 4096},
                }
            },
            "project_id": "42a32c07-3eeb-4401-9373-68a8cdca6784",
            "user_id": "66cb2f29-c86d-47c3-8af5-69ae7b778c70",
            "consumer_generation": 1,
            "consumer_type": "INSTANCE",
        },
    ),
)

_BY_TYPE: Document = {
    "type": "object",
    "description": "By consumer type; `unknown` for consumers without a type.",
    "additionalProperties": {
        "type": "object",
        "properties": {"consumer_count": described(integer(1), "The number of consumers.")},
        "required": ["consumer_count"],
        "patternProperties": {CLASS_NAME: COUNT},
        "additionalProperties": False,
    },
}

USAGES = AnswerSchema(
    "Usages",
    "What the consumers of a project hold, by resource class; from 1.38 on by consumer type.",
    ("1.9", record({"usages": mapping(CLASS_NAME, COUNT)})),
    ("1.38", record({"usages": _BY_TYPE})),
    example=("1.38", {"usages": {"INSTANCE": {"consumer_count": 2, "VCPU": 6, "DISK_GB": 40}}}),
)
