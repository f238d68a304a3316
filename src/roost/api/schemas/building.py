"""The functions that schemas are written with, and the choice of a schema by version."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

from roost.api.microversions import Microversion
from roost.api.validation import Schema

T = TypeVar("T")

Document: TypeAlias = dict[str, Any]

CLASS_NAME = "^[A-Z0-9_]+$"
CUSTOM_CLASS_NAME = "^CUSTOM_[A-Z0-9_]+$"
UUID_KEY = "^[0-9a-fA-F-]{36}$"

UUID: Document = {"type": "string", "format": "uuid"}
UUID_OR_NULL: Document = {"type": ["string", "null"], "format": "uuid"}
INTEGER: Document = {"type": "integer"}
EXTERNAL_ID: Document = {"type": "string", "minLength": 1, "maxLength": 255}


def integer(minimum: int, maximum: int | None = None) -> Document:
    """A whole number within bounds."""
    bounds = {"type": "integer", "minimum": minimum}
    return bounds if maximum is None else bounds | {"maximum": maximum}


def text(
    pattern: str | None = None, minimum: int | None = None, maximum: int | None = None
) -> Document:
    """A string of some form and length."""
    limits = {"pattern": pattern, "minLength": minimum, "maxLength": maximum}
    return {"type": "string"} | {key: value for key, value in limits.items() if value is not None}


def list_of(items: Document, minimum: int = 0, unique: bool = False) -> Document:
    """A list with at least `minimum` items."""
    limits: Document = {"minItems": minimum} if minimum else {}
    if unique:
        limits["uniqueItems"] = True
    return {"type": "array", "items": items} | limits


def record(required: Document, optional: Document | None = None) -> Document:
    """An object with these members only."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def mapping(key_pattern: str, value: Document, minimum: int = 0) -> Document:
    """An object whose keys are of one form and whose values are of one kind."""
    limits = {"minProperties": minimum} if minimum else {}
    return {
        "type": "object",
        "patternProperties": {key_pattern: value},
        "additionalProperties": False,
    } | limits


class ByVersion(Generic[T]):
    """A value that changes with the version: each value with its first version."""

    def __init__(self, *values: tuple[str, T]) -> None:
        self.entries = tuple(
            (Microversion(*map(int, since.split("."))), value) for since, value in values
        )
        starts = [since for since, _ in self.entries]
        assert starts == sorted(starts), "versions are listed in their order"

    def at(self, version: Microversion) -> T:
        """The value for this version."""
        return next(value for since, value in reversed(self.entries) if since <= version)

    def find(self, version: Microversion) -> T | None:
        """The value for this version; `None` before the first one."""
        return self.at(version) if self.entries[0][0] <= version else None


class Versions(ByVersion[Schema]):
    """The schemas of a request, each with its first version."""

    def __init__(self, *documents: tuple[str, Document]) -> None:
        super().__init__(*((since, Schema(document)) for since, document in documents))
