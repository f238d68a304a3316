"""The form of a tree file: JSON schemas, and sentences for what does not fit them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from roost.client.tree_file.names import (
    closest,
    is_resource_class,
    is_trait,
    meant_resource_class,
    meant_trait,
)
from roost.client.tree_file.yaml_lines import Located, Problem
from roost.model.identifiers import NAME_LENGTH_MAX, is_uuid
from roost.model.inventory import INTEGER_MAX

Document = dict[str, Any]

PROVIDER_NAME_LENGTH_MAX = 200
# The owner becomes a trait, whose name must not be too long either.
OWNER_LENGTH_MAX = NAME_LENGTH_MAX - len("CUSTOM_OWNER_")


def _integer(minimum: int) -> Document:
    return {"type": "integer", "minimum": minimum, "maximum": INTEGER_MAX}


def _record(required: Document, optional: Document) -> Document:
    properties = required | optional
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "propertyNames": {"enum": list(properties)},
    }


_UUID: Document = {"type": "string", "format": "uuid"}
_NAME: Document = {"type": "string", "minLength": 1, "maxLength": PROVIDER_NAME_LENGTH_MAX}
_LIST: Document = {"type": "array"}

# A number alone stands for `total`. Bounds of numbers do not concern mappings and vice versa,
# so that one schema does for both, and its errors speak of what was written.
_INVENTORY = {
    **_record(
        {"total": _integer(1)},
        {
            "reserved": _integer(0),
            "min_unit": _integer(1),
            "max_unit": _integer(1),
            "step_size": _integer(1),
            # The largest single-precision number, which is what MySQL keeps.
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
        # Each child is looked at by itself.
        "children": _LIST,
    },
)

_OUTERMOST = _record(
    {"providers": _LIST},
    {"owner": {"type": "string", "minLength": 1, "maxLength": OWNER_LENGTH_MAX}},
)
# Anything may stand under a key with `x-`, for anchors that are used further down.
_FILE = _OUTERMOST | {
    "propertyNames": {"if": {"pattern": "^x-"}, "else": _OUTERMOST["propertyNames"]}
}


class _Format(NamedTuple):
    """A kind of word: what belongs to it, and what to say of a word that does not."""

    holds: Callable[[str], bool]
    refusal: Callable[[str], str]


def _no_uuid(word: str) -> str:
    return f"`{word}` is no UUID: write it like 5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11"


def _no_trait(word: str) -> str:
    return (
        f"`{word}` is neither a standard trait nor CUSTOM_ followed by A-Z, 0-9 and _:"
        f" did you mean `{meant_trait(word)}`?"
    )


def _no_resource_class(word: str) -> str:
    return (
        f"`{word}` is neither a standard resource class nor CUSTOM_ followed by A-Z, 0-9 and _:"
        f" did you mean `{meant_resource_class(word)}`?"
    )


_FORMATS = {
    "uuid": _Format(is_uuid, _no_uuid),
    "trait": _Format(is_trait, _no_trait),
    "resource class": _Format(is_resource_class, _no_resource_class),
}


def _validator(schema: Document) -> Draft202012Validator:
    checker = FormatChecker(formats=())
    for name, format_ in _FORMATS.items():
        checker.checks(name)(_if_text(format_.holds))
    return Draft202012Validator(schema, format_checker=checker)


def _if_text(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or holds(value)


_OF_FILE = _validator(_FILE)
_OF_PROVIDER = _validator(_PROVIDER)


def file_problems(document: Located) -> Iterator[Problem]:
    """What is wrong with the outermost level of a file."""
    return (_worded(error, document) for error in _OF_FILE.iter_errors(document.value))


def provider_problems(provider: Located) -> Iterator[Problem]:
    """What is wrong with one provider by itself, whatever the others are."""
    return (_worded(error, provider) for error in _OF_PROVIDER.iter_errors(provider.value))


class _Misfit(NamedTuple):
    """What was found somewhere, and the rule of the schema that it breaks."""

    place: Located
    label: str
    found: Any
    rule: Any


def _worded(error: ValidationError, document: Located) -> Problem:
    place = document
    label = ""
    for step in error.absolute_path:
        place = place.items[step]
        label += f"[{step}]" if isinstance(step, int) else f".{step}"
    found: Any = error.instance
    if "propertyNames" in error.absolute_schema_path:
        place = place.keys[found]
    label = f"`{label.lstrip('.')}`" if label else "this"
    misfit = _Misfit(place, label, found, error.validator_value)
    return place.problem(_WORDINGS[str(error.validator)](misfit))


def _unknown_key(misfit: _Misfit) -> str:
    key, known = misfit.found, misfit.rule
    meant = closest(key, known)
    fix = f"did you mean `{meant}`?" if meant else f"there are {', '.join(known)}"
    return f"unknown key `{key}`: {fix}"


_MISSING = {
    "name": "every provider has one, such as `name: compute-1`",
    "providers": "write `providers: []` to declare that there are none",
    "total": "say how much there is, such as `total: 16`",
}


def _missing(misfit: _Misfit) -> str:
    (missing,) = misfit.rule
    return f"`{missing}` is missing: {_MISSING[missing]}"


_KINDS = {
    "array": "a list",
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
    type(None): "nothing",
}


def _wrong_type(misfit: _Misfit) -> str:
    kinds = [misfit.rule] if isinstance(misfit.rule, str) else misfit.rule
    wanted = " or ".join(_KINDS[kind] for kind in kinds)
    found = _KINDS_OF_VALUES[type(misfit.found)]
    spelling = misfit.place.spelling
    but = f"but YAML reads `{spelling}` as {found}" if spelling else f"not {found}"
    return f"{misfit.label} must be {wanted}, {but}: {_type_fix(kinds[0], misfit)}"


def _type_fix(expected: str, misfit: _Misfit) -> str:
    spelling = misfit.place.spelling
    if expected == "array":
        return f"write [{spelling}]" if spelling else "write [] if there are none"
    if misfit.found is None:
        return "write a value, or leave the key out; the word null needs quotes"
    if expected == "string":
        return f'write "{spelling}" in quotes' if spelling else "text with { or [ needs quotes"
    if expected == "object":
        return "write `key: value` lines"
    return f"write {_KINDS[expected]}, without quotes"


def _wrong_format(misfit: _Misfit) -> str:
    return _FORMATS[misfit.rule].refusal(misfit.found)


def _too_small(misfit: _Misfit) -> str:
    return f"{misfit.label} is {misfit.found}: write {misfit.rule} or more"


def _too_large(misfit: _Misfit) -> str:
    return f"{misfit.label} is {misfit.found}: write {misfit.rule} or less"


def _too_short(misfit: _Misfit) -> str:
    return f"{misfit.label} is empty: write at least one character"


def _too_long(misfit: _Misfit) -> str:
    length, most = len(misfit.found), misfit.rule
    return f"{misfit.label} has {length} characters: {most} are the most"


# By the word of the schema that was broken; every such word of the schemas above is here.
_WORDINGS: dict[str, Callable[[_Misfit], str]] = {
    "enum": _unknown_key,
    "format": _wrong_format,
    "maxLength": _too_long,
    "maximum": _too_large,
    "minLength": _too_short,
    "minimum": _too_small,
    "required": _missing,
    "type": _wrong_type,
}
