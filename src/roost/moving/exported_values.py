"""What the values of a row may be, so that every kind of database can hold the row. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from roost.store.tables import resource_providers
from roost.store.transfer.layout import TransferTable

# The largest values of INTEGER, and of FLOAT in single precision.
_INTEGER_MAX = 2**31 - 1
_FLOAT_MAX = 3.4e38
_SHOWN_LENGTH = 60

_ID, _ROOT, _PARENT = (
    list(resource_providers.c.keys()).index(name)
    for name in ("id", "root_provider_id", "parent_provider_id")
)


class _ColumnRule(NamedTuple):
    """What a column may hold."""

    name: str
    nullable: bool
    allows: Callable[[Any], bool]
    meaning: str


class ValueCheck:
    """Checks the rows of a table."""

    def __init__(self, part: TransferTable) -> None:
        self._name = part.name
        self._rules = [_rule(column) for column in part.table.columns]

    def fault(self, values: list[Any]) -> str | None:
        """What is wrong with a row; `None` if it can be written."""
        if len(values) != len(self._rules):
            return f"a row of {self._name} has {len(self._rules)} values"
        for value, (name, nullable, allows, meaning) in zip(values, self._rules, strict=True):
            if not (nullable if value is None else allows(value)):
                shown = repr(value)[:_SHOWN_LENGTH]
                return f"the column {name} of {self._name} is {shown}, and needs {meaning}"
        return None


class AncestorCheck:
    """Checks that the parents of all providers are there and make trees."""

    def __init__(self) -> None:
        # The parent, the root and the line of each provider.
        self._providers: dict[int, tuple[int | None, int | None, int]] = {}

    def add(self, values: list[Any], line: int) -> None:
        """Know a provider, whose values have been checked."""
        self._providers[values[_ID]] = values[_PARENT], values[_ROOT], line

    def fault(self) -> tuple[int, str] | None:
        """The line of a provider, and what is wrong with it; `None` if all is well."""
        for parent, root, line in self._providers.values():
            for name, ancestor in (("parent_provider_id", parent), ("root_provider_id", root)):
                if ancestor is not None and ancestor not in self._providers:
                    return line, (
                        f"the column {name} of resource_providers is {ancestor}, and no provider "
                        "has this id"
                    )
        return self._cycle()

    def _cycle(self) -> tuple[int, str] | None:
        done: set[int] = set()
        for first in self._providers:
            path: set[int] = set()
            provider: int | None = first
            while provider is not None and provider not in done:
                parent, _, line = self._providers[provider]
                if provider in path:
                    return line, (
                        f"the column parent_provider_id of resource_providers is {parent}, and "
                        "makes the provider its own ancestor"
                    )
                path.add(provider)
                provider = parent
            done |= path
        return None


def _rule(column: sa.Column[Any]) -> _ColumnRule:
    allows, meaning = _kind(column.type)
    return _ColumnRule(str(column.name), bool(column.nullable), allows, meaning)


def _kind(kind: sa.types.TypeEngine[Any]) -> tuple[Callable[[Any], bool], str]:
    if isinstance(kind, sa.DateTime):
        return _is_time, "a time such as 2026-11-15T21:36:37.286730"
    if isinstance(kind, sa.Float):
        return _is_ratio, f"a number from 0 to {_FLOAT_MAX}"
    if isinstance(kind, sa.Integer):
        return _is_integer, f"a whole number from 0 to {_INTEGER_MAX}"
    if isinstance(kind, sa.String) and kind.length is not None:
        return _is_text(kind.length), f"a text of at most {kind.length} characters without NUL"
    raise TypeError(f"no rule for columns of the type {kind!r}")


def _is_time(value: Any) -> bool:
    try:
        # Only one spelling of a time is read back as it was written.
        return bool(datetime.fromisoformat(value).isoformat() == value)
    except (TypeError, ValueError):
        return False


def _is_integer(value: Any) -> bool:
    # A truth value is an integer for `isinstance`.
    return type(value) is int and 0 <= value <= _INTEGER_MAX


def _is_ratio(value: Any) -> bool:
    return type(value) in (float, int) and 0 <= value <= _FLOAT_MAX


def _is_text(length: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and len(value) <= length and "\0" not in value
