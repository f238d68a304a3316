"""The difference between two states of a host's tree: what one flush has to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import groupby
from typing import Any

from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.inventory import DEFAULTS


class Kind(Enum):
    """What can hang on a provider, in the order in which a flush writes it."""

    INVENTORY = "inventory"
    AGGREGATES = "aggregates"
    TRAITS = "traits"

    def of(self, provider: ProviderData) -> Any:
        """What of this kind hangs on the provider."""
        return getattr(provider, self.value)


@dataclass(frozen=True, slots=True)
class Creation:
    """A provider that the server does not know yet."""

    uuid: str
    name: str
    parent_uuid: str | None
    parent_name: str | None

    def lines(self) -> Iterator[str]:
        """The change in words."""
        below = f" below {self.parent_name}" if self.parent_name else ""
        yield f"{self.name}: created{below}"


@dataclass(frozen=True, slots=True)
class Deletion:
    """A provider that is no longer there."""

    uuid: str
    name: str

    def lines(self) -> Iterator[str]:
        """The change in words."""
        yield f"{self.name}: deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """All that hangs on a provider of one kind, before and after."""

    uuid: str
    name: str
    kind: Kind
    before: Any
    after: Any

    def lines(self) -> Iterator[str]:
        """The change in words, a line for each inventory and for what was added or removed."""
        describe = _inventory_lines if self.kind is Kind.INVENTORY else _set_lines
        for line in describe(self):
            yield f"{self.name}: {line}"


@dataclass(frozen=True, slots=True)
class Ignored:
    """A name or a parent that was changed: providers are neither renamed nor moved."""

    uuid: str
    name: str
    field: str
    before: str | None
    after: str | None

    def lines(self) -> Iterator[str]:
        """The change in words."""
        yield f"{self.name}: {self.field} stays {self.before} (not changed to {self.after})"


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to be done: creations parents first, deletions and changes leaves first."""

    creations: tuple[Creation, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    changes: tuple[Change, ...] = ()
    ignored: tuple[Ignored, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.creations or self.deletions or self.changes)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "creations": [asdict(creation) for creation in self.creations],
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

    def lines(self) -> list[str]:
        """One line for each change, providers from the top down."""
        parts = (self.creations, self.ignored, self._top_down(), self.deletions)
        return [line for part in parts for item in part for line in item.lines()]

    def _top_down(self) -> tuple[Change, ...]:
        """The changes from the root to the leaves, those of one provider in their order."""
        groups = [list(group) for _, group in groupby(self.changes, lambda change: change.uuid)]
        return tuple(change for group in reversed(groups) for change in group)


def difference(before: ProviderTree, after: ProviderTree) -> Difference:
    """What turns one state into the other."""
    old = _providers(before)
    new = _providers(after)
    return Difference(
        creations=tuple(_creations(old, new)),
        deletions=tuple(
            Deletion(uuid, old[uuid].name) for uuid in reversed(old) if uuid not in new
        ),
        changes=tuple(_changes(before, old, new)),
        ignored=tuple(_ignored(old, new)),
    )


def has_changed(tree: ProviderTree, uuid: str, kind: Kind, after: Any) -> bool:
    """Whether this is not what hangs on a provider; fields that are left out are no change."""
    compare = {
        Kind.INVENTORY: tree.has_inventory_changed,
        Kind.AGGREGATES: tree.have_aggregates_changed,
        Kind.TRAITS: tree.have_traits_changed,
    }
    return compare[kind](uuid, after)


def _providers(tree: ProviderTree) -> dict[str, ProviderData]:
    return {uuid: tree.data(uuid) for uuid in tree.get_provider_uuids()}


def _creations(
    old: Mapping[str, ProviderData], new: Mapping[str, ProviderData]
) -> Iterator[Creation]:
    for uuid, provider in new.items():
        if uuid not in old:
            parent = new.get(provider.parent_uuid or "")
            yield Creation(
                uuid, provider.name, provider.parent_uuid, parent.name if parent else None
            )


def _changes(
    before: ProviderTree, old: Mapping[str, ProviderData], new: dict[str, ProviderData]
) -> Iterator[Change]:
    for uuid in reversed(new):
        provider = new[uuid]
        for kind in Kind:
            after = kind.of(provider)
            if uuid not in old:
                if after:
                    yield Change(uuid, provider.name, kind, type(after)(), after)
            elif has_changed(before, uuid, kind, after):
                yield Change(uuid, provider.name, kind, kind.of(old[uuid]), after)


def _ignored(old: Mapping[str, ProviderData], new: Mapping[str, ProviderData]) -> Iterator[Ignored]:
    for uuid, provider in new.items():
        known = old.get(uuid)
        if known is None:
            continue
        for field in ("name", "parent_uuid"):
            was, is_ = getattr(known, field), getattr(provider, field)
            if was != is_:
                yield Ignored(uuid, known.name, field, was, is_)


def _inventory_lines(change: Change) -> Iterator[str]:
    before, after = change.before, change.after
    for name in sorted(before.keys() - after.keys()):
        yield f"inventory {name} removed"
    for name in sorted(after):
        fields, known = after[name], before.get(name)
        if known is None:
            yield f"inventory {name} added ({_remarkable(fields)})"
            continue
        changed = [
            f"{key} {known.get(key)} -> {value}"
            for key, value in fields.items()
            if known.get(key) != value
        ]
        if changed:
            yield f"inventory {name} {', '.join(changed)}"


def _remarkable(fields: Mapping[str, Any]) -> str:
    """The fields that are not what the server would take anyway."""
    return ", ".join(
        f"{key} {value}" for key, value in fields.items() if DEFAULTS.get(key) != value
    )


def _set_lines(change: Change) -> Iterator[str]:
    for verb, names in (
        ("added", change.after - change.before),
        ("removed", change.before - change.after),
    ):
        if names:
            yield f"{change.kind.value} {verb}: {', '.join(sorted(names))}"


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else value
