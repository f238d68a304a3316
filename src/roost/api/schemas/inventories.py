"""Inventories of a provider."""

from __future__ import annotations

from roost.api.schemas.building import (
    CLASS_NAME,
    INTEGER,
    Document,
    Versions,
    integer,
    mapping,
    record,
    text,
)
from roost.model.inventory import INTEGER_MAX

_TOTAL = {"total": integer(1, INTEGER_MAX)}
_OTHERS: Document = {
    "reserved": integer(0, INTEGER_MAX),
    "min_unit": integer(1, INTEGER_MAX),
    "max_unit": integer(1, INTEGER_MAX),
    "step_size": integer(1, INTEGER_MAX),
    # MySQL stores a single-precision number, and these are its bounds.
    "allocation_ratio": {"type": "number", "maximum": 3.40282e38, "minimum": -3.40282e38},
}
# Every field of an inventory.
FIELDS = _TOTAL | _OTHERS
_GENERATION = {"resource_provider_generation": INTEGER}

ADD = Versions(
    ("1.0", record({"resource_class": text(CLASS_NAME)} | _TOTAL, _OTHERS | _GENERATION)),
)

REPLACE_ONE = Versions(("1.0", record(_GENERATION | _TOTAL, _OTHERS)))

# A reshape has one of these for each provider.
REPLACE_ALL_DOCUMENT = record(
    _GENERATION | {"inventories": mapping(CLASS_NAME, record(_TOTAL, _OTHERS | _GENERATION))}
)
REPLACE_ALL = Versions(("1.0", REPLACE_ALL_DOCUMENT))
