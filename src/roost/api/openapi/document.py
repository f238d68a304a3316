"""The document: every route of the table as an operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import roost
from roost.api.http.json_schemas import Document
from roost.api.http.microversions import HISTORY, MAX_VERSION, MIN_VERSION, Microversion
from roost.api.openapi.components import HEADERS, MARK, Components, Span
from roost.api.openapi.parameters import header_parameters, path_parameters, query_parameters
from roost.api.routing import EVENTS, JSON, LINES, Route, Success

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
    "Trees": "Whole trees of providers.",
    "Changes": "What was written, in the order of commits, with its writer.",
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
    newest = routes[-1]
    span = Span(routes[0].since, newest.until)
    content: Document = {
        "operationId": newest.id,
        "tags": [newest.tag],
        "summary": newest.summary,
        "description": _text(routes),
        "parameters": _parameters(path, routes, version, components),
    }
    required = all(route.body is not None for route in routes)
    for route in routes:
        if route.body is not None:
            content["requestBody"] = components.request_body(
                route.body, _span(route), required=required
            )
    content["responses"] = _responses(routes, span, version, components)
    if newest.rule is None:
        content["security"] = []
    else:
        content["x-openstack-policy"] = newest.rule
    return content | span.mark()


def _span(part: Route | Success) -> Span:
    return Span(part.since, part.until)


def _text(routes: Sequence[Route]) -> str:
    if len(routes) == 1:
        return routes[0].text
    return "\n\n".join(
        f"{_span(route)}: {route.summary}. {route.text}" for route in reversed(routes)
    )


def _parameters(
    path: str,
    routes: Sequence[Route],
    version: Microversion | None,
    components: Components,
) -> list[Document]:
    found = path_parameters(path)
    if not path.startswith("/roost/"):
        found.append(components.version_parameter())
    for route in routes:
        found += header_parameters(route)
        for query in route.queries:
            found += query_parameters(query, _span(route), version, components)
    return found


def _responses(
    routes: Sequence[Route],
    span: Span,
    version: Microversion | None,
    components: Components,
) -> Document:
    found: dict[int, Document] = {}
    for route in routes:
        for status, success in route.successes.items():
            both = _span(success).common(_span(route))
            if both is None or (version is not None and not both.first <= version <= both.last):
                continue
            found[status] = _success(success, components)
            if version is None and both != span:
                found[status] |= both.mark()
    refused = {status for route in routes for status in _refusals(route)}
    for status in refused - found.keys():
        texts = [route.refusals[status] for route in routes if status in route.refusals]
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
    elif success.media_type != JSON:
        document["content"] = {success.media_type: {"schema": {"type": "string"}}}
    if success.lines is not None:
        text = f"Lines. Each is a JSON document with the schema `{success.lines.name}`."
        document["content"][LINES] = {"schema": {"type": "string", "description": text}}
    if success.events is not None:
        text = (
            "Server-sent events. The data of each is a JSON document with the schema "
            f"`{success.events.name}`."
        )
        document["content"][EVENTS] = {"schema": {"type": "string", "description": text}}
    return document


def _refusals(route: Route) -> set[int]:
    """The statuses of errors that the checks before the handler give, and those of the handler."""
    found = {400, 406, 500, 503, *route.refusals}
    if route.rule is not None:
        found |= {401, 403}
    if route.since > MIN_VERSION:
        found.add(route.unknown_status)
    if route.takes_json:
        found |= {413, 415}
    return found
