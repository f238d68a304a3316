"""What people and programs have to know about a route, beside its row in the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roost.api.microversions import MAX_VERSION, MIN_VERSION, Microversion
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses.building import AnswerSchema
from roost.api.validation import Schema

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Success:
    """An answer with a status that means: done."""

    text: str
    schema: AnswerSchema | None = None
    media_type: str = JSON
    # The names of its own headers, as `components.py` lists them.
    headers: tuple[str, ...] = ()
    # The versions that have it.
    since: Microversion = MIN_VERSION
    until: Microversion = MAX_VERSION


@dataclass(frozen=True, slots=True)
class ParameterText:
    """What a parameter or header means, with a valid value."""

    text: str
    example: str
    # The first version that lets a client send the parameter several times.
    repeated_since: Microversion | None = None


@dataclass(frozen=True, slots=True)
class QueryString:
    """The parameters that a route takes."""

    schemas: ByVersion[Schema]
    texts: Mapping[str, ParameterText]
    # What the parameters of request groups are together; empty if no parameter takes a suffix.
    groups_text: str = ""
    # Routes share the parameters by this name; empty if only one route has them.
    shared_name: str = ""
    # The version that counts, whatever version a client sends; `None` for that of the client.
    fixed: Microversion | None = None


@dataclass(frozen=True, slots=True)
class JsonBody:
    """The body that a route takes."""

    name: str
    text: str
    schemas: ByVersion[Schema]
    # A valid body for each version of the schema.
    examples: ByVersion[Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One route, as the document shows it."""

    id: str
    tag: str
    summary: str
    text: str
    successes: Mapping[int, Success]
    # What a status means on this route, if the general sentence for the status says too little.
    refusals: Mapping[int, str] = field(default_factory=dict)
    queries: tuple[QueryString, ...] = ()
    body: JsonBody | None = None
    # Headers of requests that only this route reads.
    headers: Mapping[str, ParameterText] = field(default_factory=dict)
