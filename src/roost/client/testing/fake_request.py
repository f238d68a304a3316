"""A request as the handlers of a fake server see it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from roost.client.testing.bodies import BodySchema, demand_valid
from roost.client.testing.cloud import FakeRefusal
from roost.client.transport import PlacementRequest
from roost.model.identifiers import canonical_uuid, is_uuid

_VERSION = re.compile(r"1\.(\d+)\Z")


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """A request: its path, its query, its body and the minor number of its version."""

    method: str
    path: str
    minor: int
    query: Mapping[str, list[str]] = field(default_factory=dict)
    body: Any = None

    @classmethod
    def of(cls, request: PlacementRequest, newest: int) -> FakeRequest:
        """What the server reads of a request that a client sends."""
        parts = urlsplit(request.path)
        content = request.content()
        return cls(
            request.method,
            unquote(parts.path),
            _minor(request.version, newest),
            parse_qs(parts.query, keep_blank_values=True),
            # JSON, as over a network: no object is shared with the client.
            None if content is None else json.loads(content),
        )

    def valid(self, schema: BodySchema) -> Any:
        """The body, if it fits the schema."""
        demand_valid(self.body, schema)
        return self.body


def _minor(version: str | None, newest: int) -> int:
    if version is None:
        return 0
    if version == "latest":
        return newest
    found = _VERSION.match(version)
    if found is None or int(found[1]) > newest:
        raise FakeRefusal(406, f"Unacceptable version header: {version}")
    return int(found[1])


def uuid_in(text: str, noun: str) -> str:
    """The usual spelling of a uuid."""
    if not is_uuid(text):
        raise FakeRefusal(400, f"Malformed {noun}: {text}")
    return canonical_uuid(text)
