"""Examples of bodies and answers, made of their schemas and of values that a cloud may have."""

from __future__ import annotations

from typing import Any

from roost.api.http.json_schemas import (
    CLASS_NAME,
    CUSTOM_CLASS_NAME,
    EXAMPLE_AGGREGATE,
    EXAMPLE_CONSUMER,
    EXAMPLE_PROJECT,
    EXAMPLE_PROVIDER,
    EXAMPLE_USER,
    AnswerSchema,
    Document,
)
from roost.api.http.microversions import Microversion
from roost.api.routing import JsonBody

# Values by the name of the member, or of the list, that has them.
_VALUES = {
    "uuid": EXAMPLE_PROVIDER,
    "href": f"/resource_providers/{EXAMPLE_PROVIDER}",
    "root_provider_uuid": EXAMPLE_PROVIDER,
    "mappings": EXAMPLE_PROVIDER,
    "aggregates": EXAMPLE_AGGREGATE,
    "project_id": EXAMPLE_PROJECT,
    "user_id": EXAMPLE_USER,
    "consumer_type": "INSTANCE",
    "traits": "HW_CPU_X86_AVX2",
    "resource_class": "VCPU",
    "resource_classes": "VCPU",
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
    "version": "0.1.0",
    "identity": "7f1f0f0e-2f5d-4f0c-9b1e-6a0f3a1c2b4d",
}
_BY_PATTERN = {CLASS_NAME: "VCPU", CUSTOM_CLASS_NAME: "CUSTOM_GOLD"}
_BY_TYPE = {"string": "host-1", "integer": 3, "number": 1.5, "boolean": True}
# The key of an object with any keys, by the name of the member that has it.
_KEYS = {"checks": "database", "mappings": "", "resource_classes": "VCPU", "usages": "INSTANCE"}


def body_example(body: JsonBody, version: Microversion) -> Any:
    """A body that is valid in this version."""
    return body.example or example_of(body.schemas.at(version).document, version)


def answer_example(answer: AnswerSchema, version: Microversion) -> Any:
    """An answer of this version."""
    own = answer.example and answer.example.find(version)
    return own or example_of(answer, version)


def example_of(schema: Document | AnswerSchema, version: Microversion, name: str = "") -> Any:
    """A value that fits the schema. An object has the members that every such object has."""
    document = schema.versions.at(version) if isinstance(schema, AnswerSchema) else schema
    if "enum" in document or "examples" in document:
        return (document.get("examples") or document["enum"])[0]
    if "anyOf" in document:
        return example_of(document["anyOf"][0], version, name)
    kind = document["type"]
    if kind == "object":
        return _object(document, version, name)
    if kind == "array":
        return [example_of(document["items"], version, name)]
    return _VALUES[name] if name in _VALUES else _leaf(document)


def _leaf(document: Document) -> Any:
    kind = document["type"]
    if "null" in kind:
        return None
    if document.get("format") == "uuid":
        return EXAMPLE_PROVIDER
    by_pattern = _BY_PATTERN.get(document.get("pattern", ""))
    return by_pattern or document.get("minimum") or _BY_TYPE[kind]


def _object(document: Document, version: Microversion, name: str) -> Document:
    found = {
        key: example_of(document["properties"][key], version, key)
        for key in document.get("required", ())
    }
    for pattern, value in document.get("patternProperties", {}).items():
        by_consumer = "allocations" in value.get("properties", ())
        key = EXAMPLE_CONSUMER if by_consumer else _BY_PATTERN.get(pattern, EXAMPLE_PROVIDER)
        found[key] = example_of(value, version)
    if not found and document.get("additionalProperties"):
        key = _KEYS.get(name, EXAMPLE_PROVIDER)
        found[key] = example_of(document["additionalProperties"], version, name)
    return found
