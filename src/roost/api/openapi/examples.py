"""An example of an answer, made of its schema and of values that a cloud may have."""

from __future__ import annotations

from typing import Any

from roost.api.http.json_schemas import (
    CLASS_NAME,
    EXAMPLE_AGGREGATE,
    EXAMPLE_CONSUMER,
    EXAMPLE_PROVIDER,
    AnswerSchema,
    Document,
)
from roost.api.http.microversions import Microversion

# Values by the name of the member, or of the list, that has them.
_VALUES = {
    "uuid": EXAMPLE_PROVIDER,
    "name": "host-1",
    "href": f"/resource_providers/{EXAMPLE_PROVIDER}",
    "parent_provider_uuid": None,
    "root_provider_uuid": EXAMPLE_PROVIDER,
    "aggregates": EXAMPLE_AGGREGATE,
    "traits": "HW_CPU_X86_AVX2",
    "resource_class": "VCPU",
    "resource_classes": "VCPU",
    "consumer": EXAMPLE_CONSUMER,
    "mappings": EXAMPLE_PROVIDER,
    "total": 16,
    "reserved": 2,
    "max_unit": 16,
    "capacity": 64,
    "used": 6,
    "feasible": False,
    "group": "",
    "groups": "_net",
    "text": "A sentence for people.",
    "query": "resources=VCPU:48",
    "change": "drain",
    "next": None,
    "version": "0.1.0",
    "identity": "7f1f0f0e-2f5d-4f0c-9b1e-6a0f3a1c2b4d",
}
# The key of an object with any keys, by the name of the member that has it.
_KEYS = {
    "checks": "database",
    "mappings": "",
    "resource_classes": "VCPU",
    "usages": "INSTANCE",
}
_BY_TYPE = {"string": "text", "integer": 3, "number": 1.5, "boolean": True}


def example_of(schema: Document | AnswerSchema, version: Microversion, name: str = "") -> Any:
    """A value that fits the schema. An object has the members that every answer has."""
    document = schema.versions.at(version) if isinstance(schema, AnswerSchema) else schema
    if "enum" in document or "examples" in document:
        return (document.get("examples") or document["enum"])[0]
    if "anyOf" in document:
        return example_of(document["anyOf"][0], version, name)
    kind = document["type"] if isinstance(document["type"], str) else document["type"][0]
    if kind == "object":
        return _object(document, version, name)
    if kind == "array":
        return [example_of(document["items"], version, name)]
    return _VALUES[name] if name in _VALUES else document.get("minimum") or _BY_TYPE[kind]


def _object(document: Document, version: Microversion, name: str) -> Document:
    found = {
        key: example_of(document["properties"][key], version, key)
        for key in document.get("required", ())
    }
    for pattern, value in document.get("patternProperties", {}).items():
        found["VCPU" if pattern == CLASS_NAME else EXAMPLE_PROVIDER] = example_of(value, version)
    if not found and document.get("additionalProperties"):
        key = _KEYS.get(name, EXAMPLE_PROVIDER)
        found[key] = example_of(document["additionalProperties"], version, name)
    return found
