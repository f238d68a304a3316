"""What the library tells of a server: providers, trees, candidates, claims. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from roost.client.claims.consumer_state import ResourcesByProvider
from roost.client.reading.cloud_provider import CloudProvider, CloudTree
from roost.client.reading.consumers import Holder
from roost.client.reading.inspection import INVENTORY_FIELDS
from roost.model.inventory import DEFAULTS, Inventory
from roost.model.trees.declaration import InventoryFields

AnyInventory: TypeAlias = Inventory | InventoryFields | int
"""An inventory: a value, its fields as the API names them, or its total alone."""


@dataclass(frozen=True, slots=True)
class ProviderReference:
    """A provider, by uuid and name."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A provider with all that it has, and what consumers hold of it."""

    uuid: str
    name: str
    generation: int
    """Moves with each change; a write that has an older one is refused."""
    parent: str | None
    """The uuid of the parent; `None` for a root."""
    root: str
    """The uuid of the root of its tree."""
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: Mapping[str, int] = field(default_factory=dict)
    """The amount of each resource class that all consumers together hold."""

    def free(self, resource_class: str) -> int:
        """How much of a resource class is left; nothing of a class without inventory.

        >>> vcpu = Inventory("VCPU", total=8, reserved=1)
        >>> host = ResourceProvider("u", "host", 0, None, "u", {"VCPU": vcpu}, used={"VCPU": 3})
        >>> host.free("VCPU")
        4
        """
        inventory = self.inventories.get(resource_class)
        if inventory is None:
            return 0
        return max(0, int(inventory.capacity) - self.used.get(resource_class, 0))


AnyProvider: TypeAlias = ResourceProvider | ProviderReference | str
"""A provider: a value, or its name or uuid."""


@dataclass(frozen=True, slots=True)
class ResourceTree:
    """A tree of providers, with the sharing providers of other trees that lend to it."""

    providers: tuple[ResourceProvider, ...]
    """All providers of the tree, parents first."""
    sharing: tuple[ResourceProvider, ...] = ()

    @property
    def root(self) -> ResourceProvider:
        """The provider without parent."""
        return self.providers[0]

    def children(self, provider: ResourceProvider) -> tuple[ResourceProvider, ...]:
        """The children of a provider."""
        return tuple(one for one in self.providers if one.parent == provider.uuid)

    def named(self, name: str) -> ResourceProvider:
        """The provider of this name in the tree; `KeyError` if there is none."""
        for provider in self.providers:
            if provider.name == name:
                return provider
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to satisfy a query: what each provider would give."""

    allocations: ResourcesByProvider
    """The amounts by the uuid of the provider and the resource class."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The uuids of the providers that satisfy each group; the group without a name is empty."""
    roots: tuple[str, ...] = ()
    """The uuids of the roots of these providers."""

    def request(self) -> dict[str, Any]:
        """The candidate as the API writes it: the beginning of a body that claims it."""
        body: dict[str, Any] = {
            "allocations": {
                provider: {"resources": dict(amounts)}
                for provider, amounts in self.allocations.items()
            }
        }
        if self.groups:
            body["mappings"] = {name: list(uuids) for name, uuids in self.groups.items()}
        return body


AnyAllocations: TypeAlias = Candidate | Mapping[str, Mapping[str, int]]
"""A candidate, or the amounts by the name or uuid of the provider and the resource class."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim or a move that is made."""

    consumer: Holder
    """The consumer with all that it holds now. Its generation is not read, so it is `None`."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The uuids of the providers that satisfy each group of the query."""
    repeated: bool = False
    """Whether the consumer held exactly this before."""
    overtaken: int = 0
    """How many candidates other clients took first."""


def provider_value(found: CloudProvider) -> ResourceProvider:
    """A provider that was read with its associations and usages."""
    body = found.body
    return ResourceProvider(
        uuid=found.uuid,
        name=found.name,
        generation=body["generation"],
        parent=body["parent_provider_uuid"],
        root=body["root_provider_uuid"],
        inventories={name: found.inventory(name) for name in sorted(found.inventories)},
        traits=found.traits,
        aggregates=found.aggregates,
        used=dict(found.used),
    )


def tree_value(found: CloudTree) -> ResourceTree:
    """A tree that was read whole."""
    return ResourceTree(
        tuple(map(provider_value, found.providers)), tuple(map(provider_value, found.sharing))
    )


def inventory_fields(inventory: AnyInventory) -> dict[str, int | float]:
    """All fields of an inventory as the API names them; those that are not given by default.

    >>> inventory_fields({"total": 8, "reserved": 1}) == inventory_fields(Inventory("", 8, 1))
    True
    >>> inventory_fields(16)["total"], inventory_fields(16)["allocation_ratio"]
    (16, 1.0)
    """
    if isinstance(inventory, Inventory):
        return {field: getattr(inventory, field) for field in INVENTORY_FIELDS}
    fields = inventory if isinstance(inventory, Mapping) else {"total": inventory}
    defaults: dict[str, Any] = {**DEFAULTS}
    return {**defaults, **fields}


def candidate_values(answer: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The answer of `GET /allocation_candidates`; roots are known from 1.29 on."""
    summaries = answer.get("provider_summaries", {})

    def value(request: Mapping[str, Any]) -> Candidate:
        allocations = {uuid: its["resources"] for uuid, its in request["allocations"].items()}
        roots = (summaries.get(uuid, {}).get("root_provider_uuid") for uuid in allocations)
        return Candidate(
            allocations,
            {name: tuple(uuids) for name, uuids in request.get("mappings", {}).items()},
            tuple(dict.fromkeys(root for root in roots if root is not None)),
        )

    return tuple(map(value, answer["allocation_requests"]))
