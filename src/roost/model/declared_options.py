"""Options of `placement.conf`, each declared once: as a field of the values that have it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

_KEY = "option"


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """An option: its type is that of the default, and text if there is none.

    `read` makes the value of the field, and may raise `ConfigurationError`.
    """

    default: Any
    meaning: str
    group: str = "roost"
    # Empty if the field has the name of the option.
    name: str = ""
    minimum: int | None = None
    read: Callable[[Any], Any] = _as_it_is


def option(default: Any, meaning: str, **more: Any) -> Any:
    """A field with the value of an option; the further arguments are those of `DeclaredOption`."""
    declared = DeclaredOption(default, meaning, **more)
    return field(default=declared.read(default), metadata={_KEY: declared})


def declared_options(values: Any) -> dict[str, DeclaredOption]:
    """The options of a dataclass by the names of their fields."""
    return {one.name: one.metadata[_KEY] for one in fields(values) if _KEY in one.metadata}
