"""The query of `GET /usages`."""

from __future__ import annotations

from roost.api.schemas.building import EXTERNAL_ID, Versions, record, text

_TYPE = text("^[A-Z0-9_]+$|^all$|^unknown$", minimum=1, maximum=255)

LIST = Versions(
    ("1.9", record({"project_id": EXTERNAL_ID}, {"user_id": EXTERNAL_ID})),
    (
        "1.38",
        record({"project_id": EXTERNAL_ID}, {"user_id": EXTERNAL_ID, "consumer_type": _TYPE}),
    ),
)
