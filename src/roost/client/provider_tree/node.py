"""A provider in a forest, and its snapshot."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

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
