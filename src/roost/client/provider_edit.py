"""An operator's edit of one provider: the difference that it makes, and its writes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from roost.client.errors import (
    InventoryInUse,
    NotConfigured,
    PlacementError,
    ResourceProviderUpdateConflict,
)
from roost.client.placement import ProviderBody
from roost.client.placement.answers import CONCURRENT_UPDATE
from roost.client.placement.placement import Administration
from roost.client.reading.cloud_provider import CloudProvider
from roost.client.reading.cloud_reader import ASSOCIATIONS, CloudReader, Facet
from roost.client.reading.lookup import did_you_mean, provider_argument
from roost.model.inventory import Inventory
from roost.model.text import with_next, with_separators
from roost.model.trees.difference import WOULD_CHANGE, AssociationKind, ProviderChange

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class FieldAssignment:
    """A value for one field of an inventory."""

    resource_class: str
    field: str
    value: int | float


@dataclass(frozen=True, slots=True)
class ProviderEdit:
    """What an operator wants of a provider; what is not named stays as it is."""

    assignments: tuple[FieldAssignment, ...] = ()
    removed_inventories: frozenset[str] = frozenset()
    added_traits: frozenset[str] = frozenset()
    removed_traits: frozenset[str] = frozenset()
    added_aggregates: frozenset[str] = frozenset()
    removed_aggregates: frozenset[str] = frozenset()
    name: str | None = None
    parent: ProviderBody | None = None
    becomes_root: bool = False


@dataclass(frozen=True, slots=True)
class IdentityChange:
    """Another name or parent of a provider."""

    uuid: str
    name: str
    field: str
    before: str | None
    after: str | None

    def lines(self, *, planned: bool = False) -> Iterator[str]:
        """The change in words; `planned` says what would be done."""
        would = WOULD_CHANGE if planned else ""
        yield f"{self.name}: {self.field} {would}{self.before or 'none'} -> {self.after or 'none'}"


EditChange: TypeAlias = ProviderChange | IdentityChange


def read_edited(server: Administration, body: ProviderBody) -> CloudProvider:
    """Read what a provider has; writes are refused if another client changes it later."""
    fresh = server.provider(body["uuid"]) or body
    return CloudReader(server).provider(fresh, (*ASSOCIATIONS, Facet.USAGES))


def edit_changes(before: CloudProvider, edit: ProviderEdit) -> list[EditChange]:
    """The changes that an edit makes, in the order of their writes; empty if nothing changes."""
    uuid, name = before.body["uuid"], before.name
    changes: list[EditChange] = []
    if edit.name is not None and edit.name != name:
        changes.append(IdentityChange(uuid, name, "name", name, edit.name))
    parent = before.body["parent_provider_uuid"]
    wanted = None if edit.becomes_root else edit.parent["uuid"] if edit.parent else parent
    if wanted != parent:
        changes.append(IdentityChange(uuid, name, "parent", parent, wanted))
    for kind, old, new in (
        (AssociationKind.INVENTORY, dict(before.inventories), _inventories(before, edit)),
        (
            AssociationKind.AGGREGATES,
            before.aggregates,
            (before.aggregates | edit.added_aggregates) - edit.removed_aggregates,
        ),
        (
            AssociationKind.TRAITS,
            before.traits,
            (before.traits | edit.added_traits) - edit.removed_traits,
        ),
    ):
        if old != new:
            changes.append(ProviderChange(uuid, name, kind, old, new))
    return changes


def edit_warnings(before: CloudProvider, changes: list[EditChange]) -> Iterator[str]:
    """Sentences about inventories that hold more than the capacity they are given."""
    for change in changes:
        if not isinstance(change, ProviderChange) or change.kind is not AssociationKind.INVENTORY:
            continue
        for name, fields in sorted(change.after.items()):
            used = before.used.get(name, 0)
            capacity = Inventory(name, **fields).capacity
            if fields != change.before.get(name) and used > max(0.0, capacity):
                yield (
                    f"{change.name}: consumers hold {with_separators(used)} {name}, more than "
                    f"the new capacity of {with_separators(capacity)}"
                )


def edit_absences(before: CloudProvider, edit: ProviderEdit) -> Iterator[str]:
    """Sentences about what an edit removes, and the provider does not have: a name misspelt?"""
    for noun, removed, there, names in (
        ("inventory of", edit.removed_inventories, before.inventories.keys(), before.inventories),
        # A uuid is copied, and one that looks like it is no hint.
        ("the aggregate", edit.removed_aggregates, before.aggregates, ()),
        ("the trait", edit.removed_traits, before.traits, before.traits),
    ):
        for name in sorted(removed - there):
            yield (
                f"{before.name} does not have {noun} {name}, so there is nothing to remove."
                f"{did_you_mean(name, names)}"
            )


def carry_out(
    server: Administration, body: ProviderBody, edit: ProviderEdit, made: list[EditChange]
) -> None:
    """Write an edit; an edit that meets another writer is worked out again.

    Adds each change to `made`. An edit has several writes, so an error may leave the first ones.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        before = read_edited(server, body)
        changes = edit_changes(before, edit)
        identity = [change for change in changes if isinstance(change, IdentityChange)]
        if identity:
            _put_identity(server, before, identity)
            made += identity
            # On some servers this moves the generation.
            before = read_edited(server, body)
        try:
            made.extend(_written(server, before, edit_changes(before, edit)))
            return
        except ResourceProviderUpdateConflict as error:
            if not _is_concurrent(error):
                raise
            if attempt == _ATTEMPTS:
                error.next_command = "roost help generation"
                raise


