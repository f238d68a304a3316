"""The schemas of errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from roost.api.http.json_schemas import (
    INTEGER,
    STRING,
    AnswerSchema,
    Document,
    choice,
    described,
    list_of,
    members,
)
from roost.service.errors import ErrorCode

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
