"""Resource classes."""

from __future__ import annotations

from roost.api.schemas.building import CUSTOM_CLASS_NAME, Versions, record, text

_NAME = text(CUSTOM_CLASS_NAME, maximum=255)

CREATE = Versions(("1.2", record({"name": _NAME})))
RENAME = Versions(("1.2", record({"name": _NAME})))
# From 1.7 on the name is in the path, and this schema checks it there.
NAME = Versions(("1.7", _NAME))
