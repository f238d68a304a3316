"""Resource providers, and the usages and allocations of one of them."""

from __future__ import annotations

from roost.api.schemas.building import CLASS_NAME, Document, integer, list_of, mapping, record
from roost.api.schemas.responses.building import (
    AMOUNTS,
    COUNT,
    GENERATION,
    PROVIDER_UUID,
    AnswerSchema,
    described,
    or_null,
)

_UUID = "c0ffee00-0000-4000-8000-000000000001"
_CONSUMER = "c0ffee00-0000-4000-8000-00000000c001"
_RELATIONS = ("self", "inventories", "usages", "aggregates", "traits", "allocations")


def _links(count: int) -> Document:
    relation: Document = {"type": "string", "enum": list(_RELATIONS[:count])}
    link = record({"rel": relation, "href": {"type": "string"}})
    return described(list_of(link), "The paths of the parts of the provider.")


def _provider(link_count: int) -> Document:
    return {
        "uuid": PROVIDER_UUID,
        "name": {"type": "string"},
        "generation": GENERATION,
        "links": _links(link_count),
    }


_NESTED: Document = {
    "parent_provider_uuid": or_null({"type": "string"}, "The parent; null for a root."),
    "root_provider_uuid": {"type": "string", "description": "The root; a root names itself."},
}
_EXAMPLE = {
    "uuid": _UUID,
    "name": "host-1",
    "generation": 3,
    "links": [
        {
            "rel": relation,
            "href": f"/resource_providers/{_UUID}" + ("" if relation == "self" else f"/{relation}"),
        }
        for relation in _RELATIONS
    ],
    "parent_provider_uuid": None,
    "root_provider_uuid": _UUID,
}

PROVIDER = AnswerSchema(
    "ResourceProvider",
    "A resource provider: a host, a part of a host, or a pool that hosts share.",
    ("1.0", record(_provider(3))),
    ("1.1", record(_provider(4))),
    ("1.6", record(_provider(5))),
    ("1.11", record(_provider(6))),
    ("1.14", record(_provider(6) | _NESTED)),
    example=("1.14", _EXAMPLE),
)

PROVIDERS = AnswerSchema(
    "ResourceProviders",
    "All providers that pass the filters. Their order has no meaning.",
    ("1.0", record({"resource_providers": {"type": "array", "items": PROVIDER}})),
    example=("1.14", {"resource_providers": [_EXAMPLE]}),
)

USAGES = AnswerSchema(
    "ProviderUsages",
    "What consumers hold of each resource class of which the provider has inventory.",
    ("1.0", record({"resource_provider_generation": GENERATION, "usages": AMOUNTS})),
    example=("1.0", {"resource_provider_generation": 3, "usages": {"VCPU": 6, "DISK_GB": 0}}),
)

_HELD: Document = {"resources": mapping(CLASS_NAME, integer(1))}

ALLOCATIONS = AnswerSchema(
    "ProviderAllocations",
    "What each consumer holds of the provider, by the uuid of the consumer.",
    (
        "1.0",
        record(
            {
                "allocations": {"type": "object", "additionalProperties": record(_HELD)},
                "resource_provider_generation": GENERATION,
            }
        ),
    ),
    (
        "1.28",
        record(
            {
                "allocations": {
                    "type": "object",
                    "additionalProperties": record(_HELD | {"consumer_generation": COUNT}),
                },
                "resource_provider_generation": GENERATION,
            }
        ),
    ),
    example=(
        "1.28",
        {
            "allocations": {_CONSUMER: {"resources": {"VCPU": 2}, "consumer_generation": 1}},
            "resource_provider_generation": 3,
        },
    ),
)
