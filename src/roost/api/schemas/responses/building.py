"""The schema of an answer: it has a name, versions and an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.api.schemas.building import CLASS_NAME, ByVersion, Document, integer, mapping

# Answers have uuids as clients wrote them, in adopted databases too. So this names no format.
PROVIDER_UUID: Document = {"type": "string", "description": "The uuid of a resource provider."}
GENERATION: Document = {
    "type": "integer",
    "description": "Counts the changes of the provider. Send it back with the next write.",
}
COUNT = integer(0)
AMOUNTS = mapping(CLASS_NAME, integer(0))
TEXT: Document = {"type": "string", "description": "One sentence for people."}
_NO_TEXT = ""
STRING: Document = {"type": "string"}


class AnswerSchema:
    """A named schema of an answer, or of a part that several answers have.

    A document may have another `AnswerSchema` in the place of a schema.
    """

    def __init__(
        self,
        name: str,
        text: str,
        *documents: tuple[str, Document],
        example: tuple[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.versions = ByVersion(*documents)
        # An answer, and the first version that gives it; the newest one still does.
        self.example = None if example is None else ByVersion(example)


def described(document: Document, text: str) -> Document:
    """The same schema with a description."""
    return document | {"description": text}


def members(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Document:
    """An object with these members. Later releases may add more."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def or_null(document: Document | AnswerSchema, text: str = _NO_TEXT) -> Document:
    """A value of this type, or null."""
    if isinstance(document, dict) and "type" in document and "enum" not in document:
        nullable = document | {"type": [document["type"], "null"]}
    else:
        nullable = {"anyOf": [document, {"type": "null"}]}
    return described(nullable, text) if text else nullable


PROVIDER_REFERENCE = AnswerSchema(
    "ProviderReference",
    "A provider, by its uuid and its name.",
    ("1.0", members({"uuid": STRING, "name": STRING})),
)

NEXT = or_null(STRING, "The `marker` of the next page; null after the last one.")
