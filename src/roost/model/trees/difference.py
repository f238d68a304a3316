"""The difference between two states of a tree: what a write does to it, and how it is told. Pure.

The client plans its writes with it, and `PUT /roost/trees` answers with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import groupby
from typing import Any

from roost.model.inventory import DEFAULTS
from roost.model.text import done_or_planned, plain_number, with_separators

WOULD_CHANGE = "would change: "
"""Stands before the old and the new value of a field that a dry run leaves as it is."""


class AssociationKind(Enum):
    """The kinds of associations of a provider, in the order in which a flush writes them."""

    INVENTORY = "inventory"
    AGGREGATES = "aggregates"
    TRAITS = "traits"

    @property
    def plural(self) -> str:
        """The word in the paths and bodies of the API."""
        return "inventories" if self is AssociationKind.INVENTORY else self.value

    def of(self, provider: object) -> Any:
        """The associations of this kind that a provider has."""
        return getattr(provider, self.value)


@dataclass(frozen=True, slots=True)
class ProviderCreation:
    """A provider that the server does not know yet."""

    uuid: str
    name: str
    parent_uuid: str | None
    parent_name: str | None

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words; `planned` says what would be done."""
        below = f" below {self.parent_name}" if self.parent_name else ""
        yield f"{self.name}: {done_or_planned('created', planned=planned)}{below}"


@dataclass(frozen=True, slots=True)
class ProviderMove:
    """A provider that gets another parent, with all below it."""

    uuid: str
    name: str
    before_uuid: str | None
    parent_uuid: str
    parent_name: str

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words; `planned` says what would be done."""
        yield f"{self.name}: {done_or_planned('moved', planned=planned)} below {self.parent_name}"


@dataclass(frozen=True, slots=True)
class ProviderDeletion:
    """A provider that the tree no longer has."""

    uuid: str
    name: str

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words; `planned` says what would be done."""
        yield f"{self.name}: {done_or_planned('deleted', planned=planned)}"


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """All associations of one kind that a provider has, before and after."""

    uuid: str
    name: str
    kind: AssociationKind
    before: Any
    after: Any

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words, a line for each inventory and for what was added or removed."""
        describe = _inventory_lines if self.kind is AssociationKind.INVENTORY else _set_lines
        for line in describe(self, planned=planned):
            yield f"{self.name}: {line}"


@dataclass(frozen=True, slots=True)
class IgnoredChange:
    """A new name or parent that is not written: a driver renames none, and moves by `move`."""

    uuid: str
    name: str
    field: str
    before: str | None
    after: str | None

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words; `planned` says what would be done."""
        stays = "would stay" if planned else "stays"
        yield f"{self.name}: {self.field} {stays} {self.before} (not changed to {self.after})"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a flush has to do.

    Creations and moves have parents first; deletions and changes have leaves first.
    """

    creations: tuple[ProviderCreation, ...] = ()
    moves: tuple[ProviderMove, ...] = ()
    deletions: tuple[ProviderDeletion, ...] = ()
    changes: tuple[ProviderChange, ...] = ()
    ignored: tuple[IgnoredChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.creations or self.moves or self.deletions or self.changes)

    def as_json(self) -> dict[str, Any]:
        """The difference as a JSON value."""
        return {
            "creations": [asdict(creation) for creation in self.creations],
            "moves": [asdict(move) for move in self.moves],
            "changes": [
                {
                    "uuid": change.uuid,
                    "name": change.name,
                    "kind": change.kind.value,
                    "before": _plain(change.before),
                    "after": _plain(change.after),
                }
                for change in self._top_down()
            ],
            "deletions": [asdict(deletion) for deletion in self.deletions],
            "ignored": [asdict(ignored) for ignored in self.ignored],
        }

    def lines(self, *, planned: bool = False) -> list[str]:
        """One line for each change, providers from the top down."""
        parts = (self.creations, self.moves, self.ignored, self._top_down(), self.deletions)
        return [line for part in parts for item in part for line in item.lines(planned=planned)]

    def _top_down(self) -> tuple[ProviderChange, ...]:
        """The changes from the root to the leaves, those of one provider in their order."""
        groups = [list(group) for _, group in groupby(self.changes, lambda change: change.uuid)]
        return tuple(change for group in reversed(groups) for change in group)


def _inventory_lines(change: ProviderChange, *, planned: bool) -> Iterator[str]:
    before, after = change.before, change.after
    for name in sorted(before.keys() - after.keys()):
        yield f"inventory {name} {done_or_planned('removed', planned=planned)}"
    for name in sorted(after):
        fields, known = after[name], before.get(name)
        if known is None:
            added = done_or_planned("added", planned=planned)
            yield f"inventory {name} {added} ({_remarkable(fields)})"
            continue
        changed = [
            f"{key} {field_text(known.get(key))} -> {field_text(value)}"
            for key, value in fields.items()
            if known.get(key) != value
        ]
        if changed:
            yield f"inventory {name} {WOULD_CHANGE if planned else ''}{', '.join(changed)}"


def _remarkable(fields: Mapping[str, Any]) -> str:
    """The fields that differ from the server's defaults."""
    return ", ".join(
        f"{key} {field_text(value)}" for key, value in fields.items() if DEFAULTS.get(key) != value
    )


def field_text(value: Any) -> str:
    """A value of a field in words; a ratio is a fraction."""
    if isinstance(value, float):
        return plain_number(value)
    return with_separators(value) if isinstance(value, int) else str(value)


def _set_lines(change: ProviderChange, *, planned: bool) -> Iterator[str]:
    for word, names in (
        ("added", change.after - change.before),
        ("removed", change.before - change.after),
    ):
        if names:
            done = done_or_planned(word, planned=planned)
            yield f"{change.kind.value} {done}: {', '.join(sorted(names))}"


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else value
