"""The parts that operations share by reference: schemas, parameters, headers, errors."""

from __future__ import annotations

from typing import Any

from roost.api.http.json_schemas import AnswerSchema, ByVersion, Document
from roost.api.http.microversions import HISTORY, MAX_VERSION, SERVICE_TYPE, Microversion
from roost.api.openapi.errors import EARLY_REFUSAL, REFUSAL, UNAUTHORIZED, error_example
from roost.api.openapi.examples import example_of
from roost.api.openapi.spans import ALL_VERSIONS, Span, spans_of
from roost.api.routing import JSON, JsonBody

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

# Each status of an error: its name among the components, what it means, and its schema.
ERRORS: dict[int, tuple[str, str, AnswerSchema]] = {
    400: ("BadRequest", "The request is malformed, or has a bad value.", EARLY_REFUSAL),
    401: ("Unauthorized", "The request has no valid token.", UNAUTHORIZED),
    403: ("Forbidden", "The policy does not allow this to the caller.", REFUSAL),
    404: ("NotFound", "The version has no such route.", REFUSAL),
    405: ("MethodNotAllowed", "The version has no such method.", REFUSAL),
    406: ("NotAcceptable", "The client accepts no JSON, or no such version exists.", EARLY_REFUSAL),
    409: ("Conflict", "The request conflicts with the present state.", REFUSAL),
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
        version = self._version or MAX_VERSION
        example = schema.example and schema.example.find(version)
        return {"schema": self.answer(schema), "example": example or example_of(schema, version)}

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
                f"since_{since}": {"summary": str(span), "value": value} | span.mark()
                for span, value in spans_of(body.examples, span)
                for since in [span.first]
            }
        else:
            content["example"] = body.examples.at(self._version)
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
