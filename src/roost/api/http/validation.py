"""Bodies and query strings against their schemas.

Valid requests see native code only: orjson parses, jsonschema-rs validates. What jsonschema-rs
refuses, the Python library validates again, because clients match on its sentences.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import jsonschema_rs
import orjson
from jsonschema.exceptions import best_match

from roost.api.http.errors import HttpError
from roost.model.identifiers import is_uuid

_LARGE_BYTES = 64 * 1024
_SENTENCE_LENGTH_MAX = 2_000

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("uuid")
def _is_uuid_if_text(value: object) -> bool:
    """Formats concern strings only; the schema says where null is allowed."""
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
        """The reason why the instance is not valid; `None` if it is valid.

        The Python library is slow and prints the instance. So the reason for a `large` instance is
        the first sentence of the native library.
        """
        if self._fast.is_valid(instance):
            return None
        error = None if large else best_match(self._slow.iter_errors(instance))
        if error is not None:
            return str(error)
        # Only the native library refuses a line feed at the end of a name, as it should.
        return self._first_error(instance).message[:_SENTENCE_LENGTH_MAX]

    def placed_problem(self, instance: Any) -> str | None:
        """Like `problem`, and the sentence begins with the place: `changes[2].drain: ...`."""
        if self._fast.is_valid(instance):
            return None
        error = self._first_error(instance)
        place = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
        )
        sentence = error.message[:_SENTENCE_LENGTH_MAX]
        return f"{place.removeprefix('.')}: {sentence}" if place else sentence

    def _first_error(self, instance: Any) -> jsonschema_rs.ValidationError:
        """The first error of the native library; `RecursionError` if the instance is too deep."""
        try:
            return next(self._fast.iter_errors(instance))
        except ValueError as error:
            raise RecursionError(str(error)) from None


def parse_json(body: bytes) -> Any:
    """The value of a JSON body; 400 with the reason if it is no JSON."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HttpError(400, f"Malformed JSON: {error}") from None
    # No database stores NUL in text. In JSON, NUL is always this escape.
    if b"\\u0000" in body and _has_nul(value):
        raise HttpError(400, "JSON does not validate: NUL character in a string")
    return value


def parse_body(body: bytes, schema: Schema) -> Any:
    """The value of a JSON body; 400 with the reason if it is no JSON or not valid."""
    try:
        value = parse_json(body)
        problem = schema.problem(value, large=len(body) > _LARGE_BYTES)
    except RecursionError:
        # Valid bodies have a few levels.
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
