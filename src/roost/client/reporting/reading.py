"""Reading a host's tree and its sharing providers from the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from roost.client.errors import (
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    UnreadableAnswer,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.placement import Associations, Placement, ProviderBody

# Other writers may come between the reads of one provider; a busy one gets this many chances.
CONSISTENT_READ_ATTEMPTS = 4


class TreeReader:
    """Reads trees. What is known and has kept its generation is not asked for again."""

    def __init__(self, placement: Placement, concurrency: int = 4) -> None:
        self._placement = placement
        self._concurrency = concurrency

    def read(self, uuid: str, known: ProviderTree | None = None) -> ProviderTree:
        """The tree of a provider, with its sharing providers as lone roots; empty if not there.

        Sharing providers have the sharing trait and an aggregate in common with some member.
        Their own relatives and partners are not followed.

        Of providers in `known` that have kept their generation, nothing is read again.
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
        lenders = [
            provider
            for provider in self._placement.sharing_providers(aggregates)
            if not tree.exists(provider["uuid"])
        ]
        for provider in lenders:
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
        self._fill(tree, lenders, known)
        return tree

    def associations(self, uuid: str) -> Associations:
        """All that hangs on one provider, as of one generation.

        If others keep writing meanwhile, the generation is the oldest of those seen: a write
        based on it is then refused, and nobody's change is overwritten unseen.
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
                    same = Associations(
                        generation,
                        before.inventory,
                        frozenset(before.aggregates),
                        frozenset(before.traits),
                    )
                    set_associations(tree, uuid, same)
                    continue
            changed.append(uuid)
        for uuid, associations in self._all_associations(changed).items():
            set_associations(tree, uuid, associations)

    def _all_associations(self, uuids: Sequence[str]) -> Mapping[str, Associations]:
        if len(uuids) <= 1:
            return {uuid: self.associations(uuid) for uuid in uuids}
        with ThreadPoolExecutor(min(self._concurrency, len(uuids))) as executor:
            return dict(zip(uuids, executor.map(self.associations, uuids), strict=True))


@contextmanager
def demanding_existence(uuid: str) -> Iterator[None]:
    """What was listed and is not there any more was deleted meanwhile: that is a conflict."""
    try:
        yield
    except ResourceProviderRetrievalFailed as error:
        if error.status != 404:
            raise
        raise ResourceProviderUpdateConflict(
            f"Provider {uuid} was deleted by somebody else meanwhile", provider_uuid=uuid
        ) from error


def set_associations(tree: ProviderTree, uuid: str, associations: Associations) -> None:
    """Put what was read onto a provider of a tree."""
    tree.update_inventory(uuid, associations.inventory, associations.generation)
    tree.update_aggregates(uuid, associations.aggregates)
    tree.update_traits(uuid, associations.traits)
