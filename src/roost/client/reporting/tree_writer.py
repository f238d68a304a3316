"""Writers of a difference: make the server's tree equal to the wanted one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from roost.client.drivers.driver import Allocations
from roost.client.errors import (
    ProviderExists,
    ReshapeFailed,
    ResourceProviderCreationFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
)
from roost.client.placement import Placement, ProviderBody
from roost.client.provider_tree import ProviderTree
from roost.client.reading.cloud_reader import ASSOCIATIONS, CloudReader, demanding_existence
from roost.client.reporting.difference import has_changed
from roost.client.reporting.host_cache import KnownNames
from roost.model.trees.difference import (
    AssociationKind,
    Difference,
    ProviderChange,
    ProviderCreation,
    ProviderDeletion,
    ProviderMove,
)

_UPDATES: Mapping[AssociationKind, Callable[[ProviderTree, str, Any, int], Any]] = {
    AssociationKind.INVENTORY: ProviderTree.update_inventory,
    AssociationKind.AGGREGATES: ProviderTree.update_aggregates,
    AssociationKind.TRAITS: ProviderTree.update_traits,
}


class TreeWriter(Protocol):
    """Writes a difference to the server.

    `StepwiseWriter` sends a request for each step, and works with any placement server. A server
    that takes whole trees would need one request.
    """

    def write(
        self,
        known: ProviderTree,
        wanted: ProviderTree,
        plan: Difference,
        allocations: Allocations | None,
    ) -> None:
        """Carry out the plan, which leads from `known` to `wanted`.

        The writer updates `known` after each step. If there are allocations, even an empty
        mapping, inventories are replaced together with them. The first failure ends the write.
        Earlier steps stay.
        """
        ...


class StepwiseWriter:
    """Creates and moves parents first, reshapes, deletes leaves first, then replaces the rest.

    The writer replaces only what the plan changes, and only if the server still has what the plan
    replaces. Otherwise it raises `ResourceProviderUpdateConflict`: the caller reads the tree again
    and makes a new plan.
    """

    def __init__(self, placement: Placement, reader: CloudReader, known_names: KnownNames) -> None:
        self._placement = placement
        self._reader = reader
        self._known_names = known_names

    def write(
        self,
        known: ProviderTree,
        wanted: ProviderTree,
        plan: Difference,
        allocations: Allocations | None,
    ) -> None:
        """Carry out the plan step by step."""
        try:
            found = {
                creation.uuid
                for creation in plan.creations
                if not self._create(known, wanted, creation)
            }
            for move in plan.moves:
                self._move(known, move)
            changes = plan.changes
            if allocations is not None:
                changes = self._reshape(known, plan, allocations, found)
            for deletion in plan.deletions:
                self._delete(known, deletion, reshaped=allocations is not None)
            self._change(known, changes, found)
        except (ResourceProviderUpdateFailed, ReshapeFailed):
            # Another client may have deleted a name that was known, and caused the failure.
            self._known_names.forget()
            raise

    def _create(
        self, known: ProviderTree, wanted: ProviderTree, creation: ProviderCreation
    ) -> bool:
        """Create a provider, or load it if it exists; returns whether it is new."""
        uuid, name, parent_uuid = creation.uuid, creation.name, creation.parent_uuid
        try:
            body = self._placement.create_provider(uuid, name, parent_uuid)
            created = True
        except ProviderExists as error:
            body = self._existing(creation, error)
            created = False
        if parent_uuid is None:
            known.new_root(name, uuid, body["generation"])
        else:
            known.new_child(name, parent_uuid, uuid, body["generation"])
        if not created:
            self._read_again(known, uuid)
        wanted.update_inventory(uuid, wanted.data(uuid).inventory, known.data(uuid).generation)
        return created

    def _read_again(self, known: ProviderTree, uuid: str) -> None:
        with demanding_existence(uuid):
            self._reader.provider({"uuid": uuid}, ASSOCIATIONS).put_into(known)

    def _existing(self, creation: ProviderCreation, error: ProviderExists) -> ProviderBody:
        """The existing provider with the uuid of a creation, if its parent is the wanted one."""
        uuid, parent_uuid = creation.uuid, creation.parent_uuid
        found = self._placement.existing_provider(uuid)
        if found is None:
            # Another writer has deleted the provider since.
            raise _conflict(uuid) from error
        actual = found["parent_provider_uuid"]
        if parent_uuid is not None and actual != parent_uuid:
            raise ResourceProviderCreationFailed(
                f"Provider {uuid} exists already, below {actual} instead of {parent_uuid}",
                request_id=error.request_id,
                provider_uuid=uuid,
            ) from error
        return found

    def _move(self, known: ProviderTree, move: ProviderMove) -> None:
        """Move a provider, unless another writer has moved or renamed it since it was read."""
        # The request carries no generation, and it has to name the provider.
        current = self._placement.provider(move.uuid)
        if (
            current is None
            or current["parent_provider_uuid"] != move.before_uuid
            or current["name"] != move.name
        ):
            raise _conflict(move.uuid)
        self._placement.move_provider(move.uuid, move.name, move.parent_uuid)
        known.move(move.uuid, move.parent_uuid)

    def _reshape(
        self, known: ProviderTree, plan: Difference, allocations: Allocations, found: set[str]
    ) -> tuple[ProviderChange, ...]:
        """Replace inventories and allocations in one step; returns the changes that are left.

        Unchanged inventories are not sent: the request would move the generations of providers
        that other writers are working with.
        """
        changes = [change for change in plan.changes if change.kind is AssociationKind.INVENTORY]
        for change in changes:
            if change.uuid in found:
                _require_unchanged(change, change.kind.of(known.data(change.uuid)))
        self._known_names.ensure_classes(_classes(changes))
        wanted = {change.uuid: change.after for change in changes}
        wanted |= {
            deletion.uuid: {} for deletion in plan.deletions if known.has_inventory(deletion.uuid)
        }
        if not wanted:
            # The server requires an inventory, even if only allocations change.
            first = known.get_provider_uuids()[0]
            wanted[first] = known.data(first).inventory
        self._placement.reshape(
            {
                uuid: {
                    "resource_provider_generation": known.data(uuid).generation,
                    "inventories": inventory,
                }
                for uuid, inventory in wanted.items()
            },
            allocations,
        )
        rest = tuple(
            change for change in plan.changes if change.kind is not AssociationKind.INVENTORY
        )
        for uuid in dict.fromkeys(change.uuid for change in rest):
            self._read_again(known, uuid)
            if uuid in wanted and known.has_inventory_changed(uuid, wanted[uuid]):
                raise _conflict(uuid)
        return rest

    def _delete(self, known: ProviderTree, deletion: ProviderDeletion, *, reshaped: bool) -> None:
        """Delete a provider, unless another writer has changed it since it was read."""
        # A deletion carries no generation, so the writer reads that first. A reshape that emptied
        # the provider has compared the generation already, and changed it.
        if not (reshaped and known.has_inventory(deletion.uuid)):
            current = self._placement.provider(deletion.uuid)
            if current and current["generation"] != known.data(deletion.uuid).generation:
                raise _conflict(deletion.uuid)
        self._placement.delete_provider(deletion.uuid)
        known.remove(deletion.uuid)

    def _change(
        self, known: ProviderTree, changes: Iterable[ProviderChange], found: set[str]
    ) -> None:
        changes = [
            change
            for change in changes
            # A provider that existed before may already have what is wanted.
            if change.uuid not in found
            or has_changed(known, change.uuid, change.kind, change.after)
        ]
        self._known_names.ensure_classes(_classes(changes))
        traits = {
            name
            for change in changes
            if change.kind is AssociationKind.TRAITS
            for name in change.after
        }
        for change in changes:
            if change.kind is AssociationKind.TRAITS:
                # After the first inventories: these are written even if a trait cannot be created.
                self._known_names.ensure_traits(traits)
            _require_unchanged(change, change.kind.of(known.data(change.uuid)))
            self._replace(known, change)

    def _replace(self, known: ProviderTree, change: ProviderChange) -> None:
        if change.kind is AssociationKind.AGGREGATES:
            # Clients before 1.19 change aggregates without a new generation.
            _require_unchanged(change, self._placement.aggregates(change.uuid)[1])
        generation, found = self._placement.replace(
            change.uuid, _generation(known, change), change.kind.plural, change.after
        )
        _UPDATES[change.kind](known, change.uuid, found, generation)


def _classes(changes: Iterable[ProviderChange]) -> Iterable[str]:
    return (
        name
        for change in changes
        if change.kind is AssociationKind.INVENTORY
        for name in change.after
    )


def _generation(known: ProviderTree, change: ProviderChange) -> int:
    generation = known.data(change.uuid).generation
    assert generation is not None, "a provider that was read has a generation"
    return generation


def _require_unchanged(change: ProviderChange, current: Any) -> None:
    if current != change.before:
        raise _conflict(change.uuid)


def _conflict(uuid: str) -> ResourceProviderUpdateConflict:
    return ResourceProviderUpdateConflict(
        f"Provider {uuid} was changed by another writer meanwhile", provider_uuid=uuid
    )
