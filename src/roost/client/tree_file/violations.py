"""Violations of the JSON schema of a YAML file: a sentence for each, at its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from roost.client.tree_file.names import closest
from roost.client.tree_file.yaml_lines import FileProblem, Located

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
