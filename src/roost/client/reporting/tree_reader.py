"""The reader of trees: a host's tree and its sharing providers, from the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from roost.client.errors import (
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    UnreadableAnswer,
)
from roost.client.parallel import in_order
from roost.client.placement import Placement, ProviderBody
from roost.client.placement.answers import Inventories
from roost.client.provider_tree import ProviderTree

READ_CONCURRENCY = 4
"""The number of providers that are read at once, unless a caller gives another one."""

CONSISTENT_READ_ATTEMPTS = 4
"""Another writer may change a provider between its reads; then they are repeated."""


@dataclass(frozen=True, slots=True)
class Associations:
    """The inventory, aggregates and traits of one provider, as of one generation."""

    generation: int
    inventory: Inventories
    aggregates: frozenset[str]
    traits: frozenset[str]


class TreeReader:
    """Reads trees; a provider that has kept its generation is not read again."""

    def __init__(self, placement: Placement, concurrency: int = READ_CONCURRENCY) -> None:
        self._placement = placement
        self._concurrency = concurrency

    def read(self, uuid: str, known: ProviderTree | None = None) -> ProviderTree:
        """The tree of a provider, with its sharing providers as lone roots.

        The tree is empty if the server does not have the provider. A sharing provider has the
        sharing trait, and an aggregate in common with a member of the tree. Its own tree and its
        own sharing providers are not read.

        The associations of providers in `known` that have kept their generation are copied.
        """
        providers = self._placement.tree(uuid)
        tree = ProviderTree()
        try:
            tree.populate_from_iterable(providers)
        except ValueError as error:
            raise UnreadableAnswer(f"The server sent no tree for {uuid}: {error}") from error
        self._fill(tree, providers, known)
        aggregates = {
            aggregate
            for member in tree.get_provider_uuids()
            for aggregate in tree.data(member).aggregates
        }
        sharing = [
            provider
            for provider in self._placement.sharing_providers(aggregates)
            if not tree.exists(provider["uuid"])
        ]
        for provider in sharing:
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
        self._fill(tree, sharing, known)
        return tree

    def associations(self, uuid: str) -> Associations:
        """The associations of one provider, as of one generation.

        If another writer changes the provider in all attempts, the generation is the oldest one
        that was read. The server refuses a write that is based on it, so no change is lost.
        """
        with demanding_existence(uuid):
            return self._associations(uuid)

    def _associations(self, uuid: str) -> Associations:
        for _ in range(CONSISTENT_READ_ATTEMPTS):
            first, inventory = self._placement.inventories(uuid)
            second, aggregates = self._placement.aggregates(uuid)
            third, traits = self._placement.traits(uuid)
            if first == second == third:
                break
        return Associations(min(first, second, third), inventory, aggregates, traits)

    def _fill(
        self, tree: ProviderTree, providers: Iterable[ProviderBody], known: ProviderTree | None
    ) -> None:
        changed = []
        for provider in providers:
            uuid, generation = provider["uuid"], provider["generation"]
            if known is not None and known.exists(uuid):
                before = known.data(uuid)
                if before.generation == generation:
                    unchanged = Associations(
                        generation,
                        before.inventory,
                        frozenset(before.aggregates),
                        frozenset(before.traits),
                    )
                    set_associations(tree, uuid, unchanged)
                    continue
            changed.append(uuid)
        for uuid, associations in self._all_associations(changed).items():
            set_associations(tree, uuid, associations)

    def _all_associations(self, uuids: Sequence[str]) -> Mapping[str, Associations]:
        found = in_order(uuids, self.associations, self._concurrency)
        return dict(zip(uuids, found, strict=True))


@contextmanager
def demanding_existence(uuid: str) -> Iterator[None]:
    """Turn "not found" into a conflict: another writer deleted a provider that was listed."""
    try:
        yield
    except ResourceProviderRetrievalFailed as error:
        if error.status != 404:
            raise
        raise ResourceProviderUpdateConflict(
            f"Provider {uuid} was deleted by another writer meanwhile", provider_uuid=uuid
        ) from error


def set_associations(tree: ProviderTree, uuid: str, associations: Associations) -> None:
    """Set the associations of a provider in a tree."""
    tree.update_inventory(uuid, associations.inventory, associations.generation)
    tree.update_aggregates(uuid, associations.aggregates)
    tree.update_traits(uuid, associations.traits)
