"""The options of a driver: the parameters of its constructor, with their types and help.

A value is text, as `--option` and the agent's file give it, or a native value of a program. A value
that a type takes in two ways, or only by a guess, is refused.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from roost.client.errors import NotConfigured
from roost.model.secrets import shown_value, without_secrets
from roost.model.text import nearest_names

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_LISTS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    Collection: tuple,
    Iterable: tuple,
}

NO_DEFAULT = Parameter.empty
"""Stands for the default of an option that is required, or whose driver alone knows it."""

HELP_OF_FURTHER = "option_help"
"""The class attribute in which a driver with a `**parameter` may describe what that takes."""


@dataclass(frozen=True, slots=True)
class OptionKind:
    """What an option takes, in words; `read` turns a given value into it or raises ValueError.

    The words explain an error without text. A driver writes a kind of its own beside the type:
    `Annotated[int, OptionKind("an even number", read_even)]`.
    """

    words: str
    read: Callable[[object], Any]
    is_list: bool = False


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


def read_whole_number(value: object) -> int:
    """The number of a text; a number of a program as it is."""
    if isinstance(value, str) and _WHOLE_NUMBER.match(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError


def read_number(value: object) -> float:
    """The same, with fractions."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := float(value)):
                return number
    raise ValueError


def _read_truth(value: object) -> bool:
    found = value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
    if found is None or not isinstance(value, bool | str):
        raise ValueError
    return found


