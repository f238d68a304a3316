"""Allocations of one consumer, of several, and reshapes."""

from __future__ import annotations

from roost.api.schemas.building import (
    CLASS_NAME,
    EXTERNAL_ID,
    INTEGER,
    UUID,
    UUID_KEY,
    Document,
    Versions,
    integer,
    list_of,
    mapping,
    record,
    text,
)
from roost.api.schemas.inventories import REPLACE_ALL_DOCUMENT

_RESOURCES = mapping(CLASS_NAME, integer(1), minimum=1)
_LIST = list_of(
    record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES}), minimum=1
)
_BY_PROVIDER = mapping(UUID_KEY, record({"resources": _RESOURCES}, {"generation": INTEGER}))
_SOME_BY_PROVIDER = _BY_PROVIDER | {"minProperties": 1}

_GENERATION: Document = {"type": ["integer", "null"]}
_TYPE = text(CLASS_NAME, minimum=1, maximum=255)
# The mappings of a candidate: clients may send them back, and they have no effect.
_MAPPINGS: Document = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]": list_of(UUID, minimum=1)},
}

_OWNER = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
_CONSUMER_1_12 = record({"allocations": _BY_PROVIDER} | _OWNER)
_CONSUMER_1_28 = record(
    {"allocations": _BY_PROVIDER} | _OWNER | {"consumer_generation": _GENERATION}
)
_CONSUMER_1_34 = record(
    {"allocations": _BY_PROVIDER} | _OWNER | {"consumer_generation": _GENERATION},
    {"mappings": _MAPPINGS},
)
_CONSUMER_1_38 = record(
    {"allocations": _BY_PROVIDER}
    | _OWNER
    | {"consumer_generation": _GENERATION, "consumer_type": _TYPE},
    {"mappings": _MAPPINGS},
)

PUT = Versions(
    ("1.0", record({"allocations": _LIST})),
    ("1.8", record({"allocations": _LIST} | _OWNER)),
    ("1.12", record({"allocations": _SOME_BY_PROVIDER} | _OWNER)),
    ("1.28", _CONSUMER_1_28),
    ("1.34", _CONSUMER_1_34),
    ("1.38", _CONSUMER_1_38),
)

POST = Versions(
    ("1.13", mapping(UUID_KEY, _CONSUMER_1_12, minimum=1)),
    ("1.28", mapping(UUID_KEY, _CONSUMER_1_28, minimum=1)),
    ("1.34", mapping(UUID_KEY, _CONSUMER_1_34, minimum=1)),
    ("1.38", mapping(UUID_KEY, _CONSUMER_1_38, minimum=1)),
)

_INVENTORIES = mapping(UUID_KEY, REPLACE_ALL_DOCUMENT, minimum=1)

RESHAPE = Versions(
    (
        "1.30",
        record({"inventories": _INVENTORIES, "allocations": mapping(UUID_KEY, _CONSUMER_1_28)}),
    ),
    (
        "1.34",
        record({"inventories": _INVENTORIES, "allocations": mapping(UUID_KEY, _CONSUMER_1_34)}),
    ),
    (
        "1.38",
        record({"inventories": _INVENTORIES, "allocations": mapping(UUID_KEY, _CONSUMER_1_38)}),
    ),
)
