"""A forest of providers with an index by uuid and by name."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, TypeAlias

LEVELS_MAX = 50
"""How many levels a tree may have. Trees of hosts have three to five.

Commands nest a tree in YAML and JSON as deep as it is. Each level takes two levels of YAML, and
its reader calls itself three times for each of these; Python allows about 1000 calls.
"""


def providers_too_deep(parents: Mapping[str, str | None]) -> list[str]:
    """The providers on the first level beyond the limit, out of each provider's parent.

    >>> chain = {str(number): str(number - 1) for number in range(1, 60)}
    >>> providers_too_deep({"0": None, **chain})
    ['50']
    """
    children: dict[str | None, list[str]] = {}
    for provider, parent in parents.items():
        children.setdefault(parent, []).append(provider)
    level = children.get(None, [])
    for _ in range(LEVELS_MAX):
        level = [child for provider in level for child in children.get(provider, ())]
    return level


InventoriesByClass: TypeAlias = dict[str, dict[str, Any]]
"""Resource class -> fields of the inventory, as the API names them."""

AssignedResources: TypeAlias = dict[str, set[Any]]
"""Resource class -> objects that the driver assigns; the client never sends these."""

# Copying a value of these types returns the same object. A dict of them needs no deep copy.
_PLAIN = frozenset({bool, float, int, str, type(None)})


class ProviderData(NamedTuple):
    """A snapshot of a provider. The caller may change the values in it."""

    uuid: str
    name: str
    generation: int | None
    parent_uuid: str | None
    inventory: InventoriesByClass
    traits: set[str]
    aggregates: set[str]
    resources: AssignedResources


@dataclass(slots=True, eq=False)
class ProviderNode:
    """A provider in a forest. Only the forest moves it."""

    uuid: str
    name: str
    generation: int | None = None
    parent_uuid: str | None = None
    inventory: InventoriesByClass = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    resources: AssignedResources = field(default_factory=dict)
    children: dict[str, ProviderNode] = field(default_factory=dict, repr=False)
    # The forest counts the providers that it adds. The number orders siblings, and roots.
    number: int = field(default=0, repr=False)

    @property
    def is_root(self) -> bool:
        """Whether the provider has no parent."""
        return self.parent_uuid is None

    def data(self, memo: dict[int, Any] | None = None) -> ProviderData:
        """A snapshot that shares no object with the provider; `memo` is that of a deep copy."""
        return ProviderData(
            self.uuid,
            self.name,
            self.generation,
            self.parent_uuid,
            copied_inventory(self.inventory, memo),
            self.traits.copy(),
            self.aggregates.copy(),
            copy.deepcopy(self.resources, memo) if self.resources else {},
        )

    def has_inventory_changed(self, inventory: InventoriesByClass) -> bool:
        """Whether the inventory has other classes or other values than the provider's.

        A field that the inventory leaves out counts as equal, because the server fills it in.
        """
        if not isinstance(inventory, Mapping):
            raise TypeError(
                f"The inventory of provider {self.name} must be a dict of resource classes "
                f"(an empty one for none), not {inventory!r}"
            )
        return inventory.keys() != self.inventory.keys() or any(
            name not in self.inventory[resource_class]
            or self.inventory[resource_class][name] != value
            for resource_class, fields in inventory.items()
            for name, value in fields.items()
        )


def copied_inventory(
    inventory: InventoriesByClass, memo: dict[int, Any] | None = None
) -> InventoriesByClass:
    """A deep copy, which is much cheaper than the general one if all fields are numbers."""
    return {
        resource_class: fields.copy() if _is_plain(fields) else copy.deepcopy(fields, memo)
        for resource_class, fields in inventory.items()
    }


def _is_plain(fields: dict[str, Any]) -> bool:
    return type(fields) is dict and _PLAIN.issuperset(map(type, fields.values()))


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
