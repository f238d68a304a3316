"""The reader of trees: a host's tree, its sharing providers and known names, from the server."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from roost.client.errors import (
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    UnreadableAnswer,
)
from roost.client.parallel import in_order
from roost.client.placement import Placement, ProviderBody
from roost.client.placement.answers import Inventories
from roost.client.provider_tree import ProviderTree
from roost.model.identifiers import is_custom, new_uuid

READ_CONCURRENCY = 4
"""The number of providers that are read at once, unless a caller gives another one."""

CONSISTENT_READ_ATTEMPTS = 4
"""Another writer may change a provider between its reads; then they are repeated."""

NO_GENERATION = -1
"""A generation that no provider has, so that a provider with it is read again."""


class KnownNames:
    """Creates names that the server does not know, and remembers those that it knows.

    One request asks for all new names of a flush. A name that is known is not asked for again.
    Reporters in several threads may share the names: one thread at a time asks and creates.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._classes: set[str] = set()
        self._traits: set[str] = set()
        self._lock = Lock()

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Create the resource classes among these that the server does not know."""
        with self._lock:
            missing = {name for name in names if is_custom(name)} - self._classes
            if not missing:
                return
            self._classes |= self._placement.known_resource_classes()
            for name in sorted(missing - self._classes):
                self._placement.create_resource_class(name)
                self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> None:
        """Create the traits among these that the server does not know."""
        with self._lock:
            for name in sorted(self._unknown(set(names))):
                self._placement.create_trait(name)
                self._traits.add(name)

    def unknown_traits(self, names: Set[str]) -> Set[str]:
        """The traits among these that the server does not know."""
        with self._lock:
            return self._unknown(names)

    def _unknown(self, traits: Set[str]) -> Set[str]:
        missing = traits - self._traits
        self._traits |= self._placement.known_traits(missing)
        return missing - self._traits

    def forget(self) -> None:
        """Ask for all names again: another client may have deleted one."""
        with self._lock:
            self._classes.clear()
            self._traits.clear()


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


@dataclass(slots=True)
class CachedHost:
    """The tree of a host, and when its generations were compared and all of it was read.

    A `stale` tree is compared with the server before it is used again.
    """

    tree: ProviderTree
    refreshed_at: float
    reread_at: float
    stale: bool = False

    def mark_stale(self, provider_uuid: str | None = None) -> None:
        """Have the tree compared with the server, and this provider read again."""
        self.stale = True
        self.tree.origin = new_uuid()
        if provider_uuid is not None and self.tree.exists(provider_uuid):
            inventory = self.tree.data(provider_uuid).inventory
            self.tree.update_inventory(provider_uuid, inventory, NO_GENERATION)


class HostCache:
    """Reads trees from the server, and keeps them.

    A tree is kept for `refresh_seconds`; then the generations are compared, and the providers
    that have changed are read again. After `reread_seconds` the whole tree is read again. 0 means
    never.
    """

    def __init__(
        self,
        reader: TreeReader,
        *,
        refresh_seconds: float,
        reread_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._reader = reader
        self._refresh_seconds = refresh_seconds
        self._reread_seconds = reread_seconds
        self._clock = clock
        self._hosts: dict[str, CachedHost] = {}

    def get(self, uuid: str) -> CachedHost | None:
        """The host as it was read last; `None` if it was not read."""
        return self._hosts.get(uuid)

    def fetch(self, uuid: str) -> ProviderTree:
        """A private copy of the tree of a host; an empty tree if the server does not have it."""
        now = self._clock()
        host = self._hosts.get(uuid)
        if host is None or now - host.reread_at >= self._reread_seconds > 0:
            host = self.put(uuid, self._reader.read(uuid))
        elif host.stale or now - host.refreshed_at >= self._refresh_seconds > 0:
            host = self.put(uuid, self._reader.read(uuid, host.tree), host.reread_at)
        return copy.deepcopy(host.tree)

    def put(self, uuid: str, tree: ProviderTree, reread_at: float | None = None) -> CachedHost:
        """Keep a tree that was read just now; all of it, unless another `reread_at` is given."""
        now = self._clock()
        tree.origin = new_uuid()
        host = CachedHost(tree, now, now if reread_at is None else reread_at)
        self._hosts[uuid] = host
        return host

    def mark_stale(self, uuid: str, provider_uuid: str | None = None) -> None:
        """Have the tree of a host compared with the server, and this provider read again."""
        if uuid in self._hosts:
            self._hosts[uuid].mark_stale(provider_uuid)

    def forget(self, uuid: str | None = None) -> None:
        """Drop the tree of a host, or all trees."""
        if uuid is None:
            self._hosts.clear()
        else:
            self._hosts.pop(uuid, None)
