"""The cache of a reporter: the tree of each host as the server last had it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from roost.client.provider_tree import ProviderTree
from roost.client.reporting.tree_reader import TreeReader
from roost.model.identifiers import new_uuid

NO_GENERATION = -1
"""A generation that no provider has, so that a provider with it is read again."""


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
