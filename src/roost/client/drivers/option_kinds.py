"""How the values of a driver's options are given, by the type of the parameter. Pure.

A value is text, as `--option` and the agent's file give it, or a native value of a program. A value
that a type takes in two ways, or only by a guess, is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
_FALSEHOODS = {"false": False, "no": False, "off": False, "0": False}
_LISTS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    Collection: tuple,
    Iterable: tuple,
}


@dataclass(frozen=True, slots=True)
class OptionKind:
    """What an option takes, in words; `read` turns a given value into it or raises ValueError."""

    words: str
    read: Callable[[object], Any]
    is_list: bool = False

    def refuse(self) -> ValueError:
        """The error for a value of another kind."""
        return ValueError(f"takes {self.words}")


def kind_of(annotation: Any) -> OptionKind:
    """The kind of a parameter with this annotation.

    >>> kind_of(int).read("2"), kind_of(list[str]).read("sda,sdb"), kind_of(float | None).words
    (2, ['sda', 'sdb'], 'a number')
    """
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if get_origin(annotation) is Literal:
        return _choice({value: [as_text(value)] for value in get_args(annotation)})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice({member: _spellings(member) for member in annotation})
    if get_origin(annotation) in (Union, UnionType):
        return _union(annotation)
    return _list(annotation) or _native(annotation)


# -- plain values


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("takes text: put the value in quotes")
    return value


def _read_whole_number(value: object) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.match(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _WHOLE.refuse()


def _read_number(value: object) -> float:
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        raise _NUMBER.refuse()
    return number


def _read_truth(value: object) -> bool:
    known = _TRUTHS | _FALSEHOODS
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    if isinstance(value, bool):
        return value
    raise _TRUTH.refuse()


def _read_path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value:
        raise _PATH.refuse()
    return Path(value)


def _read_untyped(value: object) -> object:
    """Text for a parameter without annotation, so that its driver has one kind to expect."""
    if isinstance(value, str | int | float):
        return as_text(value)
    raise ValueError("takes text, because the driver does not annotate the parameter with a type")


_WHOLE = OptionKind("a whole number", _read_whole_number)
_NUMBER = OptionKind("a number", _read_number)
_TRUTH = OptionKind("true or false", _read_truth)
_PATH = OptionKind("a path", _read_path)
ANYTHING = OptionKind("a value that the driver checks", lambda value: value)
UNTYPED = OptionKind("text", _read_untyped)
_PLAIN: Mapping[Any, OptionKind] = {
    str: OptionKind("text", _read_text),
    int: _WHOLE,
    float: _NUMBER,
    bool: _TRUTH,
    Path: _PATH,
    Any: ANYTHING,
    object: ANYTHING,
    Parameter.empty: UNTYPED,
}


# -- kinds made of others


def _choice(spellings: Mapping[Any, Sequence[str]]) -> OptionKind:
    """One of several values, by its spelling in text or as it is."""
    words = f"one of {', '.join(names[-1] for names in spellings.values())}"

    def read(value: object) -> Any:
        given = [member for member in spellings if type(member) is type(value) and member == value]
        spelt = [member for member, names in spellings.items() if value in names]
        if len(found := set(given) | set(spelt)) > 1:
            raise ValueError(f"takes {words}, and the value stands for several of them")
        if not found:
            raise ValueError(f"takes {words}")
        return found.pop()

    return OptionKind(words, read)


def _spellings(member: Enum) -> list[str]:
    """The name of a member, and its value if that is text."""
    return [member.name, *([member.value] if isinstance(member.value, str) else [])]


def _union(annotation: Any) -> OptionKind:
    members = [member for member in get_args(annotation) if member is not NoneType]
    if len(members) > 1:
        return _unusable(f"its type {annotation} is ambiguous; the driver has to name one type")
    inner = kind_of(members[0])

    def read(value: object) -> Any:
        return None if value is None else inner.read(value)

    return OptionKind(inner.words, read, inner.is_list)


def _list(annotation: Any) -> OptionKind | None:
    """A list of values of one kind; `None` if the annotation is of no such list."""
    make = _LISTS.get(get_origin(annotation) or annotation)
    members = [member for member in get_args(annotation) if member is not ...]
    if make is None or len(members) > 1:
        return None
    item = kind_of(members[0] if members else Parameter.empty)
    if item.is_list:
        return _native(annotation)
    words = f"a list of values with commas between them, each {item.words}"

    def read(value: object) -> Any:
        given = value.split(",") if isinstance(value, str) and value else value or ()
        if not isinstance(given, list | tuple | set | frozenset) or "" in given:
            raise ValueError(f"takes {words}")
        return make(item.read(each.strip() if isinstance(each, str) else each) for each in given)

    return OptionKind(words, read, is_list=True)


def _native(annotation: Any) -> OptionKind:
    """Values of a type that text cannot express."""
    native = get_origin(annotation) or annotation
    if not isinstance(native, type):
        return _unusable(f"its type {annotation} is none that an option can have")
    words = f"a {native.__name__}, which text cannot express"

    def read(value: object) -> Any:
        if not isinstance(value, native):
            raise ValueError(f"takes {words}")
        return value

    return OptionKind(words, read)


def _unusable(why: str) -> OptionKind:
    def read(value: object) -> Any:
        raise ValueError(f"cannot be given: {why}")

    return OptionKind(f"nothing: {why}", read)


def as_text(value: object) -> str:
    """A native value as `--option` would have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
