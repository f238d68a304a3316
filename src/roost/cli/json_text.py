"""JSON for people and programs, of values that may be nested deeper than the stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

INDENT = "  "
# Of a text that is nested much deeper, nearly all would be indentation.
INDENTED_LEVELS = 100

_NOTHING = object()


def json_text(value: Any) -> str:
    """The value as JSON in indented lines, like `json.dumps`, but of any depth.

    >>> print(json_text({"name": "host", "children": [], "traits": ["CUSTOM_A"]}))
    {
      "name": "host",
      "children": [],
      "traits": [
        "CUSTOM_A"
      ]
    }
    """
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    # What is still to be written, the next one last: a text, the value behind it, its level.
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        before, value, level = waiting.pop()
        yield before
        if isinstance(value, dict | list) and value:
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            yield opening
            waiting.append((_line_break(level) + closing, _NOTHING, level))
            waiting += reversed(list(_members(value, level + 1)))
        elif value is not _NOTHING:
            yield json.dumps(value)


def _members(value: dict[str, Any] | list[Any], level: int) -> Iterator[tuple[str, Any, int]]:
    before = _line_break(level)
    for member in value:
        if isinstance(value, dict):
            yield f"{before}{json.dumps(member)}: ", value[member], level
        else:
            yield before, member, level
        before = f",{_line_break(level)}"


def _line_break(level: int) -> str:
    return "\n" + INDENT * min(level, INDENTED_LEVELS)