def _is_concurrent(error: PlacementError) -> bool:
    """Whether the refusal is about a generation; older versions have no code for it."""
    return CONCURRENT_UPDATE in str(error.detail) or "generation" in str(error.detail)


def _put_identity(
    server: Administration, before: CloudProvider, changes: list[IdentityChange]
) -> None:
    after = {change.field: change.after for change in changes}
    name = after.get("name") or before.name
    parent = after.get("parent", before.body["parent_provider_uuid"])
    try:
        server.update_provider(before.body["uuid"], name, parent)
    except ResourceProviderUpdateConflict as error:
        command = f"roost provider show {shlex.quote(name)}"
        raise ResourceProviderUpdateConflict(with_next(str(error), command)) from error


def _written(
    server: Administration, before: CloudProvider, changes: list[EditChange]
) -> Iterator[EditChange]:
    uuid: str = before.body["uuid"]
    generation: int = before.body["generation"]
    for change in changes:
        if isinstance(change, IdentityChange):
            continue
        try:
            generation, _ = server.replace(uuid, generation, change.kind.plural, change.after)
        except InventoryInUse as error:
            removed = sorted(change.before.keys() - change.after.keys())
            held = ", ".join(f"{name} {before.used.get(name, 0)}" for name in removed)
            raise InventoryInUse(
                with_next(
                    f"{before.name} keeps its inventory: consumers hold {held}. "
                    "Move or delete them.",
                    f"roost consumer list --provider {provider_argument(before.body)}",
                )
            ) from error
        yield change


def _inventories(before: CloudProvider, edit: ProviderEdit) -> dict[str, dict[str, Any]]:
    """The inventories after an edit."""
    after = {name: dict(fields) for name, fields in before.inventories.items()}
    for assignment in edit.assignments:
        fields = after.setdefault(assignment.resource_class, {})
        fields[assignment.field] = assignment.value
    for name, fields in after.items():
        if "total" not in fields:
            raise NotConfigured(
                with_next(
                    f"{before.name} has no inventory of {name}, so its total is needed as well.",
                    f"roost provider set {provider_argument(before.body)} --inventory {name}=TOTAL",
                )
            )
    return {name: fields for name, fields in after.items() if name not in edit.removed_inventories}
