"""Resource providers."""

from __future__ import annotations

from roost.api.schemas.building import UUID, UUID_OR_NULL, Versions, record, text

_NAME = text(maximum=200)

CREATE = Versions(
    ("1.0", record({"name": _NAME}, {"uuid": UUID})),
    ("1.14", record({"name": _NAME}, {"uuid": UUID, "parent_provider_uuid": UUID_OR_NULL})),
)

UPDATE = Versions(
    ("1.0", record({"name": _NAME})),
    ("1.14", record({"name": _NAME}, {"parent_provider_uuid": UUID_OR_NULL})),
)

_TEXT = text()
# Queries take a uuid in its canonical form with dashes only.
_UUID = text(pattern="^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$") | {"format": "uuid"}

LIST = Versions(
    ("1.0", record({}, {"name": _TEXT, "uuid": _UUID})),
    ("1.3", record({}, {"name": _TEXT, "uuid": _UUID, "member_of": _TEXT})),
    (
        "1.4",
        record({}, {"name": _TEXT, "uuid": _UUID, "member_of": _TEXT, "resources": _TEXT}),
    ),
    (
        "1.14",
        record(
            {},
            {
                "name": _TEXT,
                "uuid": _UUID,
                "member_of": _TEXT,
                "resources": _TEXT,
                "in_tree": _UUID,
            },
        ),
    ),
    (
        "1.18",
        record(
            {},
            {
                "name": _TEXT,
                "uuid": _UUID,
                "member_of": _TEXT,
                "resources": _TEXT,
                "in_tree": _UUID,
                "required": _TEXT,
            },
        ),
    ),
)