def _read_path(value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError
    return Path(value)


def _read_untyped(value: object) -> object:
    """Text for a parameter without annotation, so that its driver has one kind to expect."""
    if isinstance(value, str | int | float):
        return as_text(value)
    raise ValueError("takes text, because the driver does not annotate the parameter with a type")


_ANYTHING = OptionKind("a value that the driver checks", lambda value: value)
_PLAIN: Mapping[Any, OptionKind] = {
    str: OptionKind("text", _read_text),
    int: OptionKind("a whole number", read_whole_number),
    float: OptionKind("a number", read_number),
    bool: OptionKind("true or false", _read_truth),
    Path: OptionKind("a path", _read_path),
    Any: _ANYTHING,
    object: _ANYTHING,
    Parameter.empty: OptionKind("text", _read_untyped),
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
            raise ValueError
        return found.pop()

    return OptionKind(words, read)


def _spellings(member: Enum) -> list[str]:
    """The name of a member, and its value if that is text."""
    return [member.name, *([member.value] if isinstance(member.value, str) else [])]


def _union(annotation: Any) -> OptionKind:
    members = [member for member in get_args(annotation) if member is not NoneType]
    if len(members) > 1:
        return _unusable(f"its type {annotation} is ambiguous; the driver has to name one type")
    return _or_none(kind_of(members[0]))


def _or_none(kind: OptionKind) -> OptionKind:
    def read(value: object) -> Any:
        return None if value is None else kind.read(value)

    return OptionKind(kind.words, read, kind.is_list)


def _list(annotation: Any) -> OptionKind | None:
    """A list of values of one kind; `None` if the annotation is of no such list."""
    make = _LISTS.get(get_origin(annotation) or annotation)
    members = [member for member in get_args(annotation) if member is not ...]
    if make is None or len(members) > 1:
        return None
    item = kind_of(members[0] if members else Parameter.empty)
    if item.is_list:
        return _native(annotation)

    def read(value: object) -> Any:
        given = value.split(",") if isinstance(value, str) and value else value or ()
        if not isinstance(given, list | tuple | set | frozenset) or "" in given:
            raise ValueError
        return make(item.read(each.strip() if isinstance(each, str) else each) for each in given)

    words = f"a list of values with commas between them, each {item.words}"
    return OptionKind(words, read, is_list=True)


def _native(annotation: Any) -> OptionKind:
    """Values of a type that text cannot express."""
    native = get_origin(annotation) or annotation
    if not isinstance(native, type):
        return _unusable(f"its type {annotation} is none that an option can have")

    def read(value: object) -> Any:
        if not isinstance(value, native):
            raise ValueError
        return value

    return OptionKind(f"a {native.__name__}, which text cannot express", read)


def _unusable(why: str) -> OptionKind:
    def read(value: object) -> Any:
        raise ValueError

    return OptionKind(f"nothing: {why}", read)


def as_text(value: object) -> str:
    """A native value as `--option` would have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- the options of a driver


@dataclass(frozen=True, slots=True)
class DriverOption:
    """One option. `help` is the text beside the type in `Annotated[type, "text"]`."""

    name: str
    kind: OptionKind
    required: bool = False
    default: object = NO_DEFAULT
    help: str = ""

    @classmethod
    def of(cls, name: str, hint: Any, default: object) -> DriverOption:
        """The option of a parameter with this annotation."""
        annotation, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        own = [note for note in notes if isinstance(note, OptionKind)]
        texts = [note for note in notes if isinstance(note, str)]
        kind = _or_none(own[0]) if own and default is None else [*own, kind_of(annotation)][0]
        return cls(name, kind, default is NO_DEFAULT, default, [*texts, ""][0])

    def read(self, driver: str, value: object) -> Any:
        """The value that the constructor gets; an error names the option, the value and why."""
        try:
            return self.kind.read(value)
        except ValueError as error:
            why = without_secrets(str(error) or f"takes {self.kind.words}", {self.name: value})
            raise NotConfigured(
                f"Driver {driver}: option {self.name} is {shown_value(self.name, value)!r}, but "
                f"{why}."
            ) from None


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """All options of a driver; `further` is the kind of those that its `**parameter` takes."""

    options: Mapping[str, DriverOption]
    further: OptionKind | None = None

    def read(self, driver: str, given: Mapping[str, object]) -> dict[str, Any]:
        """The arguments of the constructor."""
        arguments = {name: self._option(driver, name).read(driver, given[name]) for name in given}
        missing = [
            option.name
            for option in self.options.values()
            if option.required and option.name not in given
        ]
        if missing:
            raise NotConfigured(
                f"Driver {driver} lacks the option {' and '.join(missing)}; {self._accepted()}."
            )
        return arguments

    def _option(self, driver: str, name: str) -> DriverOption:
        if name in self.options:
            return self.options[name]
        if self.further is not None:
            return DriverOption(name, self.further)
        near = nearest_names(name, self.options)
        meant = f"; near it: {', '.join(near)}" if near else ""
        raise NotConfigured(f"Driver {driver} has no option {name!r}{meant}; {self._accepted()}.")

    def _accepted(self) -> str:
        names = [
            option.name + (" (required)" if option.required else "")
            for option in self.options.values()
        ]
        return f"it takes {', '.join(names) or 'none'}"


def options_of(driver_class: type[Any]) -> DriverOptions:
    """The options of a driver, by the signature and the annotations of its constructor."""
    hints = _hints(driver_class)
    options: dict[str, DriverOption] = {}
    further = None
    for name, parameter in inspect.signature(driver_class).parameters.items():
        option = DriverOption.of(name, hints.get(name, Parameter.empty), parameter.default)
        if parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            options[name] = option
        elif parameter.kind is Parameter.VAR_KEYWORD:
            further = option.kind
    if further is not None:
        described = getattr(driver_class, HELP_OF_FURTHER, {})
        options |= {
            name: DriverOption(name, further, help=text) for name, text in described.items()
        }
    return DriverOptions(options, further)


def _hints(driver_class: type[Any]) -> dict[str, Any]:
    owner = next(each for each in driver_class.__mro__ if "__init__" in vars(each))
    if owner is object:
        return {}
    # A generated constructor has annotations of other modules, which only the class can resolve.
    source = owner if "__dataclass_fields__" in vars(owner) else vars(owner)["__init__"]
    try:
        return get_type_hints(source, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise NotConfigured(
            f"The annotations of {driver_class.__name__}.__init__ cannot be read: {error}; import"
            " the types where Python finds them at run time."
        ) from error
