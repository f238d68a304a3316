"""What the values of rows may be, so that a route could have written them. Pure.

The rules are those of `roost db check`: `store/checks/row_rules.py` has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from roost.model.capacity import exact_capacity
from roost.model.identifiers import is_uuid
from roost.model.trees.owned import OwnedParts
from roost.model.trees.owner_names import canonical_owner
from roost.store.checks.row_rules import (
    EXTERNAL_IDS,
    NAME_PATTERN,
    NAMES,
    NEVER_NULL,
    REFERENCES,
    UUIDS,
    KeyColumns,
    bounds,
    class_id_fault,
    unique_keys,
)
from roost.store.tables import (
    inventories,
    resource_classes,
    resource_providers,
    roost_ownership,
)
from roost.store.transfer import TransferTable

_SHOWN_LENGTH = 60
_NAME = re.compile(NAME_PATTERN)


class Fault(NamedTuple):
    """What is wrong with a row of an export."""

    line: int
    reason: str


class _ColumnRule(NamedTuple):
    """What a column may hold."""

    name: str
    nullable: bool
    allows: Callable[[Any], bool]
    meaning: str


class RowChecks:
    """Checks all rows of an export, in their order."""

    def __init__(self) -> None:
        self._keys = KeyCheck()
        self._ancestors = AncestorCheck()

    def faults(self, part: TransferTable) -> Callable[[list[Any], int], str | None]:
        """A function that says what is wrong with a row of this table, at this line."""
        allowed, keys, order = ValueCheck(part), self._keys.of(part), OrderCheck(part)
        is_provider = part.table is resource_providers

        def fault(values: list[Any], line: int) -> str | None:
            found = allowed.fault(values) or keys(values) or order.fault(values)
            if is_provider and found is None:
                self._ancestors.add(values, line)
            return found

        return fault

    def end(self, part: TransferTable) -> Fault | None:
        """What is wrong with all rows of a table together; `None` if all is well."""
        self._keys.end(part)
        return self._ancestors.fault() if part.table is resource_providers else None


class ValueCheck:
    """Checks the values of each row of a table by themselves."""

    def __init__(self, part: TransferTable) -> None:
        self._name = part.name
        self._rules = [_rule(column) for column in part.table.columns]
        self._whole = _WHOLE_ROWS.get(part.name)

    def fault(self, values: list[Any]) -> str | None:
        """What is wrong with a row; `None` if it can be written."""
        if len(values) != len(self._rules):
            return f"a row of {self._name} has {len(self._rules)} values"
        for value, (name, nullable, allows, meaning) in zip(values, self._rules, strict=True):
            if not (nullable if value is None else allows(value)):
                return f"{_named(name, self._name, value)}, and needs {meaning}"
        return None if self._whole is None else self._whole(values)


class OrderCheck:
    """Checks that each row comes after the row before it: they are read back in this order."""

    def __init__(self, part: TransferTable) -> None:
        self._columns = tuple(part.table.columns[name] for name in part.order)
        self._read = _reader(part, self._columns)
        self._name = part.name
        self._last: Any = None

    def fault(self, values: list[Any]) -> str | None:
        """What is wrong with the place of a row, whose values have been checked."""
        value = self._read(values)
        if self._last is not None and value < self._last:
            named = _named(_names(self._columns), self._name, value)
            return f"{named}, and the row before has the higher value {self._last}"
        self._last = value
        return None


class KeyCheck:
    """Checks that no two rows have one key, and that rows refer to rows that are there."""

    def __init__(self) -> None:
        self._known: dict[KeyColumns, set[Any]] = {}

    def of(self, part: TransferTable) -> Callable[[list[Any]], str | None]:
        """A function that says what is wrong with the keys and references of a row."""
        keys = [(_reader(part, key), self._values(key), key) for key in unique_keys(part.table)]
        references = [
            (_reader(part, one.columns), self._values(one.targets), one)
            for one in REFERENCES
            if one.table is part.table
        ]

        def fault(values: list[Any]) -> str | None:
            for read, known, reference in references:
                value = read(values)
                if value is not None and value not in known:
                    named = _named(_names(reference.columns), part.name, value)
                    return f"{named}, and no row of {reference.target.name} has this value"
            for read, known, key in keys:
                value = read(values)
                if value in known:
                    named = _named(_names(key), part.name, value)
                    return f"{named}, and an earlier row has the same value"
                known.add(value)
            return None

        return fault

    def end(self, part: TransferTable) -> None:
        """Forget the keys of a table to which no later row refers."""
        for key in unique_keys(part.table):
            if not any(key == reference.targets for reference in REFERENCES):
                self._known.pop(key, None)

    def _values(self, key: KeyColumns) -> set[Any]:
        return self._known.setdefault(key, set())


class AncestorCheck:
    """Checks that the parents of all providers are there and make trees with one root each."""

    def __init__(self) -> None:
        # The parent, the root and the line of each provider.
        self._providers: dict[int, tuple[int | None, int | None, int]] = {}

    def add(self, values: list[Any], line: int) -> None:
        """Know a provider, whose values have been checked."""
        self._providers[values[_ID]] = values[_PARENT], values[_ROOT], line

    def fault(self) -> Fault | None:
        """The line of a provider, and what is wrong with it; `None` if all is well."""
        return self._absent_parent() or self._cycle() or self._wrong_root()

    def _absent_parent(self) -> Fault | None:
        for parent, _, line in self._providers.values():
            if parent is not None and parent not in self._providers:
                named = _provider_column("parent_provider_id", parent)
                return Fault(line, f"{named}, and no provider has this id")
        return None

    def _wrong_root(self) -> Fault | None:
        for provider, (parent, root, line) in self._providers.items():
            wanted = provider if parent is None else self._providers[parent][1]
            if root == wanted:
                continue
            named = _provider_column("root_provider_id", root)
            if root is not None and root not in self._providers:
                return Fault(line, f"{named}, and no provider has this id")
            return Fault(line, f"{named}, and the root of its tree is {wanted}")
        return None

    def _cycle(self) -> Fault | None:
        done: set[int] = set()
        for first in self._providers:
            path: set[int] = set()
            provider: int | None = first
            while provider is not None and provider not in done:
                parent, _, line = self._providers[provider]
                if provider in path:
                    named = _provider_column("parent_provider_id", parent)
                    return Fault(line, f"{named}, and makes the provider its own ancestor")
                path.add(provider)
                provider = parent
            done |= path
        return None


def _positions(table: sa.Table, *names: str) -> Iterator[int]:
    columns = list(table.columns.keys())
    return (columns.index(name) for name in names)


_ID, _ROOT, _PARENT = _positions(resource_providers, "id", "root_provider_id", "parent_provider_id")
_TOTAL, _RESERVED, _RATIO = _positions(inventories, "total", "reserved", "allocation_ratio")
_CLASS_ID, _CLASS_NAME = _positions(resource_classes, "id", "name")
_OWNER, _CONTENT = _positions(roost_ownership, "owner", "content")


def _capacity_fault(values: list[Any]) -> str | None:
    capacity = exact_capacity(values[_TOTAL], values[_RESERVED], values[_RATIO])
    if int(capacity) >= 0:
        return None
    named = _named("reserved", inventories.name, values[_RESERVED])
    return f"{named}, and total and allocation_ratio make the capacity {capacity}"


def _class_fault(values: list[Any]) -> str | None:
    wrong = class_id_fault(values[_CLASS_ID], values[_CLASS_NAME])
    return wrong and f"{_named('id', resource_classes.name, values[_CLASS_ID])}, and {wrong}"


def _ownership_fault(values: list[Any]) -> str | None:
    owner, content = values[_OWNER], values[_CONTENT]
    if canonical_owner(owner) != owner:
        return f"{_named('owner', roost_ownership.name, owner)}, and needs the name of an owner"
    try:
        is_right = OwnedParts.parse(content).to_text() == content
    except (ValueError, TypeError, AttributeError):
        is_right = False
    if is_right:
        return None
    return f"{_named('content', roost_ownership.name, content)}, and needs parts of a provider"


# What the values of one row say together.
_WHOLE_ROWS = {
    inventories.name: _capacity_fault,
    resource_classes.name: _class_fault,
    roost_ownership.name: _ownership_fault,
}


def _provider_column(name: str, value: int | None) -> str:
    return _named(name, resource_providers.name, value)


def _named(column: str, table: str, value: Any) -> str:
    return f"the column {column} of {table} is {repr(value)[:_SHOWN_LENGTH]}"


def _names(columns: KeyColumns) -> str:
    return ", ".join(str(column.name) for column in columns)


def _reader(part: TransferTable, columns: KeyColumns) -> Callable[[list[Any]], Any]:
    """A function that reads the value of a key from a row."""
    positions = [part.columns.index(str(column.name)) for column in columns]
    if len(positions) == 1:
        (position,) = positions
        return lambda values: values[position]
    return lambda values: tuple(values[position] for position in positions)


def _rule(column: sa.Column[Any]) -> _ColumnRule:
    allows, meaning = _kind(column)
    nullable = bool(column.nullable) and column not in NEVER_NULL
    return _ColumnRule(str(column.name), nullable, allows, meaning)


def _kind(column: sa.Column[Any]) -> tuple[Callable[[Any], bool], str]:
    kind = column.type
    if isinstance(kind, sa.DateTime):
        return _is_time, "a time such as 2026-11-15T21:36:37.286730, without a zone"
    if isinstance(kind, (sa.Float, sa.Integer)):
        return _number_kind(column)
    if isinstance(kind, sa.String) and kind.length is not None:
        return _text_kind(column, kind.length)
    raise TypeError(f"no rule for columns of the type {kind!r}")


def _number_kind(column: sa.Column[Any]) -> tuple[Callable[[Any], bool], str]:
    least, most = bounds(column)
    is_float = isinstance(column.type, sa.Float)
    # A truth value is an integer for `isinstance`. A database makes a fraction of a whole number.
    wanted, what = (float, "a number such as 1.0,") if is_float else (int, "a whole number")
    return (
        lambda value: type(value) is wanted and least <= value <= most,
        f"{what} from {least} to {most}",
    )


def _text_kind(column: sa.Column[Any], length: int) -> tuple[Callable[[Any], bool], str]:
    def is_text(value: Any) -> bool:
        return type(value) is str and len(value) <= length and "\0" not in value

    if column in UUIDS:
        return lambda value: is_text(value) and is_uuid(value), "a uuid"
    if column in NAMES:
        return (
            lambda value: is_text(value) and _NAME.fullmatch(value) is not None,
            f"a name of at most {length} of the characters A-Z, 0-9 and _",
        )
    if column in EXTERNAL_IDS:
        return (
            lambda value: is_text(value) and value != "",
            f"a text of 1 to {length} characters without NUL",
        )
    return is_text, f"a text of at most {length} characters without NUL"


def _is_time(value: Any) -> bool:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    # Only one spelling of a time is read back as it was written.
    return time.tzinfo is None and time.isoformat() == value
