"""The words that schemas of requests and answers are written with, and the choice by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from roost.api.http.microversions import MIN_VERSION, Microversion
from roost.api.http.validation import Schema

T = TypeVar("T")

Document: TypeAlias = dict[str, Any]

CLASS_NAME = "^[A-Z0-9_]+$"
CUSTOM_CLASS_NAME = "^CUSTOM_[A-Z0-9_]+$"
UUID_KEY = "^[0-9a-fA-F-]{36}$"

_NOTHING: Mapping[str, Any] = {}
UUID: Document = {"type": "string", "format": "uuid"}
UUID_OR_NULL: Document = {"type": ["string", "null"], "format": "uuid"}
STRING: Document = {"type": "string"}
INTEGER: Document = {"type": "integer"}
EXTERNAL_ID: Document = {"type": "string", "minLength": 1, "maxLength": 255}

# What examples name.
EXAMPLE_PROVIDER = "c0ffee00-0000-4000-8000-000000000001"
EXAMPLE_CONSUMER = "c0ffee00-0000-4000-8000-00000000c001"
EXAMPLE_AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"
EXAMPLE_PROJECT = "42a32c07-3eeb-4401-9373-68a8cdca6784"
EXAMPLE_USER = "66cb2f29-c86d-47c3-8af5-69ae7b778c70"


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


def choice(*values: str) -> Document:
    """One of these strings."""
    return {"type": "string", "enum": list(values)}


def flag(meaning: str) -> Document:
    """A truth value, with what true means."""
    return {"type": "boolean", "description": meaning}


def list_of(items: Document | AnswerSchema, minimum: int = 0, unique: bool = False) -> Document:
    """A list with at least `minimum` items."""
    limits: Document = {"minItems": minimum} if minimum else {}
    if unique:
        limits["uniqueItems"] = True
    return {"type": "array", "items": items} | limits


def record(
    required: Mapping[str, Any] = _NOTHING, optional: Mapping[str, Any] = _NOTHING, /, **more: Any
) -> Document:
    """An object with these members only."""
    return members(required, optional, **more) | {"additionalProperties": False}


def members(
    required: Mapping[str, Any] = _NOTHING, optional: Mapping[str, Any] = _NOTHING, /, **more: Any
) -> Document:
    """An object with these members; `more` are required, too. Later releases may add others."""
    needed = {**required, **more}
    return {"type": "object", "properties": {**needed, **optional}, "required": list(needed)}


def mapping(key_pattern: str, value: Document, minimum: int = 0) -> Document:
    """An object whose keys are of one form and whose values are of one kind."""
    limits = {"minProperties": minimum} if minimum else {}
    return {
        "type": "object",
        "patternProperties": {key_pattern: value},
        "additionalProperties": False,
    } | limits


def described(document: Document, meaning: str) -> Document:
    """The same schema with a description."""
    return document | {"description": meaning}


def or_null(document: Document | AnswerSchema, meaning: str = "") -> Document:
    """A value of this type, or null."""
    if isinstance(document, dict) and "type" in document and "enum" not in document:
        nullable = document | {"type": [document["type"], "null"]}
    else:
        nullable = {"anyOf": [document, {"type": "null"}]}
    return described(nullable, meaning) if meaning else nullable


def growing(*steps: tuple[str, Document, Document]) -> list[tuple[str, Document]]:
    """A record for each version: it has the members of the versions before, and new ones.

    A step is a version with its new members: those that are required, and those that are not.
    """
    required: Document = {}
    optional: Document = {}
    found = []
    for since, more, more_optional in steps:
        required, optional = required | more, optional | more_optional
        found.append((since, record(required, optional)))
    return found


class ByVersion(Generic[T]):
    """A value that changes with the version: each value with its first version."""

    def __init__(self, *values: tuple[str, T]) -> None:
        self.entries = tuple(
            (Microversion(*map(int, since.split("."))), value) for since, value in values
        )
        starts = [since for since, _ in self.entries]
        assert starts == sorted(starts), "versions are listed in their order"
        self._newest_first = self.entries[::-1]

    def at(self, version: Microversion) -> T:
        """The value for this version."""
        for since, value in self._newest_first:
            if since <= version:
                return value
        raise LookupError(f"there is no value at {version}")

    def find(self, version: Microversion) -> T | None:
        """The value for this version; `None` before the first one."""
        return self.at(version) if self.entries[0][0] <= version else None


class Versions(ByVersion[Schema]):
    """The schemas of a request, each with its first version."""

    def __init__(self, *documents: tuple[str, Document]) -> None:
        super().__init__(*((since, Schema(document)) for since, document in documents))


class AnswerSchema:
    """A named schema of an answer, or of a part that several answers have.

    A document may have another `AnswerSchema` in the place of a schema. No request is checked
    against it. The OpenAPI document shows it, and tests hold answers against it.
    """

    def __init__(
        self,
        name: str,
        meaning: str,
        *documents: tuple[str, Document],
        example: tuple[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.text = meaning
        self.versions = ByVersion(*documents)
        # An answer, and the first version that gives it; the newest one still does.
        self.example = None if example is None else ByVersion(example)

    @classmethod
    def of(cls, name: str, meaning: str, document: Document, example: Any = None) -> AnswerSchema:
        """An answer that has one form in all versions of its routes."""
        since = str(MIN_VERSION)
        found = None if example is None else (since, example)
        return cls(name, meaning, (since, document), example=found)


# What several answers have.

# Answers have uuids as clients wrote them, in adopted databases too. So this names no format.
PROVIDER_UUID = described(STRING, "The uuid of a resource provider.")
GENERATION = described(
    INTEGER, "Counts the changes of the provider. Send it back with the next write."
)
PARENT = or_null(STRING, "The parent; null for a root.")
COUNT = integer(0)
AMOUNTS = mapping(CLASS_NAME, COUNT)
HELD_AMOUNTS = mapping(CLASS_NAME, integer(1))
SENTENCE = described(STRING, "One sentence for people.")
PROVIDER_REFERENCE = AnswerSchema.of(
    "ProviderReference",
    "A provider, by its uuid and its name.",
    members({"uuid": STRING, "name": STRING}),
)
