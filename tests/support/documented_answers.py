"""Answers of the service against the OpenAPI document of their version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema_rs

from roost.api.http.microversions import HEADER, MIN_VERSION, Microversion, negotiate
from roost.api.openapi.document import make_document
from roost.api.routes import ROUTES
from roost.api.routing import Router
from support.api_client import Answer, ApiClient

_ROUTER = Router(ROUTES)


def checked_client(client: ApiClient) -> ApiClient:
    """The same client. An answer that contradicts the document fails the test."""

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        answer = client.send(method, path, body, headers)
        check_answer(method, path, headers, answer)
        return answer

    return replace(client, send=send)


def check_answer(method: str, path: str, headers: Mapping[str, str], answer: Answer) -> None:
    """Fail if the document of the version has no such answer to such a request."""
    version = _version(headers)
    match = _ROUTER.find(unquote(urlsplit(path).path))
    operation = None if match is None else _operation(version, method, match.path)
    if operation is None:
        # An unknown route, or a route of another version. The document has neither.
        assert answer.status in (400, 401, 404, 405, 406, 413, 415, 503), f"{method} {path}"
        return
    what = f"{method} {path} at {version}: {answer.status}"
    assert str(answer.status) in operation["responses"], f"{what} is not documented"
    content = _response(version, operation, answer.status).get("content", {})
    media_type = _without_parameters(answer.headers.get("content-type", ""))
    documented = not answer.body or {media_type, "*/*"} & set(map(_without_parameters, content))
    assert documented, f"{what} as {media_type} is not documented"
    # A file of the pages may be JSON, and the document says nothing of what is in it.
    if media_type == "application/json" and "*/*" not in content:
        validator = _validator(version, method, match.path if match else "", answer.status)
        problem = next(iter(validator.iter_errors(answer.json)), None)
        reason = "" if problem is None else f"{problem.message[:500]} at {problem.instance_path}"
        assert not reason, f"{what} is not as documented: {reason}\n{answer.body[:1000]!r}"


def strict(schema: Any) -> Any:
    """The same schema, but objects have no members that it does not name."""
    if isinstance(schema, list):
        return [strict(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(member) for key, member in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def references(value: Any) -> Iterator[str]:
    """All references in a part of a document."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def whole_schema(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of a document, with the schemas to which it refers."""
    needed: dict[str, Any] = {}
    waiting = list(references(schema))
    while waiting:
        name = waiting.pop().removeprefix("#/components/schemas/")
        if name not in needed:
            needed[name] = document["components"]["schemas"][name]
            waiting += references(needed[name])
    return {**schema, "components": {"schemas": needed}}


@cache
def document_at(version: Microversion | None) -> dict[str, Any]:
    """The document of this version, or of all versions."""
    return make_document(ROUTES, version)


def parsed(version: str) -> Microversion:
    """The version of this text."""
    return negotiate(f"placement {version}")


def operations(version: str | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and content of each operation."""
    document = document_at(parsed(version) if version else None)
    for path, methods in document["paths"].items():
        for method, content in methods.items():
            yield path, method.upper(), content


def _without_parameters(media_type: str) -> str:
    return media_type.split(";", maxsplit=1)[0]


def _version(headers: Mapping[str, str]) -> Microversion:
    """The version of a request. Without a valid one, an answer has the oldest form."""
    try:
        return negotiate(headers.get(HEADER))
    except Exception:
        return MIN_VERSION


def _operation(version: Microversion, method: str, path: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = document_at(version)["paths"].get(path, {}).get(method.lower())
    return found


def _response(version: Microversion, operation: dict[str, Any], status: int) -> dict[str, Any]:
    found: dict[str, Any] = operation["responses"][str(status)]
    if "$ref" in found:
        name = found["$ref"].rsplit("/", 1)[1]
        found = document_at(version)["components"]["responses"][name]
    return found


@cache
def _validator(version: Microversion, method: str, path: str, status: int) -> Any:
    operation = _operation(version, method, path)
    assert operation is not None
    schema = _response(version, operation, status)["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(strict(whole_schema(document_at(version), schema)))
