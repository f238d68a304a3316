"""What the bodies of requests to a fake server must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from roost.client.testing.cloud import FakeRefusal
from roost.model.identifiers import NAME_LENGTH_MAX, is_uuid
from roost.model.inventory import INTEGER_MAX

BodySchema = Mapping[str, Any]

_FORMATS = FormatChecker(formats=())
_FORMATS.checks("uuid")(is_uuid)

_UUID = {"type": "string", "format": "uuid"}
_AMOUNT = {"type": "integer", "minimum": 1, "maximum": INTEGER_MAX}
_GENERATION = {"type": "integer"}
_OWNER = {"type": "string", "minLength": 1, "maxLength": 255}
_NAME = {"type": "string", "pattern": "^[A-Z0-9_]+$", "minLength": 1, "maxLength": NAME_LENGTH_MAX}


def _object(
    required: Mapping[str, BodySchema], optional: Mapping[str, BodySchema] | None = None
) -> BodySchema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _by(key: BodySchema, value: BodySchema, at_least: int = 0) -> BodySchema:
    return {
        "type": "object",
        "propertyNames": key,
        "additionalProperties": value,
        "minProperties": at_least,
    }


CUSTOM_NAME: BodySchema = {**_NAME, "pattern": "^CUSTOM_[A-Z0-9_]+$"}
_PROVIDER_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_PARENT = {"anyOf": [_UUID, {"type": "null"}]}
_INVENTORY = _object(
    {"total": _AMOUNT},
    {
        "reserved": {**_AMOUNT, "minimum": 0},
        "min_unit": _AMOUNT,
        "max_unit": _AMOUNT,
        "step_size": _AMOUNT,
        "allocation_ratio": {"type": "number", "maximum": 3.40282e38},
    },
)
INVENTORIES = _object(
    {"resource_provider_generation": _GENERATION, "inventories": _by(_NAME, _INVENTORY)}
)
TRAITS = _object(
    {
        "resource_provider_generation": _GENERATION,
        "traits": {"type": "array", "items": _NAME, "uniqueItems": True},
    }
)
_AGGREGATES: BodySchema = {"type": "array", "items": _UUID, "uniqueItems": True}
RESOURCE_CLASS = _object({"name": CUSTOM_NAME})


def provider_schema(minor: int, *, creates: bool) -> BodySchema:
    """The body that creates or changes a provider."""
    optional = {"uuid": _UUID} if creates else {}
    return _object(
        {"name": _PROVIDER_NAME},
        {**optional, **({"parent_provider_uuid": _PARENT} if minor >= 14 else {})},
    )


def aggregates_schema(minor: int) -> BodySchema:
    """The aggregates of a provider: a list before 1.19."""
    if minor < 19:
        return _AGGREGATES
    return _object({"resource_provider_generation": _GENERATION, "aggregates": _AGGREGATES})


def claim_schema(minor: int, *, may_be_empty: bool) -> BodySchema:
    """The allocations of one consumer, from 1.12 on."""
    entry = _object({"resources": _by(_NAME, _AMOUNT, 1)}, {"generation": _GENERATION})
    required: dict[str, BodySchema] = {
        "allocations": _by(_UUID, entry, 0 if may_be_empty else 1),
        "project_id": _OWNER,
        "user_id": _OWNER,
    }
    optional: dict[str, BodySchema] = {}
    if minor >= 28:
        required["consumer_generation"] = {"type": ["integer", "null"]}
    if minor >= 34:
        optional["mappings"] = {"type": "object"}
    if minor >= 38:
        required["consumer_type"] = {**_NAME, "pattern": "^[A-Z0-9_]+$"}
    return _object(required, optional)


def claims_schema(minor: int) -> BodySchema:
    """The allocations of several consumers."""
    return _by(_UUID, claim_schema(minor, may_be_empty=True), 1)


def reshape_schema(minor: int) -> BodySchema:
    """Inventories of providers, and allocations of consumers."""
    return _object(
        {
            "inventories": _by(_UUID, INVENTORIES),
            "allocations": _by(_UUID, claim_schema(minor, may_be_empty=True)),
        }
    )


def demand_valid(body: Any, schema: BodySchema) -> None:
    """Refuse a body that does not fit the schema."""
    checker = Draft202012Validator(schema, format_checker=_FORMATS)
    for error in checker.iter_errors(body):
        raise FakeRefusal(400, f"JSON does not validate: {error.message}")
