"""What the changes of a what-if need from the tables, besides the forest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.changes import AddTrees, Change, ChangeInventory, Release, named_provider
from roost.model.consumers import ConsumerAllocations
from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.service.errors import ErrorCode, NotFound
from roost.service.provider_references import resolve_provider
from roost.store import allocations, inventories


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What changes need from the tables. Facts that stay equal are those of a forest in between."""

    # By the name or uuid that the client sent. The root of a tree to copy is there by its uuid.
    providers: Mapping[str, Provider]
    # Generation and inventories by provider, where an inventory changes.
    inventories: Mapping[str, tuple[int, Mapping[str, Inventory]]]
    # By consumer, where one releases what it holds.
    holdings: Mapping[str, ConsumerAllocations]

    def __or__(self, other: ChangeFacts) -> ChangeFacts:
        return ChangeFacts(
            {**self.providers, **other.providers},
            {**self.inventories, **other.inventories},
            {**self.holdings, **other.holdings},
        )


NO_FACTS = ChangeFacts({}, {}, {})


def read_facts(connection: Connection, change: Change, known: ChangeFacts) -> ChangeFacts:
    """The facts for one change; `NotFound` if its provider or consumer does not exist.

    `known` has the facts for earlier changes.
    """
    providers: dict[str, Provider] = {}
    stored: dict[str, tuple[int, Mapping[str, Inventory]]] = {}
    holdings: dict[str, ConsumerAllocations] = {}
    reference = named_provider(change)
    if reference is not None:
        providers[reference] = known.providers.get(reference) or resolve_provider(
            connection, reference
        )
    if isinstance(change, AddTrees):
        root = providers[change.like].root_uuid
        providers[root] = resolve_provider(connection, root)
    elif isinstance(change, ChangeInventory):
        uuid = providers[change.provider].uuid
        stored[uuid] = inventories.provider_inventories(connection, uuid) or (0, {})
    elif isinstance(change, Release):
        holdings[change.consumer] = _holding(connection, change.consumer)
    return ChangeFacts(providers, stored, holdings)


def _holding(connection: Connection, consumer: str) -> ConsumerAllocations:
    found = allocations.consumer_allocations(connection, consumer)
    if found is None:
        raise NotFound(
            f"Consumer {consumer} holds nothing, so it has nothing to release. "
            "`roost consumer list` lists consumers that hold something.",
            ErrorCode.NO_SUCH_CONSUMER,
        )
    return found
