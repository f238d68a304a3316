"""Shapes: what the JSON of an answer must look like, so that its reader need not ask. Pure.

A shape is a type; a tuple of shapes, of which one must fit; a list with the shape of all members,
and perhaps their number; or a dictionary. The key `str` of a dictionary stands for all keys. A key
that ends with a question mark may be missing. Members that the shape does not name are allowed.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, TypeAlias

JsonShape: TypeAlias = Any

NULL = type(None)
_INTEGER_MAX = 2**64
NUMBER = (int, float)
AMOUNTS: JsonShape = {str: int}
INVENTORY: JsonShape = {
    **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), int),
    "allocation_ratio": NUMBER,
}
HOLDINGS: JsonShape = {str: {"resources": AMOUNTS, "consumer_generation?": (int, NULL)}}
CONSUMER: JsonShape = {
    "allocations": HOLDINGS,
    "project_id?": str,
    "user_id?": str,
    "consumer_generation?": (int, NULL),
    "consumer_type?": (str, NULL),
}


def fits(value: Any, shape: JsonShape) -> bool:
    """Whether a value of JSON has the shape.

    >>> fits({"usages": {"VCPU": 4}}, {"usages": AMOUNTS, "next?": str})
    True
    >>> fits({"usages": {"VCPU": None}}, {"usages": AMOUNTS}), fits(True, int)
    (False, False)
    """
    # A large answer has a million values: the most frequent shapes come first.
    if shape is str:
        return isinstance(value, str)
    if shape is int:
        # In Python, truth values are numbers, and a number may have thousands of digits.
        return type(value) is int and abs(value) < _INTEGER_MAX
    if isinstance(shape, dict):
        return isinstance(value, dict) and _members_fit(value, shape)
    if isinstance(shape, list):
        member_shape, *number = shape
        return (
            isinstance(value, list)
            and number in ([], [len(value)])
            and all(fits(member, member_shape) for member in value)
        )
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    return isinstance(value, shape)


def _members_fit(value: dict[str, Any], shape: dict[Any, JsonShape]) -> bool:
    for name, inner in shape.items():
        if name in value:
            is_right = fits(value[name], inner)
        elif name is str:
            is_right = all(fits(member, inner) for member in value.values())
        else:
            known = name.removesuffix("?")
            is_right = fits(value[known], inner) if known in value else known != name
        if not is_right:
            return False
    return True


def parsed(content: bytes) -> Any:
    """The value of a JSON text; `ValueError` if it is none, or has numbers that are none."""
    try:
        return json.loads(content, parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
