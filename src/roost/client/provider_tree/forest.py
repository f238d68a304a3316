"""A forest of providers with an index by uuid and by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from roost.client.provider_tree.node import ProviderData, ProviderNode


class ProviderForest:
    """Any number of trees, made of snapshots in which parents come before their children.

    Uuids are unique, names need not be. No method recurses, so a tree may have any depth.
    """

    def __init__(self, providers: Iterable[ProviderData] = ()) -> None:
        self.roots: dict[str, ProviderNode] = {}
        # Both indexes keep the order of additions, so parents come before their children.
        self._by_uuid: dict[str, ProviderNode] = {}
        self._by_name: dict[str, dict[str, ProviderNode]] = {}
        self._numbers = count()
        for provider in providers:
            self.add(ProviderNode(*provider))

    def __deepcopy__(self, memo: dict[int, Any]) -> ProviderForest:
        return ProviderForest(self.snapshot(memo))

    def snapshot(self, memo: dict[int, Any] | None = None) -> list[ProviderData]:
        """Snapshots of all providers, parents before their children."""
        return [provider.data(memo) for provider in self._by_uuid.values()]

    def tree(self, root: ProviderNode) -> ProviderForest:
        """A copy of one tree."""
        return ProviderForest([provider.data() for provider in top_down(root)])

    def __iter__(self) -> Iterator[ProviderNode]:
        """All providers, tree by tree, each from the top down."""
        return (provider for root in self.roots.values() for provider in top_down(root))

    # -- finding

    def find(self, name_or_uuid: str | None) -> ProviderNode | None:
        """The provider with this uuid or name; `None` if there is none.

        A root with the uuid comes first, then the youngest root with the name, then the first
        child in the order of `_rank`.
        """
        if name_or_uuid is None:
            return None
        by_uuid = self._by_uuid.get(name_or_uuid)
        by_name = self._by_name.get(name_or_uuid)
        if by_name is None:
            return by_uuid
        if by_uuid is not None and by_uuid.is_root:
            return by_uuid
        if by_uuid is not None:
            by_name = by_name | {by_uuid.uuid: by_uuid}
        matches = list(by_name.values())
        if len(matches) == 1:
            return matches[0]
        roots = [provider for provider in matches if provider.is_root]
        return roots[-1] if roots else min(matches, key=lambda match: self._rank(match, by_uuid))

    def root_of(self, provider: ProviderNode) -> ProviderNode:
        """The root of the tree that the provider is in."""
        *_, root = self._upwards(provider)
        return root

    def _upwards(self, provider: ProviderNode) -> Iterator[ProviderNode]:
        yield provider
        while provider.parent_uuid is not None:
            provider = self._by_uuid[provider.parent_uuid]
            yield provider

    def _rank(self, provider: ProviderNode, by_uuid: ProviderNode | None) -> list[int]:
        """The rank of a provider in a search: roots by age, then each tree depth first.

        The search visits siblings by age, except that a sibling with the uuid comes first.
        """
        numbers = [ancestor.number for ancestor in self._upwards(provider)]
        if provider is by_uuid:
            numbers[0] = -1
        return numbers[::-1]

    # -- changing

    def add(self, provider: ProviderNode) -> None:
        """Add a provider without children, whose parent is in the forest."""
        uuid, parent_uuid = provider.uuid, provider.parent_uuid
        if uuid in self._by_uuid:
            raise ValueError(f"There is a provider with the uuid {uuid} already")
        siblings = self.roots if parent_uuid is None else self._by_uuid[parent_uuid].children
        provider.number = next(self._numbers)
        siblings[uuid] = self._by_uuid[uuid] = provider
        self._by_name.setdefault(provider.name, {})[uuid] = provider

    def remove(self, provider: ProviderNode) -> None:
        """Remove a provider and all below it."""
        parent_uuid = provider.parent_uuid
        siblings = self.roots if parent_uuid is None else self._by_uuid[parent_uuid].children
        del siblings[provider.uuid]
        for removed in top_down(provider):
            del self._by_uuid[removed.uuid]
            namesakes = self._by_name[removed.name]
            del namesakes[removed.uuid]
            if not namesakes:
                del self._by_name[removed.name]

    def move(self, provider: ProviderNode, parent: ProviderNode) -> None:
        """Put a provider, with all below it, below another parent."""
        if any(ancestor is provider for ancestor in self._upwards(parent)):
            raise ValueError(
                f"Provider {provider.name} cannot be moved below {parent.name}, which is below it"
            )
        members = list(top_down(provider))
        self.remove(provider)
        provider.parent_uuid = parent.uuid
        # The members come last in both indexes now, so they still come after their parents.
        for member in members:
            member.children = {}
            self.add(member)

    def replace(self, arriving: Mapping[str, ProviderNode]) -> None:
        """Add providers. Each replaces the provider with its uuid and all below that.

        A missing parent is an error, and the forest stays as it is. Providers that are each
        other's ancestors are an error, too, after the remaining providers are added.
        """
        self._demand_parents(arriving)
        in_order = _parents_first(arriving)
        for provider in in_order:
            replaced = self._by_uuid.get(provider.uuid)
            if replaced is not None:
                self.remove(replaced)
            self.add(provider)
        left = arriving.keys() - {provider.uuid for provider in in_order}
        if left:
            raise ValueError(
                "Providers cannot be added because some of them are each other's ancestors: "
                f"{_listed(uuid for uuid in arriving if uuid in left)}"
            )

    def _demand_parents(self, arriving: Mapping[str, ProviderNode]) -> None:
        parents = dict.fromkeys(provider.parent_uuid for provider in arriving.values())
        missing = [
            parent
            for parent in parents
            if parent is not None and parent not in arriving and not self._stays(parent, arriving)
        ]
        if missing:
            raise ValueError(
                "Providers cannot be added because their parents are missing: "
                f"{_listed(missing)}. Give the parents as well"
            )

    def _stays(self, uuid: str, arriving: Mapping[str, ProviderNode]) -> bool:
        provider = self._by_uuid.get(uuid)
        return provider is not None and not any(
            ancestor.uuid in arriving for ancestor in self._upwards(provider)
        )


def top_down(provider: ProviderNode) -> Iterator[ProviderNode]:
    """The provider and all below it, parents before their children, depth first."""
    waiting = [provider]
    while waiting:
        provider = waiting.pop()
        yield provider
        waiting.extend(reversed(provider.children.values()))


def _parents_first(providers: Mapping[str, ProviderNode]) -> list[ProviderNode]:
    """The providers in an order in which parents come first; members of a cycle are left out."""
    found: list[ProviderNode] = []
    children: dict[str, list[ProviderNode]] = {}
    for provider in providers.values():
        if provider.parent_uuid is not None and provider.parent_uuid in providers:
            children.setdefault(provider.parent_uuid, []).append(provider)
        else:
            found.append(provider)
    for provider in found:  # the loop extends `found`
        found.extend(children.get(provider.uuid, ()))
    return found


def _listed(uuids: Iterable[str]) -> str:
    return ", ".join(map(str, uuids))
