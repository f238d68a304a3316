"""Aggregates and traits of a provider; the query of `GET /traits`."""

from __future__ import annotations

from roost.api.schemas.building import INTEGER, UUID, Versions, list_of, record, text

_AGGREGATES = list_of(UUID, unique=True)

AGGREGATES = Versions(
    ("1.1", _AGGREGATES),
    ("1.19", record({"aggregates": _AGGREGATES, "resource_provider_generation": INTEGER})),
)

PROVIDER_TRAITS = Versions(
    (
        "1.6",
        record(
            {
                "traits": list_of(text(minimum=1, maximum=255)),
                "resource_provider_generation": INTEGER,
            }
        ),
    ),
)

LIST_TRAITS = Versions(("1.6", record({}, {"name": text(), "associated": text()})))
