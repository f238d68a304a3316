"""Writing a difference to the server, one provider and one kind at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from roost.client.drivers.driver import Allocations
from roost.client.errors import (
    ReshapeFailed,
    ResourceProviderCreationFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.difference import (
    Change,
    Creation,
    Deletion,
    Difference,
    Kind,
    has_changed,
)
from roost.client.reporting.placement import Placement, ProviderExists
from roost.client.reporting.reading import TreeReader, set_associations
from roost.client.reporting.vocabulary import Vocabulary


class TreeWriter(Protocol):
    """Makes a difference true on the server.

    A server that takes whole trees needs one request for it; `StepwiseWriter` needs a request
    for each step, and works with any placement server.
    """

    def write(
        self,
        known: ProviderTree,
        wanted: ProviderTree,
        plan: Difference,
        allocations: Allocations | None,
    ) -> None:
        """Carry out the plan, which leads from `known` to `wanted`.

        `known` follows each step that succeeded. With allocations, even none, inventories are
        replaced together with these. The first failure ends it; nothing is rolled back.
        """
        ...


class StepwiseWriter:
    """Creates parents first, reshapes, deletes leaves first, then replaces what has changed.

    Nothing is replaced but what the plan changes, and only if it still is what the plan says
    it was: otherwise `ResourceProviderUpdateConflict`, and whoever planned has to look again.
    """

    def __init__(self, placement: Placement, reader: TreeReader) -> None:
        self._placement = placement
        self._reader = reader
        self._vocabulary = Vocabulary(placement)
        self._replace: dict[Kind, Callable[[ProviderTree, Change], None]] = {
            Kind.INVENTORY: self._replace_inventory,
            Kind.AGGREGATES: self._replace_aggregates,
            Kind.TRAITS: self._replace_traits,
        }

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
            changes = plan.changes
            if allocations is not None:
                changes = self._reshape(known, plan, allocations, found)
            for deletion in plan.deletions:
                self._delete(known, deletion, reshaped=allocations is not None)
            self._change(known, changes, found)
        except (ResourceProviderUpdateFailed, ReshapeFailed):
            # A name that was known may have been deleted, and be the reason.
            self._vocabulary.forget()
            raise

    def _create(self, known: ProviderTree, wanted: ProviderTree, creation: Creation) -> bool:
        """Create a provider, or load it if it is there already; tells whether it is new."""
        uuid, name, parent_uuid = creation.uuid, creation.name, creation.parent_uuid
        try:
            body = self._placement.create_provider(uuid, name, parent_uuid)
            created = True
        except ProviderExists as error:
            found = self._placement.provider(uuid)
            if found is None:
                # It was there, and is gone again.
                raise _conflict(uuid) from error
            actual = found["parent_provider_uuid"]
            if parent_uuid is not None and actual != parent_uuid:
                raise ResourceProviderCreationFailed(
                    f"Provider {uuid} exists already, below {actual} instead of {parent_uuid}",
                    request_id=error.request_id,
                    provider_uuid=uuid,
                ) from error
            body = found
            created = False
        if parent_uuid is None:
            known.new_root(name, uuid, body["generation"])
        else:
            known.new_child(name, parent_uuid, uuid, body["generation"])
        if not created:
            set_associations(known, uuid, self._reader.associations(uuid))
        wanted.update_inventory(uuid, wanted.data(uuid).inventory, known.data(uuid).generation)
        return created

    def _reshape(
        self, known: ProviderTree, plan: Difference, allocations: Allocations, found: set[str]
    ) -> tuple[Change, ...]:
        """Replace inventories and allocations at once; the changes that are left to do.

        Inventories that do not change are not sent: that would move the generations of
        providers, shared ones among them, with which others are working.
        """
        changes = [change for change in plan.changes if change.kind is Kind.INVENTORY]
        for change in changes:
            if change.uuid in found:
                _demand_unchanged(change, change.kind.of(known.data(change.uuid)))
        self._vocabulary.ensure_classes(_classes(changes))
        wanted = {change.uuid: change.after for change in changes}
        wanted |= {
            deletion.uuid: {} for deletion in plan.deletions if known.has_inventory(deletion.uuid)
        }
        if not wanted:
            # The server wants to see some inventory, even if only allocations move.
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
        rest = tuple(change for change in plan.changes if change.kind is not Kind.INVENTORY)
        for uuid in dict.fromkeys(change.uuid for change in rest):
            set_associations(known, uuid, self._reader.associations(uuid))
            if uuid in wanted and known.has_inventory_changed(uuid, wanted[uuid]):
                raise _conflict(uuid)
        return rest

    def _delete(self, known: ProviderTree, deletion: Deletion, *, reshaped: bool) -> None:
        """Delete a provider, unless somebody has put something on it that nobody has seen yet."""
        # A deletion carries no generation, so look; a reshape has looked, and moved it.
        if not (reshaped and known.has_inventory(deletion.uuid)):
            current = self._placement.provider(deletion.uuid)
            if current and current["generation"] != known.data(deletion.uuid).generation:
                raise _conflict(deletion.uuid)
        self._placement.delete_provider(deletion.uuid)
        known.remove(deletion.uuid)

    def _change(self, known: ProviderTree, changes: Iterable[Change], found: set[str]) -> None:
        changes = [
            change
            for change in changes
            # What was found instead of created may be as it is wanted already.
            if change.uuid not in found
            or has_changed(known, change.uuid, change.kind, change.after)
        ]
        self._vocabulary.ensure_classes(_classes(changes))
        traits = {name for change in changes if change.kind is Kind.TRAITS for name in change.after}
        for change in changes:
            if change.kind is Kind.TRAITS:
                # All at once, but not before they are needed: a trait that cannot be had is no
                # reason to have no inventory.
                self._vocabulary.ensure_traits(traits)
            _demand_unchanged(change, change.kind.of(known.data(change.uuid)))
            self._replace[change.kind](known, change)

    def _replace_inventory(self, known: ProviderTree, change: Change) -> None:
        generation, inventory = self._placement.put_inventories(
            change.uuid, _generation(known, change), change.after
        )
        known.update_inventory(change.uuid, inventory, generation)

    def _replace_aggregates(self, known: ProviderTree, change: Change) -> None:
        # Before 1.19 others can change aggregates without moving the generation: look first.
        _, aggregates = self._placement.aggregates(change.uuid)
        _demand_unchanged(change, aggregates)
        generation, aggregates = self._placement.put_aggregates(
            change.uuid, _generation(known, change), change.after
        )
        known.update_aggregates(change.uuid, aggregates, generation)

    def _replace_traits(self, known: ProviderTree, change: Change) -> None:
        generation, traits = self._placement.put_traits(
            change.uuid, _generation(known, change), change.after
        )
        known.update_traits(change.uuid, traits, generation)


def _classes(changes: Iterable[Change]) -> Iterable[str]:
    return (name for change in changes if change.kind is Kind.INVENTORY for name in change.after)


def _generation(known: ProviderTree, change: Change) -> int:
    generation = known.data(change.uuid).generation
    assert generation is not None, "what is known of a provider includes its generation"
    return generation


def _demand_unchanged(change: Change, current: Any) -> None:
    if current != change.before:
        raise _conflict(change.uuid)


def _conflict(uuid: str) -> ResourceProviderUpdateConflict:
    return ResourceProviderUpdateConflict(
        f"Provider {uuid} was changed by somebody else meanwhile", provider_uuid=uuid
    )
