"""The JSON schemas of a tree file, and a sentence for each violation, at its place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

import os_resource_classes
import os_traits
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from roost.client.tree_file.yaml_lines import FileProblem, Located
from roost.model.identifiers import CUSTOM_PREFIX, NAME_LENGTH_MAX, is_custom_name, is_uuid
from roost.model.inventory import INTEGER_MAX
from roost.model.text import nearest
from roost.model.trees.owner_names import OWNER_LENGTH_MAX

PROVIDER_NAME_LENGTH_MAX = 200

_TRAITS = frozenset(os_traits.get_traits())
_CLASSES = frozenset(os_resource_classes.STANDARDS)
_NAMESPACES = tuple(sorted({f"{name.split('_')[0]}_" for name in _TRAITS}))
_WELL_FORMED = re.compile(r"[A-Z0-9_]+\Z")

JsonSchema = dict[str, Any]


# -- names


def is_known_trait(name: str) -> bool:
    """Whether a trait is custom or among the standard traits of this machine."""
    return is_custom_name(name) or name in _TRAITS


def suggested_trait(name: str) -> str:
    """The well-formed trait that is most like this name.

    >>> suggested_trait("hw-cpu-x86-avx2"), suggested_trait("Custom-Gold")
    ('HW_CPU_X86_AVX2', 'CUSTOM_GOLD')
    """
    return _suggested(name, _TRAITS)


@lru_cache(maxsize=1000)
def _suggested(name: str, standard: Collection[str]) -> str:
    well_formed = re.sub(r"[^A-Z0-9_]", "_", name.upper())
    if well_formed in standard or is_custom_name(well_formed):
        return well_formed
    custom = f"{CUSTOM_PREFIX}{well_formed.strip('_') or 'NAME'}"
    return nearest(well_formed, sorted(standard)) or custom[:NAME_LENGTH_MAX]


_FORMATS = FormatChecker(formats=())
"""The formats of texts. A check raises the sentence about a text that has not its format."""


@_FORMATS.checks("uuid", raises=ValueError)
def _demand_uuid(value: object) -> bool:
    if isinstance(value, str) and not is_uuid(value):
        raise ValueError(
            f"`{value}` is not a UUID: write it like 5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11"
        )
    return True


@_FORMATS.checks("trait", raises=ValueError)
def _demand_trait(value: object) -> bool:
    """A server may have newer standard traits, so any name in a namespace of them is a trait."""
    if not isinstance(value, str) or is_custom_name(value):
        return True
    is_standard = value.startswith(_NAMESPACES) and _WELL_FORMED.match(value) is not None
    if len(value) > NAME_LENGTH_MAX or not is_standard:
        raise _wrong_name(value, "trait", _TRAITS)
    return True


@_FORMATS.checks("resource class", raises=ValueError)
def _demand_resource_class(value: object) -> bool:
    """Standard classes have not changed for years, so an unknown name is misspelt."""
    if isinstance(value, str) and not is_custom_name(value) and value not in _CLASSES:
        raise _wrong_name(value, "resource class", _CLASSES)
    return True


@_FORMATS.checks("item", raises=ValueError)
def _demand_item(value: object) -> bool:
    """A list stands in an option as text, with commas between its items."""
    if isinstance(value, str) and "," in value:
        raise ValueError("an item of a list has no comma: write two items")
    return True


def _wrong_name(name: str, noun: str, standard: frozenset[str]) -> ValueError:
    return ValueError(
        f"`{name}` is neither a standard {noun} nor CUSTOM_ followed by A-Z, 0-9 and _:"
        f" did you mean `{_suggested(name, standard)}`?"
    )


# -- sentences


def schema_problems(schema: JsonSchema, document: Located) -> Iterator[FileProblem]:
    """The problems of a document, or of a part of one; `_sentence` knows each keyword used."""
    validator = Draft202012Validator(schema, format_checker=_FORMATS)
    for error in validator.iter_errors(document.value):
        place = document
        label = ""
        for step in error.absolute_path:
            place = place.items[step]
            label += f"[{step}]" if isinstance(step, int) else f".{step}"
        if "propertyNames" in error.absolute_schema_path:
            place = place.keys[str(error.instance)]
        yield place.problem(_sentence(error, place, f"`{label.lstrip('.')}`" if label else "this"))


def _sentence(error: ValidationError, place: Located, label: str) -> str:
    """What is wrong with a value, and what to write instead."""
    found: Any = error.instance
    rule: Any = error.validator_value
    if error.validator == "format":
        return str(error.cause)
    if error.validator == "required":
        return f"`{rule[0]}` is missing: {_MISSING[rule[0]]}"
    if error.validator == "enum":
        meant = nearest(found, rule)
        fix = f"did you mean `{meant}`?" if meant else f"there are {', '.join(rule)}"
        return f"unknown key `{found}`: {fix}"
    if error.validator == "type":
        return _wrong_type([rule] if isinstance(rule, str) else rule, place, label)
    sentence = _OUT_OF_BOUNDS[str(error.validator)]
    return sentence.format(label=label, found=found, length=len(str(found)), rule=rule)


_OUT_OF_BOUNDS = {
    "minimum": "{label} is {found}: write {rule} or more",
    "maximum": "{label} is {found}: write {rule} or less",
    "minLength": "{label} is empty: write at least one character",
    "maxLength": "{label} has {length} characters: {rule} are the most",
}
_MISSING = {
    "name": "every provider has one, such as `name: compute-1`",
    "providers": "write `providers: []` to declare that there are none",
    "total": "write the amount, such as `total: 16`",
}
_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_KINDS_OF_VALUES: dict[type, str] = {
    bool: "a boolean",
    dict: "a mapping",
    float: "a decimal number",
    int: "a number",
    list: "a list",
    str: "text",
    type(None): "null",
}


def _wrong_type(kinds: list[str], place: Located, label: str) -> str:
    wanted = " or ".join(_KINDS[kind] for kind in kinds)
    found = _KINDS_OF_VALUES[type(place.value)]
    spelling = place.spelling
    but = f"but YAML reads `{spelling}` as {found}" if spelling else f"not {found}"
    return f"{label} must be {wanted}, {but}: {_type_fix(kinds[0], place)}"


def _type_fix(expected: str, place: Located) -> str:
    spelling = place.spelling
    if expected == "array":
        return f"write [{spelling}]" if spelling else "write [] if there are none"
    if place.value is None:
        return "write a value, or leave the key out; the word null needs quotes"
    if expected == "string":
        return f'write "{spelling}" in quotes' if spelling else "text with { or [ needs quotes"
    if expected == "object":
        return "write `key: value` lines"
    return f"write {_KINDS[expected]}, without quotes"


# -- the schemas


def _text(most: int) -> JsonSchema:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _integer(minimum: int) -> JsonSchema:
    return {"type": "integer", "minimum": minimum, "maximum": INTEGER_MAX}


def _list(**items: str) -> JsonSchema:
    return {"type": "array", "items": items}


def _record(required: JsonSchema, optional: JsonSchema) -> JsonSchema:
    properties = required | optional
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "propertyNames": {"enum": list(properties)},
    }


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

PROVIDER = _record(
    {"name": _text(PROVIDER_NAME_LENGTH_MAX)},
    {
        "uuid": {"type": "string", "format": "uuid"},
        "parent": _text(PROVIDER_NAME_LENGTH_MAX),
        "inventories": {
            "type": "object",
            "propertyNames": {"format": "resource class"},
            "additionalProperties": _INVENTORY,
        },
        "traits": _list(type="string", format="trait"),
        "aggregates": _list(type="string", format="uuid"),
        "children": _list(),
    },
)
"""One provider by itself: each of its children is checked by itself."""

_OUTERMOST = _record({"providers": _list()}, {"owner": _text(OWNER_LENGTH_MAX)})
# A key with `x-` may have any value: it is a place for anchors.
FILE = _OUTERMOST | {
    "propertyNames": {"if": {"pattern": "^x-"}, "else": _OUTERMOST["propertyNames"]}
}
"""The outermost level of a file."""
