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
from roost.model.inventory import INTEGER_MAX, RATIO_MAX

_TOTAL = {"total": integer(1, INTEGER_MAX)}
_OTHERS: Document = {
    "reserved": integer(0, INTEGER_MAX),
    "min_unit": integer(1, INTEGER_MAX),
    "max_unit": integer(1, INTEGER_MAX),
    "step_size": integer(1, INTEGER_MAX),
    "allocation_ratio": {"type": "number", "maximum": RATIO_MAX, "minimum": -RATIO_MAX},
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
