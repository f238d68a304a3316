"""The parts that operations share by reference: schemas, parameters, headers, errors."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from roost.api.http.json_schemas import (
    INTEGER,
    STRING,
    AnswerSchema,
    ByVersion,
    Document,
    choice,
    described,
    list_of,
    members,
)
from roost.api.http.microversions import (
    HISTORY,
    MAX_VERSION,
    MIN_VERSION,
    SERVICE_TYPE,
    Microversion,
)
from roost.api.openapi.examples import answer_example, body_example
from roost.api.routing import JSON, JsonBody
from roost.service.errors import ErrorCode

T = TypeVar("T")

MARK = "x-openstack-microversions"
VERSION_HEADER = "OpenStack-API-Version"

# The headers of answers, by the name that an operation gives them.
HEADERS: dict[str, dict[str, str]] = {
    "location": {"Location": "The URL of what the request made or confirmed."},
    "cached": {
        "Last-Modified": "From 1.15 on: when the content last changed, if that is known.",
        "Cache-Control": "From 1.15 on: `no-cache`.",
    },
    "etag": {"ETag": "Names these bytes. Send it as `If-None-Match` with the next request."},
    "truncated": {"X-Roost-Truncated": "How many candidates the answer has, if there are more."},
    "reason": {"X-Roost-Reason": "Why there is no candidate, if the client or the operator asks."},
}
_ALWAYS = {
    "X-OpenStack-Request-Id": "The id by which the log names the request.",
    VERSION_HEADER: "The version of the answer; absent if none was agreed on.",
}
_OF_ERRORS = {
    401: {"WWW-Authenticate": "Where to get a token, if the service knows it."},
    405: {"Allow": "The methods of the path."},
    503: {"Retry-After": "After how many seconds the same request may succeed."},
}

# The versions of a part of the document: from which one to which one it holds.


class Span(NamedTuple):
    """Versions without a gap."""

    first: Microversion = MIN_VERSION
    last: Microversion = MAX_VERSION

    def __str__(self) -> str:
        if self.last == MAX_VERSION:
            return f"From {self.first} on"
        return f"From {self.first} to {self.last}"

    def common(self, other: Span) -> Span | None:
        """The versions of both; `None` if there are none."""
        both = Span(max(self.first, other.first), min(self.last, other.last))
        return both if both.first <= both.last else None

    def mark(self) -> Document:
        """The extension that tells programs the versions. The newest one is no end."""
        bounds = {"min": str(self.first)}
        if self.last != MAX_VERSION:
            bounds["max"] = str(self.last)
        return {MARK: bounds}


ALL_VERSIONS = Span()


def spans_of(values: ByVersion[T], within: Span) -> Iterator[tuple[Span, T]]:
    """Each value with the versions for which it holds, as far as they are `within` others."""
    starts = [since for since, _ in values.entries]
    ends = [Microversion(major, minor - 1) for major, minor in starts[1:]]
    for (since, value), last in zip(values.entries, [*ends, MAX_VERSION], strict=True):
        common = Span(since, last).common(within)
        if common is not None:
            yield common, value


# The schemas of errors.

_REQUEST_ID = "req-5a6b1c1e-6a5f-4b0e-9d0c-0c5d8b6b0a55"
_REQUIRED: Document = {
    "status": described(INTEGER, "The status of the answer."),
    "title": described(STRING, "The name of the status."),
    "detail": described(STRING, "What failed and why, for people."),
    "request_id": described(STRING, "The id by which the log names the request."),
}
_CODE: Document = {
    "code": described(
        choice(*(code.value for code in ErrorCode)),
        "What failed, for programs: from 1.23 on, and in routes below `/roost/` always.",
    )
}
_RANGE: Document = {
    "max_version": described(STRING, "The newest microversion."),
    "min_version": described(STRING, "The oldest microversion."),
}


def _errors(required: Document, optional: Document) -> Document:
    return members({"errors": list_of(members(required, optional), minimum=1)})


def error_example(status: int, text: str) -> dict[str, Any]:
    """The body of an error with this status."""
    error: dict[str, Any] = {
        "status": status,
        "title": HTTPStatus(status).phrase,
        "detail": text,
        "code": ErrorCode.UNDEFINED.value,
        "request_id": _REQUEST_ID,
    }
    return {"errors": [error]}


REFUSAL = AnswerSchema(
    "Errors",
    "Why the service refused the request.",
    ("1.0", _errors(_REQUIRED, _CODE)),
    ("1.23", _errors(_REQUIRED | _CODE, {})),
)

EARLY_REFUSAL = AnswerSchema.of(
    "EarlyErrors",
    "The same for statuses that may come before client and server agree on a version. Such an "
    "answer has no code.",
    _errors(_REQUIRED, _CODE | _RANGE),
)

UNAUTHORIZED = AnswerSchema.of(
    "Unauthorized",
    "The request has no valid token. The form depends on `[api]auth_strategy`.",
    {
        "anyOf": [
            members({"message": STRING, "code": STRING, "title": STRING}),
            members({"error": members({"code": INTEGER, "title": STRING, "message": STRING})}),
        ]
    },
    example={
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    },
)

# Each status of an error: its name among the components, what it means, and its schema.
ERRORS: dict[int, tuple[str, str, AnswerSchema]] = {
    400: ("BadRequest", "The request is malformed, or has a bad value.", EARLY_REFUSAL),
    401: ("Unauthorized", "The request has no valid token.", UNAUTHORIZED),
    403: ("Forbidden", "The policy does not allow this to the caller.", REFUSAL),
    404: ("NotFound", "The version has no such route.", REFUSAL),
    405: ("MethodNotAllowed", "The version has no such method.", REFUSAL),
    406: ("NotAcceptable", "The client accepts no JSON, or no such version exists.", EARLY_REFUSAL),
    409: ("Conflict", "The request conflicts with the present state.", REFUSAL),
    410: ("Gone", "The server no longer has what the request names.", REFUSAL),
    413: ("TooLarge", "The body is larger than `[roost]max_body_bytes`.", REFUSAL),
    415: ("UnsupportedMediaType", "The body is no `application/json`.", REFUSAL),
    500: ("Defect", "A defect of the service. The log has the details.", REFUSAL),
    503: (
        "Unavailable",
        "The database, the identity service or a free turn is missing at the moment.",
        EARLY_REFUSAL,
    ),
}


class Components:
    """The shared parts of one document. A part is added when an operation first needs it."""

    def __init__(self, version: Microversion | None) -> None:
        # The only version of the document; `None` for a document of all versions.
        self._version = version
        self.schemas: Document = {}
        self.parameters: Document = {}
        self.responses: Document = {}
        self.headers: Document = {}

    @property
    def is_whole(self) -> bool:
        """Whether the document has all versions."""
        return self._version is None

    def document(self) -> Document:
        """All parts that operations needed, by kind and name."""
        return {
            "schemas": dict(sorted(self.schemas.items())),
            "parameters": self.parameters,
            "responses": self.responses,
            "headers": self.headers,
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Auth-Token",
                    "description": "A token of the identity service, or one of the operator's.",
                }
            },
        }

    def answer(self, schema: AnswerSchema) -> Document:
        """A reference to the schema of an answer."""
        if schema.name not in self.schemas:
            # The name is taken first, because parts of a schema may refer to it.
            self.schemas[schema.name] = {}
            content = self._by_version(schema.name, schema.versions, ALL_VERSIONS)
            self.schemas[schema.name] = {"description": schema.text} | content
        return _reference("schemas", schema.name)

    def answer_content(self, schema: AnswerSchema) -> Document:
        """The schema of an answer with an example: its own, or one that fits the schema."""
        example = answer_example(schema, self._version or MAX_VERSION)
        return {"schema": self.answer(schema), "example": example}

    def request_body(self, body: JsonBody, span: Span, *, required: bool) -> Document:
        """The body that a route takes in these versions, with an example."""
        if body.name not in self.schemas:
            documents = ByVersion(
                *((str(since), schema.document) for since, schema in body.schemas.entries)
            )
            self.schemas[body.name] = self._by_version(body.name, documents, span)
        content: Document = {"schema": _reference("schemas", body.name)}
        if self._version is None:
            content["examples"] = {
                f"since_{each.first}": {
                    "summary": str(each),
                    "value": body_example(body, each.first),
                }
                | each.mark()
                for each, _ in spans_of(body.schemas, span)
            }
        else:
            content["example"] = body_example(body, self._version)
        return {"description": body.text, "required": required, "content": {JSON: content}}

    def parameter(self, name: str, document: Document) -> Document:
        """A reference to a parameter."""
        self.parameters[name] = document
        return _reference("parameters", name)

    def version_parameter(self) -> Document:
        """A reference to the header that chooses the version."""
        versions = [version for version, _ in HISTORY] if self.is_whole else [self._version]
        values = [f"{SERVICE_TYPE} {version}" for version in versions]
        text = "The microversion of the request. Without the header it is 1.0."
        if self.is_whole:
            values.append(f"{SERVICE_TYPE} latest")
        return self.parameter(
            "microversion",
            {
                "name": VERSION_HEADER,
                "in": "header",
                "description": text,
                "required": not self.is_whole and self._version != HISTORY[0][0],
                "schema": {"type": "string", "enum": values},
                "example": values[-1],
            },
        )

    def error(self, status: int, text: str) -> Document:
        """A reference to an error; the text, if there is one, says what it means on one route."""
        name, general, schema = ERRORS[status]
        if name not in self.responses:
            plain = {"schema": {"type": "string"}}
            content = self.answer_content(schema)
            # A service that refuses a token has a form of its own.
            if schema is not UNAUTHORIZED:
                content["example"] = error_example(status, general)
            self.responses[name] = {
                "description": general,
                "headers": self.header_references(_OF_ERRORS.get(status, {})),
                # Clients that accept no JSON get errors as a page or as text.
                "content": {
                    JSON: content,
                    "text/html": plain,
                    "text/plain": plain,
                },
            }
        return _reference("responses", name) | ({"description": text} if text else {})

    def header_references(self, own: dict[str, str]) -> Document:
        """References to the headers that each answer has, and to these."""
        wanted = own | _ALWAYS
        for name, text in wanted.items():
            self.headers[name] = {"description": text, "schema": {"type": "string"}}
        return {name: _reference("headers", name) for name in wanted}

    def _by_version(self, name: str, documents: ByVersion[Document], span: Span) -> Document:
        """The schema of the document's version, or a choice between those of all versions."""
        if self._version is not None:
            return self._resolved(documents.at(self._version))
        found_spans = list(spans_of(documents, span))
        if len(found_spans) == 1:
            return self._resolved(found_spans[0][1])
        choices = []
        for each, document in found_spans:
            # Each version has a name of its own, so that generated code has one, too.
            part = f"{name}-{each.first}"
            self.schemas[part] = self._resolved(document) | {"title": part} | each.mark()
            choices.append(_reference("schemas", part))
        return {"anyOf": choices}

    def _resolved(self, document: Document) -> Document:
        """The same schema with references in the place of named schemas."""
        return {key: self._resolved_value(value) for key, value in document.items()}

    def _resolved_value(self, value: Any) -> Any:
        match value:
            case AnswerSchema():
                return self.answer(value)
            case dict():
                return self._resolved(value)
            case list():
                return [self._resolved_value(member) for member in value]
            case _:
                return value


def _reference(kind: str, name: str) -> Document:
    return {"$ref": f"#/components/{kind}/{name}"}
