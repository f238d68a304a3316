"""The JSON schemas of a tree file."""

from __future__ import annotations

from collections.abc import Iterator

from roost.client.ownership.owner_names import OWNER_LENGTH_MAX
from roost.client.tree_file.names import (
    is_resource_class,
    is_trait,
    suggested_resource_class,
    suggested_trait,
)
from roost.client.tree_file.violations import JsonSchema, TextFormat, WordedSchema
from roost.client.tree_file.yaml_lines import FileProblem, Located
from roost.model.identifiers import is_uuid
from roost.model.inventory import INTEGER_MAX

PROVIDER_NAME_LENGTH_MAX = 200


def _integer(minimum: int) -> JsonSchema:
    return {"type": "integer", "minimum": minimum, "maximum": INTEGER_MAX}


def _record(required: JsonSchema, optional: JsonSchema) -> JsonSchema:
    properties = required | optional
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "propertyNames": {"enum": list(properties)},
    }


_UUID: JsonSchema = {"type": "string", "format": "uuid"}
_NAME: JsonSchema = {"type": "string", "minLength": 1, "maxLength": PROVIDER_NAME_LENGTH_MAX}
_LIST: JsonSchema = {"type": "array"}

# A number alone means `total`. The bounds of numbers do not apply to mappings and vice versa. So
# one schema serves both, and its errors are about the form that the file has.
_INVENTORY = {
    **_record(
        {"total": _integer(1)},
        {
            "reserved": _integer(0),
            "min_unit": _integer(1),
            "max_unit": _integer(1),
            "step_size": _integer(1),
            # MySQL stores single-precision numbers, and this is the largest.
            "allocation_ratio": {"type": "number", "minimum": 0, "maximum": 3.40282e38},
        },
    ),
    **_integer(1),
    "type": ["integer", "object"],
}

_PROVIDER = _record(
    {"name": _NAME},
    {
        "uuid": _UUID,
        "parent": _NAME,
        "inventories": {
            "type": "object",
            "propertyNames": {"format": "resource class"},
            "additionalProperties": _INVENTORY,
        },
        "traits": _LIST | {"items": {"type": "string", "format": "trait"}},
        "aggregates": _LIST | {"items": _UUID},
        # `provider_problems` checks each child by itself.
        "children": _LIST,
    },
)

_OUTERMOST = _record(
    {"providers": _LIST},
    {"owner": {"type": "string", "minLength": 1, "maxLength": OWNER_LENGTH_MAX}},
)
# A key with `x-` may have any value: it is a place for anchors.
_FILE = _OUTERMOST | {
    "propertyNames": {"if": {"pattern": "^x-"}, "else": _OUTERMOST["propertyNames"]}
}


def _wrong_uuid(word: str) -> str:
    return f"`{word}` is not a UUID: write it like 5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11"


def _wrong_trait(word: str) -> str:
    return (
        f"`{word}` is neither a standard trait nor CUSTOM_ followed by A-Z, 0-9 and _:"
        f" did you mean `{suggested_trait(word)}`?"
    )


def _wrong_resource_class(word: str) -> str:
    return (
        f"`{word}` is neither a standard resource class nor CUSTOM_ followed by A-Z, 0-9 and _:"
        f" did you mean `{suggested_resource_class(word)}`?"
    )


_FORMATS = {
    "uuid": TextFormat(is_uuid, _wrong_uuid),
    "trait": TextFormat(is_trait, _wrong_trait),
    "resource class": TextFormat(is_resource_class, _wrong_resource_class),
}


_OF_FILE = WordedSchema(_FILE, _FORMATS)
_OF_PROVIDER = WordedSchema(_PROVIDER, _FORMATS)


def file_problems(document: Located) -> Iterator[FileProblem]:
    """The problems of the outermost level of a file."""
    return _OF_FILE.problems(document)


def provider_problems(provider: Located) -> Iterator[FileProblem]:
    """The problems of one provider by itself."""
    return _OF_PROVIDER.problems(provider)
