"""Inventories of a provider."""

from __future__ import annotations

from roost.api.schemas.building import CLASS_NAME, Document, integer, mapping, record
from roost.api.schemas.responses.building import GENERATION, AnswerSchema, described
from roost.model.inventory import INTEGER_MAX

_FIELDS: Document = {
    "total": described(integer(1, INTEGER_MAX), "What the provider has."),
    "reserved": described(integer(0, INTEGER_MAX), "What no consumer gets."),
    "min_unit": described(integer(1, INTEGER_MAX), "The least amount of one allocation."),
    "max_unit": described(integer(1, INTEGER_MAX), "The greatest amount of one allocation."),
    "step_size": described(integer(1, INTEGER_MAX), "Amounts are multiples of this."),
    "allocation_ratio": {
        "type": "number",
        "description": "The capacity is `(total - reserved) * allocation_ratio`.",
    },
}
_EXAMPLE = {
    "total": 16,
    "reserved": 2,
    "min_unit": 1,
    "max_unit": 16,
    "step_size": 1,
    "allocation_ratio": 4.0,
}

INVENTORY = AnswerSchema(
    "Inventory",
    "One inventory, with the generation of its provider after the request.",
    ("1.0", record(_FIELDS | {"resource_provider_generation": GENERATION})),
    example=("1.0", _EXAMPLE | {"resource_provider_generation": 4}),
)

INVENTORIES = AnswerSchema(
    "Inventories",
    "All inventories of a provider by resource class, with its generation after the request.",
    (
        "1.0",
        record(
            {
                "resource_provider_generation": GENERATION,
                "inventories": mapping(CLASS_NAME, record(_FIELDS)),
            }
        ),
    ),
    example=("1.0", {"resource_provider_generation": 4, "inventories": {"VCPU": _EXAMPLE}}),
)
