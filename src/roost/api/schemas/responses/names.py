"""Resource classes, traits, and the traits and aggregates of a provider."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of, record
from roost.api.schemas.responses.building import GENERATION, AnswerSchema

_STRING: Document = {"type": "string"}
_SELF = record({"rel": {"type": "string", "enum": ["self"]}, "href": _STRING})

_CLASS_EXAMPLE = {
    "name": "CUSTOM_GOLD",
    "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_GOLD"}],
}

RESOURCE_CLASS = AnswerSchema(
    "ResourceClass",
    "A resource class, standard or custom.",
    ("1.2", record({"name": _STRING, "links": list_of(_SELF)})),
    example=("1.2", _CLASS_EXAMPLE),
)

RESOURCE_CLASSES = AnswerSchema(
    "ResourceClasses",
    "All resource classes, standard and custom.",
    ("1.2", record({"resource_classes": {"type": "array", "items": RESOURCE_CLASS}})),
    example=("1.2", {"resource_classes": [_CLASS_EXAMPLE]}),
)

TRAITS = AnswerSchema(
    "Traits",
    "The names of traits. Their order has no meaning.",
    ("1.6", record({"traits": list_of(_STRING)})),
    example=("1.6", {"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"]}),
)

PROVIDER_TRAITS = AnswerSchema(
    "ProviderTraits",
    "The traits of a provider, with its generation after the request.",
    ("1.6", record({"traits": list_of(_STRING), "resource_provider_generation": GENERATION})),
    example=("1.6", {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 4}),
)

PROVIDER_AGGREGATES = AnswerSchema(
    "ProviderAggregates",
    "The uuids of the aggregates of a provider; from 1.19 on also its generation.",
    ("1.1", record({"aggregates": list_of(_STRING)})),
    ("1.19", record({"aggregates": list_of(_STRING), "resource_provider_generation": GENERATION})),
    example=(
        "1.19",
        {
            "aggregates": ["42896e0d-205d-4fe3-bd1e-100924931787"],
            "resource_provider_generation": 4,
        },
    ),
)
