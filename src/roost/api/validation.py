"""Bodies and query strings against their schemas.

The good path is native: orjson parses, jsonschema-rs validates. Only what is refused is looked
at again by the Python library, because clients match on the sentences of that one.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import jsonschema_rs
import orjson
from jsonschema.exceptions import best_match

from roost.api.errors import HttpError
from roost.model.identifiers import is_uuid

_LARGE_BYTES = 64 * 1024
_SENTENCE_LENGTH_MAX = 2_000

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("uuid")
def _is_uuid_if_text(value: object) -> bool:
    """Formats say something about strings only; null passes where it is allowed."""
    return not isinstance(value, str) or is_uuid(value)


class Schema:
    """A JSON schema, compiled once."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._fast = jsonschema_rs.Draft7Validator(
            document, formats={"uuid": is_uuid}, validate_formats=True
        )
        self._slow = jsonschema.Draft7Validator(document, format_checker=_formats)

    def problem(self, instance: Any, *, large: bool = False) -> str | None:
        """What is wrong with the instance; nothing if it is valid.

        The Python library takes its time and prints the instance, so of a `large` one only the
        native library's first sentence is told.
        """
        if self._fast.is_valid(instance):
            return None
        error = None if large else best_match(self._slow.iter_errors(instance))
        if error is not None:
            return str(error)
        # The two agree except on a line feed at the end of a name, which only the native one
        # refuses, as it should.
        return str(next(self._fast.iter_errors(instance)).message)[:_SENTENCE_LENGTH_MAX]


def parse_json(body: bytes) -> Any:
    """The value of a JSON body; 400 with the reason if it is none."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HttpError(400, f"Malformed JSON: {error}") from None
    # No database stores NUL in text; it can only come as this escape.
    if b"\\u0000" in body and _has_nul(value):
        raise HttpError(400, "JSON does not validate: NUL character in a string")
    return value


def parse_body(body: bytes, schema: Schema) -> Any:
    """The value of a body that is JSON and valid; 400 with the reason otherwise."""
    try:
        value = parse_json(body)
        problem = schema.problem(value, large=len(body) > _LARGE_BYTES)
    except RecursionError:
        # No valid body is nested more than a few levels deep.
        problem = "it is nested too deeply"
    if problem is not None:
        raise HttpError(400, f"JSON does not validate: {problem}")
    return value


def check_query(pairs: list[tuple[str, str]], schema: Schema) -> dict[str, str]:
    """The last value of each key of the query string; 400 if a key or value is not allowed."""
    values = dict(pairs)
    problem = schema.problem(values)
    if problem is not None:
        raise HttpError(400, f"Invalid query string parameters: {problem}")
    return values


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(member) for key, member in value.items())
    return isinstance(value, list) and any(_has_nul(member) for member in value)
