"""The options of a driver: values of each type, and the errors of values that do not fit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from roost.client.drivers.options import OptionKind, options_of
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured


class Colour(Enum):
    RED = "red"
    BLUE = "RED-ish"
    CRIMSON = "RED"


class _Base:
    def declare(self, nodename: str) -> None:
        del nodename


class Typed(_Base):
    """A driver with an option of each type."""

    def __init__(  # type: ignore[no-untyped-def]  # one option has no type
        self,
        *,
        cards: Annotated[int, "How many cards the host has."] = 2,
        ratio: float = 1.0,
        enabled: bool = False,
        path: Path = Path("/"),
        name: str = "",
        level: Literal["low", 1] = 1,
        colour: Colour = Colour.RED,
        maybe: int | None = None,
        names: list[str] | None = None,
        sizes: tuple[int, ...] = (),
        many: Sequence[str] = (),
        groups: list[list[str]] | None = None,
        table: dict[str, int] | None = None,
        either: int | str = 0,
        unlike: Literal[1, "1"] = 1,
        anything: Any = None,
        untyped="text",
    ) -> None:
        self.options = {name: value for name, value in locals().items() if name != "self"}


@dataclass
class Dataclass(_Base):
    """A driver whose constructor is generated."""

    cards: int = 1


class Nothing(_Base):
    """A driver without a constructor."""


SPEC = f"{__name__}:Typed"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest does not put test modules where `import` finds them."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Typed.__module__])


def given(**options: object) -> Any:
    (name,) = options
    return vars(load_driver(SPEC, options))["options"][name]


def refusal(options: dict[str, object], spec: str = SPEC) -> str:
    with pytest.raises(NotConfigured) as caught:
        load_driver(spec, options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cards", "12", 12),
        ("cards", 12, 12),
        ("cards", "-1", -1),
        ("ratio", "1.5", 1.5),
        ("ratio", 2, 2.0),
        ("enabled", "true", True),
        ("enabled", "No", False),
        ("enabled", "0", False),
        ("enabled", True, True),
        ("path", "/etc/x", Path("/etc/x")),
        ("name", "12", "12"),
        ("level", "low", "low"),
        ("level", "1", 1),
        ("level", 1, 1),
        ("colour", "red", Colour.RED),
        ("colour", "BLUE", Colour.BLUE),
        ("colour", Colour.BLUE, Colour.BLUE),
        ("maybe", "3", 3),
        ("maybe", None, None),
        ("names", "a, b", ["a", "b"]),
        ("names", ["a", "b"], ["a", "b"]),
        ("names", "", []),
        ("sizes", "1,2", (1, 2)),
        ("sizes", [1, 2], (1, 2)),
        ("many", "a", ("a",)),
        ("groups", [["a"], ["b"]], [["a"], ["b"]]),
        ("table", {"a": 1}, {"a": 1}),
        ("anything", [1], [1]),
        ("untyped", "3", "3"),
        ("untyped", 3, "3"),
        ("untyped", True, "true"),
    ],
)
def test_a_value_becomes_what_the_annotation_says(name: str, value: object, expected: Any) -> None:
    found = given(**{name: value})
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "value", "takes"),
    [
        ("cards", "two", "takes a whole number"),
        ("cards", "1_000", "takes a whole number"),
        ("cards", "2.0", "takes a whole number"),
        ("cards", 2.0, "takes a whole number"),
        ("cards", True, "takes a whole number"),
        ("cards", None, "takes a whole number"),
        ("ratio", "much", "takes a number"),
        ("ratio", "nan", "takes a number"),
        ("ratio", True, "takes a number"),
        ("enabled", "maybe", "takes true or false"),
        ("enabled", 1, "takes true or false"),
        ("path", "", "takes a path"),
        ("path", 3, "takes a path"),
        ("name", 12, "takes text: put the value in quotes"),
        ("level", "high", "takes one of low, 1"),
        ("level", True, "takes one of low, 1"),
        ("colour", "green", "takes one of red, RED-ish, RED"),
        ("colour", "RED", "the value stands for several of them"),
        ("maybe", "x", "takes a whole number"),
        ("names", "a,,b", "with commas between them"),
        ("names", [1], "takes text"),
        ("names", 1, "with commas between them"),
        ("sizes", "1,x", "each a whole number"),
        ("groups", "a", "text cannot express"),
        ("table", "a", "text cannot express"),
        ("either", "1", "is ambiguous"),
        ("unlike", "1", "the value stands for several of them"),
        ("untyped", [1], "does not annotate"),
    ],
)
def test_an_error_names_the_option_its_value_and_what_it_takes(
    name: str, value: object, takes: str
) -> None:
    text = refusal({name: value})
    assert text.startswith(f"Driver {SPEC}: option {name} is {value!r}, but ")
    assert takes in text


def test_an_unknown_option_gets_near_names() -> None:
    assert "has no option 'card'; near it: cards; it takes cards, ratio" in refusal({"card": "1"})
    assert "has no option 'x'; it takes none." in refusal({"x": "1"}, f"{__name__}:Nothing")


def test_a_generated_constructor_has_types() -> None:
    assert vars(load_driver(f"{__name__}:Dataclass", {"cards": "3"})) == {"cards": 3}


def test_annotations_that_python_cannot_find_are_an_error() -> None:
    class Unfound(_Base):
        def __init__(self, size: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821  # on purpose
            del size

    with pytest.raises(NotConfigured, match="'Missing' is not defined"):
        options_of(Unfound)


def test_options_have_their_help() -> None:
    options = options_of(Typed).options
    assert options["cards"].help == "How many cards the host has."
    assert (options["cards"].default, options["cards"].required) == (2, False)


def _read_even(value: object) -> int:
    if (number := int(str(value))) % 2:
        raise ValueError
    return number


class OwnKind(_Base):
    """A driver with a kind of its own."""

    def __init__(
        self, size: Annotated[int, OptionKind("an even number", _read_even), "How many."] = 2
    ) -> None:
        self.size = size


def test_a_driver_has_kinds_of_its_own() -> None:
    spec = f"{__name__}:OwnKind"
    assert vars(load_driver(spec, {"size": "4"})) == {"size": 4}
    assert "option size is '3', but takes an even number." in refusal({"size": "3"}, spec)
    assert options_of(OwnKind).options["size"].help == "How many."
