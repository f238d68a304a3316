"""The JSON schemas of a tree file, and a sentence for each violation, at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

import os_resource_classes
import os_traits
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from roost.client.ownership.owner_names import OWNER_LENGTH_MAX
from roost.client.tree_file.yaml_lines import FileProblem, Located
from roost.model.identifiers import CUSTOM_PREFIX, NAME_LENGTH_MAX, is_custom_name, is_uuid
from roost.model.inventory import INTEGER_MAX

STANDARD_TRAITS = frozenset(os_traits.get_traits())
STANDARD_CLASSES = frozenset(os_resource_classes.STANDARDS)

_NAMESPACES = tuple(sorted({f"{name.split('_')[0]}_" for name in STANDARD_TRAITS}))
_WELL_FORMED = re.compile(r"[A-Z0-9_]+\Z")


def is_trait(name: str) -> bool:
    """Whether a server may know this trait: custom, or in a namespace of the standard traits.

    A server may have newer standard traits than this machine. So an unknown name in a namespace
    is a trait, though not one of `is_known_trait`.

    >>> is_trait("CUSTOM_GOLD"), is_trait("HW_CPU_OF_NEXT_YEAR"), is_trait("GOLD")
    (True, True, False)
    """
    return is_custom_name(name) or (
        len(name) <= NAME_LENGTH_MAX
        and name.startswith(_NAMESPACES)
        and _WELL_FORMED.match(name) is not None
    )


def is_known_trait(name: str) -> bool:
    """Whether a trait is custom or among the standard traits of this machine."""
    return is_custom_name(name) or name in STANDARD_TRAITS


def is_resource_class(name: str) -> bool:
    """Whether a resource class is custom or standard.

    Standard classes have no namespaces and have not changed for years. So a name that is not
    among those of this machine is misspelt.
    """
    return is_custom_name(name) or name in STANDARD_CLASSES


def closest(word: str, words: Iterable[str]) -> str | None:
    """The word that is most like a misspelt one; `None` if none is like it.

    >>> closest("trait", ["traits", "uuid"])
    'traits'
    """
    return next(iter(get_close_matches(word, list(words), n=1)), None)


def suggested_trait(name: str) -> str:
    """The well-formed trait that is most like this name."""
    return _suggested(name, STANDARD_TRAITS)


def suggested_resource_class(name: str) -> str:
    """The well-formed resource class that is most like this name.

    >>> suggested_resource_class("vcpus"), suggested_resource_class("Custom-Gold")
    ('VCPU', 'CUSTOM_GOLD')
    """
    return _suggested(name, STANDARD_CLASSES)


@lru_cache(maxsize=1000)
def _suggested(name: str, standard: Collection[str]) -> str:
    well_formed = re.sub(r"[^A-Z0-9_]", "_", name.upper())
    if well_formed in standard or is_custom_name(well_formed):
        return well_formed
    custom = f"{CUSTOM_PREFIX}{well_formed.strip('_') or 'NAME'}"
    return closest(well_formed, sorted(standard)) or custom[:NAME_LENGTH_MAX]


JsonSchema = dict[str, Any]


class TextFormat(NamedTuple):
    """The format of a text: its check, and the sentence about a text that fails it."""

    accepts: Callable[[str], bool]
    refusal: Callable[[str], str]


class WordedSchema:
    """A schema whose violations become sentences. It uses the keywords of `_WORDINGS` only."""

    def __init__(self, schema: JsonSchema, formats: Mapping[str, TextFormat] | None = None) -> None:
        self._formats = formats or {}
        checker = FormatChecker(formats=())
        for name, format_ in self._formats.items():
            checker.checks(name)(_if_text(format_.accepts))
        self._validator = Draft202012Validator(schema, format_checker=checker)

    def problems(self, document: Located) -> Iterator[FileProblem]:
        """The problems of a document, or of a part of one."""
        errors = self._validator.iter_errors(document.value)
        return (self._worded(error, document) for error in errors)

    def _worded(self, error: ValidationError, document: Located) -> FileProblem:
        place = document
        label = ""
        for step in error.absolute_path:
            place = place.items[step]
            label += f"[{step}]" if isinstance(step, int) else f".{step}"
        found: Any = error.instance
        if "propertyNames" in error.absolute_schema_path:
            place = place.keys[found]
        label = f"`{label.lstrip('.')}`" if label else "this"
        if error.validator == "format":
            return place.problem(self._formats[str(error.validator_value)].refusal(found))
        violation = _Violation(place, label, found, error.validator_value)
        return place.problem(_WORDINGS[str(error.validator)](violation))


def _if_text(accepts: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or accepts(value)


class _Violation(NamedTuple):
    """A value, its place, and the rule of the schema that it breaks."""

    place: Located
    label: str
    found: Any
    rule: Any


def _unknown_key(violation: _Violation) -> str:
    key, known = violation.found, violation.rule
    suggestion = closest(key, known)
    fix = f"did you mean `{suggestion}`?" if suggestion else f"there are {', '.join(known)}"
    return f"unknown key `{key}`: {fix}"


_MISSING = {
    "name": "every provider has one, such as `name: compute-1`",
    "providers": "write `providers: []` to declare that there are none",
    "total": "write the amount, such as `total: 16`",
}


def _missing(violation: _Violation) -> str:
    (missing,) = violation.rule
    return f"`{missing}` is missing: {_MISSING[missing]}"


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


def _wrong_type(violation: _Violation) -> str:
    kinds = [violation.rule] if isinstance(violation.rule, str) else violation.rule
    wanted = " or ".join(_KINDS[kind] for kind in kinds)
    found = _KINDS_OF_VALUES[type(violation.found)]
    spelling = violation.place.spelling
    but = f"but YAML reads `{spelling}` as {found}" if spelling else f"not {found}"
    return f"{violation.label} must be {wanted}, {but}: {_type_fix(kinds[0], violation)}"


def _type_fix(expected: str, violation: _Violation) -> str:
    spelling = violation.place.spelling
    if expected == "array":
        return f"write [{spelling}]" if spelling else "write [] if there are none"
    if violation.found is None:
        return "write a value, or leave the key out; the word null needs quotes"
    if expected == "string":
        return f'write "{spelling}" in quotes' if spelling else "text with { or [ needs quotes"
    if expected == "object":
        return "write `key: value` lines"
    return f"write {_KINDS[expected]}, without quotes"


def _too_small(violation: _Violation) -> str:
    return f"{violation.label} is {violation.found}: write {violation.rule} or more"


def _too_large(violation: _Violation) -> str:
    return f"{violation.label} is {violation.found}: write {violation.rule} or less"


def _too_short(violation: _Violation) -> str:
    return f"{violation.label} is empty: write at least one character"


def _too_long(violation: _Violation) -> str:
    length, most = len(violation.found), violation.rule
    return f"{violation.label} has {length} characters: {most} are the most"


# The sentences by the keyword of the schema; a format has its own.
_WORDINGS: dict[str, Callable[[_Violation], str]] = {
    "enum": _unknown_key,
    "maxLength": _too_long,
    "maximum": _too_large,
    "minLength": _too_short,
    "minimum": _too_small,
    "required": _missing,
    "type": _wrong_type,
}


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
