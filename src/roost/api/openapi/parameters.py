"""Parameters of paths and query strings, from the route table and the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from roost.api.http.json_schemas import (
    CLASS_NAME,
    EXAMPLE_CONSUMER,
    EXAMPLE_PROVIDER,
    UUID,
    Document,
    text,
)
from roost.api.http.microversions import MAX_VERSION, Microversion
from roost.api.openapi.components import Components, Span, spans_of
from roost.api.routing import QueryString, Route

GROUPS_NAME = "request_groups"
_VARIABLE = re.compile(r"\{(\w+)\}")
# A key that takes a suffix, as schemas write it: the key, and the pattern of the suffix.
_SUFFIXED = re.compile(r"\^(\w+)\((.+)\)\?\$")

_NAME = text(CLASS_NAME, minimum=1, maximum=255)
# What each variable part of a path is, with a valid value.
_IN_PATHS: dict[str, tuple[str, Document, str]] = {
    "uuid": ("The uuid of the provider.", UUID, EXAMPLE_PROVIDER),
    "provider": (
        "The uuid or the name of the provider.",
        text(minimum=1, maximum=200),
        EXAMPLE_PROVIDER,
    ),
    "consumer": ("The uuid of the consumer.", UUID, EXAMPLE_CONSUMER),
    "name": ("The name of the resource class or trait.", _NAME, "CUSTOM_GOLD"),
    "resource_class": ("The name of the resource class.", _NAME, "VCPU"),
    "page": ("The name of the page.", text(minimum=1), "tree"),
    "file": ("The name of the file.", text(minimum=1), "main.js"),
}


def path_parameters(path: str) -> list[Document]:
    """The variable parts of a path."""
    return [
        _document(name, "path", *_IN_PATHS[name], required=True) for name in _VARIABLE.findall(path)
    ]


def header_parameters(route: Route) -> list[Document]:
    """The headers that only this route reads."""
    return [
        _document(each.name, "header", each.text, each.schema, each.example, required=False)
        for each in route.headers
    ]


def query_parameters(
    query: QueryString, span: Span, version: Microversion | None, components: Components
) -> list[Document]:
    """The parameters of a query string, in one version or in all versions of its route."""
    if query.fixed is not None:
        found = list(_in_version(query, query.fixed))
    elif version is not None:
        found = list(_in_version(query, version))
    else:
        found = list(_in_all_versions(query, span))
    if not query.shared_name:
        return found
    return [
        components.parameter(f"{query.shared_name}.{document['name']}", document)
        for document in found
    ]


def _in_version(query: QueryString, version: Microversion) -> Iterator[Document]:
    schema = query.schemas.at(version).document
    for name, document in _plain(schema).items():
        is_required = name in schema["required"]
        yield _parameter(query, name, document, version, required=is_required)
    suffixed = _suffixed(schema)
    if suffixed:
        yield _groups(query, suffixed)


def _in_all_versions(query: QueryString, span: Span) -> Iterator[Document]:
    """Each parameter as its newest version has it, with the versions that know it."""
    found: dict[str, tuple[Span, Any, bool]] = {}
    groups: tuple[Span, Document] | None = None
    for each, schema in spans_of(query.schemas, span):
        for name, document in _plain(schema.document).items():
            first, required = each.first, name in schema.document["required"]
            if name in found:
                (first, _), _, before = found[name]
                required = required and before
            found[name] = Span(first, each.last), document, required
        suffixed = _suffixed(schema.document)
        if suffixed:
            groups = Span(groups[0].first if groups else each.first, each.last), suffixed
    for name, (known, document, required) in found.items():
        # A parameter that only some versions know is required by none of the rest.
        always = required and known == span
        parameter = _parameter(query, name, document, MAX_VERSION, required=always)
        yield parameter | known.mark()
    if groups:
        yield _groups(query, groups[1]) | groups[0].mark()


def _plain(schema: Document) -> Document:
    """The schema of each parameter, without suffixes."""
    patterns = schema.get("patternProperties", {})
    keys = {_suffix(pattern)[0]: document for pattern, document in patterns.items()}
    return {**keys, **schema["properties"]}


def _suffixed(schema: Document) -> Document:
    """The schema of each parameter with a suffix, by the pattern of its name."""
    found = {}
    for pattern, document in schema.get("patternProperties", {}).items():
        key, suffix = _suffix(pattern)
        found[f"^{key}{suffix}$"] = document
    return found


def _suffix(pattern: str) -> tuple[str, str]:
    match = _SUFFIXED.fullmatch(pattern)
    assert match is not None, pattern
    return match[1], match[2]


def _parameter(
    query: QueryString, name: str, schema: Document, version: Microversion, *, required: bool
) -> Document:
    about = {parameter.name: parameter for parameter in query.parameters}[name]
    document = _document(name, "query", about.text, schema, about.example, required=required)
    if about.repeated_since is not None and version >= about.repeated_since:
        document |= {
            "schema": {"type": "array", "items": schema},
            "style": "form",
            "explode": True,
            "example": [about.example],
        }
    return document


def _groups(query: QueryString, patterns: Document) -> Document:
    """One parameter for all names with suffixes: each member of the object is a parameter."""
    return {
        "name": GROUPS_NAME,
        "in": "query",
        "required": False,
        "description": query.groups_text,
        "style": "form",
        "explode": True,
        "schema": {
            "type": "object",
            "patternProperties": patterns,
            "additionalProperties": False,
        },
        "example": {"resources1": "SRIOV_NET_VF:1", "required1": "CUSTOM_PHYSNET_1"},
    }


def _document(
    name: str, place: str, meaning: str, schema: Document, example: Any, *, required: bool
) -> Document:
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": meaning,
        "schema": schema,
        "example": example,
    }
