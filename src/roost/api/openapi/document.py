"""The document: every route of the table as an operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import roost
from roost.api.microversions import HISTORY, MAX_VERSION, MIN_VERSION, Microversion
from roost.api.openapi.components import HEADERS, Components
from roost.api.openapi.operation import Operation, Success
from roost.api.openapi.operations import operation_of
from roost.api.openapi.parameters import header_parameters, path_parameters, query_parameters
from roost.api.openapi.spans import MARK, Span
from roost.api.schemas.building import Document

if TYPE_CHECKING:
    from roost.api.routes import Route

_ABOUT = """\
Roost keeps track of what hosts have and what consumers hold of it. It speaks the OpenStack
Placement API, microversions {first} to {last}. Routes below `/roost/` go beyond it.

{versions}

Before a request has come in completely, the server may refuse it with 400, 408, 431, 503 or 505.
"""
_WHOLE = """\
This document has all microversions. A route, a parameter or a schema that some versions lack has
the extension `x-openstack-microversions`. Where versions differ, a schema is a choice between
theirs. `?version=1.10` or `?version=latest` asks for the document of a single version, which
suits generators of clients better."""
_SINGLE = """\
This document has microversion {version} only. Send the header `OpenStack-API-Version: placement
{version}` with each request. Without `?version=`, the document has all versions."""
_TAGS = {
    "Operating": "Versions, health, metrics and this document.",
    "Resource classes": "The kinds of resources that providers have.",
    "Resource providers": "Hosts, their parts, and pools that they share.",
    "Inventories": "What a provider has of each resource class.",
    "Aggregates": "Sets of providers.",
    "Traits": "Properties that providers have and requests ask for.",
    "Allocations": "What consumers hold.",
    "Candidates": "Where a request fits.",
    "Questions": "What goes beyond the Placement API: why, what if, how many more.",
}


def make_document(
    routes: Iterable[Route], version: Microversion | None, prefix: str = ""
) -> Document:
    """The document of one version, or of all versions, for a service below this path."""
    components = Components(version)
    paths: dict[str, Document] = {}
    tags: set[str] = set()
    for (path, method), found in _by_operation(routes, version).items():
        content = _operation(path, found, version, components)
        tags.update(content["tags"])
        paths.setdefault(path, {})[method.lower()] = content
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Roost",
            "version": roost.__version__,
            "summary": "A placement service.",
            "description": _about(version),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix or "/"}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": _TAGS[name]} for name in _TAGS if name in tags],
        "paths": paths,
        "components": components.document(),
        MARK: {
            "min": str(version or MIN_VERSION),
            "max": str(version or MAX_VERSION),
            "history": {
                str(each): line for each, line in HISTORY if version is None or each <= version
            },
        },
    }


def _about(version: Microversion | None) -> str:
    versions = _WHOLE if version is None else _SINGLE.format(version=version)
    return _ABOUT.format(first=MIN_VERSION, last=MAX_VERSION, versions=versions)


def _by_operation(
    routes: Iterable[Route], version: Microversion | None
) -> dict[tuple[str, str], list[Route]]:
    """The routes of each path and method, as far as the document's version has them."""
    found: dict[tuple[str, str], list[Route]] = {}
    for route in routes:
        # The root without a slash is the same route again.
        if route.path and (version is None or route.since <= version <= route.until):
            found.setdefault((route.path, route.method), []).append(route)
    return found


def _operation(
    path: str, routes: Sequence[Route], version: Microversion | None, components: Components
) -> Document:
    """One method of a path. Several routes are several spans of versions; the last is newest."""
    described = [(route, operation_of(route)) for route in routes]
    newest, about = described[-1]
    span = Span(routes[0].since, routes[-1].until)
    content: Document = {
        "operationId": about.id,
        "tags": [about.tag],
        "summary": about.summary,
        "description": _text(described),
        "parameters": _parameters(path, described, version, components),
    }
    bodies = [(route, each.body) for route, each in described if each.body is not None]
    for route, body in bodies:
        content["requestBody"] = components.request_body(
            body, Span(route.since, route.until), required=len(bodies) == len(described)
        )
    content["responses"] = _responses(described, span, version, components)
    if newest.rule is None:
        content["security"] = []
    else:
        content["x-openstack-policy"] = newest.rule
    return content | span.mark()


def _text(described: Sequence[tuple[Route, Operation]]) -> str:
    if len(described) == 1:
        return described[0][1].text
    return "\n\n".join(
        f"{Span(route.since, route.until)}: {about.summary}. {about.text}"
        for route, about in reversed(described)
    )


def _parameters(
    path: str,
    described: Sequence[tuple[Route, Operation]],
    version: Microversion | None,
    components: Components,
) -> list[Document]:
    found = path_parameters(path)
    if not path.startswith("/roost/"):
        found.append(components.version_parameter())
    for route, about in described:
        found += header_parameters(about.headers)
        for query in about.queries:
            span = Span(route.since, route.until)
            found += query_parameters(query, span, version, components)
    return found


def _responses(
    described: Sequence[tuple[Route, Operation]],
    span: Span,
    version: Microversion | None,
    components: Components,
) -> Document:
    found: dict[int, Document] = {}
    for route, about in described:
        for status, success in about.successes.items():
            both = Span(success.since, success.until).common(Span(route.since, route.until))
            if both is None or (version is not None and not both.first <= version <= both.last):
                continue
            found[status] = _success(success, components)
            if version is None and both != span:
                found[status] |= both.mark()
    refused = {status for route, about in described for status in _refusals(route, about)}
    for status in refused - found.keys():
        texts = [about.refusals[status] for _, about in described if status in about.refusals]
        found[status] = components.error(status, " ".join(texts))
    return {str(status): found[status] for status in sorted(found)}


def _success(success: Success, components: Components) -> Document:
    headers: dict[str, str] = {}
    for name in success.headers:
        headers |= HEADERS[name]
    document: Document = {
        "description": success.text,
        "headers": components.header_references(headers),
    }
    if success.schema is not None:
        document["content"] = {success.media_type: components.answer_content(success.schema)}
    elif success.media_type != "application/json":
        document["content"] = {success.media_type: {"schema": {"type": "string"}}}
    return document


def _refusals(route: Route, about: Operation) -> set[int]:
    """The statuses of errors that the checks before the handler give, and those of the handler."""
    found = {400, 406, 500, 503, *about.refusals}
    if route.rule is not None:
        found |= {401, 403}
    if route.since > MIN_VERSION:
        found.add(route.unknown_status)
    if route.takes_json:
        found |= {413, 415}
    return found
