"""The query of `GET /allocation_candidates`."""

from __future__ import annotations

from roost.api.schemas.building import Document, Versions, record, text
from roost.api.validation import Schema

_TEXT = text()
_LIMIT = text(pattern="^[1-9][0-9]*$")
_POLICY: Document = {"type": "string", "enum": ["none", "isolate"]}

_NUMBER = "[1-9][0-9]*"
_NAME = "[a-zA-Z0-9_-]{1,64}"


def _groups(suffix: str, *keys: str, **plain: Document) -> Document:
    """Request groups: the keys may have a suffix of this form, the `plain` ones may not."""
    patterns = {f"^{key}({suffix})?$": _TEXT for key in keys}
    return record({}, {"limit": _LIMIT, "group_policy": _POLICY} | plain) | {
        "patternProperties": patterns
    }


_KEYS = ("resources", "required", "member_of")

_NESTED_KEYS = (*_KEYS, "in_tree")

LIST = Versions(
    ("1.10", record({"resources": _TEXT})),
    ("1.16", record({"resources": _TEXT}, {"limit": _LIMIT})),
    ("1.17", record({"resources": _TEXT}, {"limit": _LIMIT, "required": _TEXT})),
    (
        "1.21",
        record({"resources": _TEXT}, {"limit": _LIMIT, "required": _TEXT, "member_of": _TEXT}),
    ),
    ("1.25", _groups(_NUMBER, *_KEYS)),
    ("1.31", _groups(_NUMBER, *_NESTED_KEYS)),
    ("1.33", _groups(_NAME, *_NESTED_KEYS)),
    ("1.35", _groups(_NAME, *_NESTED_KEYS, root_required=_TEXT)),
    ("1.36", _groups(_NAME, *_NESTED_KEYS, root_required=_TEXT, same_subtree=_TEXT)),
)

# What `GET /roost/candidates` accepts: no version of the API has these keys.
EXTENDED = Schema(
    _groups(
        _NAME,
        *_NESTED_KEYS,
        "in_subtree",
        "or_resources",
        root_required=_TEXT,
        same_subtree=_TEXT,
        isolate=_TEXT,
    )
)
