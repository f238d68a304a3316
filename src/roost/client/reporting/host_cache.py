"""What the reporter keeps of the server: the trees of hosts, and known names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from threading import Lock

from roost.client.placement import Placement
from roost.client.provider_tree import ProviderTree
from roost.client.reading.cloud_reader import CloudReader
from roost.model.identifiers import is_custom, new_uuid

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
        reader: CloudReader,
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
            host = self.put(uuid, self._reader.tree(uuid))
        elif host.stale or now - host.refreshed_at >= self._refresh_seconds > 0:
            host = self.put(uuid, self._reader.tree(uuid, host.tree), host.reread_at)
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
