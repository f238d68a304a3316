"""What programs ask that watch the service, and the version document."""

from __future__ import annotations

from roost.api.schemas.building import Document, list_of, record
from roost.api.schemas.responses.building import TEXT, AnswerSchema, members

_STRING: Document = {"type": "string"}

VERSIONS = AnswerSchema(
    "Versions",
    "The microversions of the service.",
    (
        "1.0",
        record(
            {
                "versions": list_of(
                    record(
                        {
                            "id": _STRING,
                            "max_version": _STRING,
                            "min_version": _STRING,
                            "status": _STRING,
                            "links": list_of(record({"rel": _STRING, "href": _STRING})),
                        }
                    )
                )
            }
        ),
    ),
    example=(
        "1.0",
        {
            "versions": [
                {
                    "id": "v1.0",
                    "max_version": "1.39",
                    "min_version": "1.0",
                    "status": "CURRENT",
                    "links": [{"rel": "self", "href": ""}],
                }
            ]
        },
    ),
)

HEALTH = AnswerSchema(
    "Health",
    "The process answers.",
    ("1.0", members({"status": {"type": "string", "enum": ["alive"]}, "version": _STRING})),
    example=("1.0", {"status": "alive", "version": "0.1.0"}),
)

READINESS = AnswerSchema(
    "Readiness",
    "Whether the process can answer requests, and each check up to the first that failed.",
    (
        "1.0",
        members(
            {
                "status": {"type": "string", "enum": ["ready", "not ready"]},
                "version": _STRING,
                "checks": {
                    "type": "object",
                    "additionalProperties": members(
                        {"ok": {"type": "boolean"}, "text": TEXT, "seconds": {"type": "number"}}
                    ),
                },
            }
        ),
    ),
    example=(
        "1.0",
        {
            "status": "ready",
            "version": "0.1.0",
            "checks": {"database": {"ok": True, "text": "It answers.", "seconds": 0.0004}},
        },
    ),
)

SERVER = AnswerSchema(
    "Server",
    "Which server this is. `identity` is null until an older database has got one.",
    ("1.0", members({"identity": {"type": ["string", "null"], "format": "uuid"}})),
    example=("1.0", {"identity": "7f1f0f0e-2f5d-4f0c-9b1e-6a0f3a1c2b4d"}),
)

OPENAPI = AnswerSchema(
    "OpenApi",
    "An OpenAPI document.",
    (
        "1.0",
        members(
            {
                "openapi": {"type": "string", "pattern": r"^3\.1\."},
                "info": {"type": "object"},
                "paths": {"type": "object"},
            }
        )
        | {"additionalProperties": True},
    ),
    example=(
        "1.0",
        {"openapi": "3.1.1", "info": {"title": "Roost", "version": "0.1.0"}, "paths": {}},
    ),
)
