"""Drivers that make the edits of a test, and keep their arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable

from roost.client.drivers.driver import Allocations
from roost.client.errors import ReshapeNeeded
from roost.client.provider_tree import ProviderTree
from support.client.live_providers import LiveProviders

Edit = Callable[[ProviderTree], object]
Reshape = Callable[[ProviderTree, Allocations], object]


class EditingDriver:
    """A driver that never reshapes."""

    def __init__(self, *edits: Edit) -> None:
        self._edits = edits
        self.seen: list[ProviderTree] = []
        self.nodenames: list[str] = []

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        self.seen.append(copy.deepcopy(provider_tree))
        self.nodenames.append(nodename)
        for edit in self._edits:
            edit(provider_tree)


class ReshapingDriver:
    """A driver that asks for the allocations first, and then reshapes."""

    def __init__(
        self,
        reshape: Reshape,
        *,
        asking: Exception | None = None,
        before_asking: Edit | None = None,
    ) -> None:
        self._reshape = reshape
        self._asking = asking or ReshapeNeeded()
        self._before_asking = before_asking
        self.given: list[Allocations | None] = []

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        self.given.append(copy.deepcopy(allocations))
        if allocations is None:
            if self._before_asking:
                self._before_asking(provider_tree)
            raise self._asking
        self._reshape(provider_tree, allocations)

    @property
    def allocations(self) -> list[Allocations]:
        """The allocations of each call that had any."""
        return [given for given in self.given if given is not None]


def to_child(world: LiveProviders) -> Reshape:
    """A reshape that moves all VCPU of the host to a child, with its allocations."""

    def reshape(tree: ProviderTree, allocations: Allocations) -> None:
        host, child = world.uuid("host"), world.uuid("child")
        if not tree.exists(child):
            tree.new_child(world.name("child"), host, child)
        inventory = tree.data(host).inventory
        tree.update_inventory(child, {"VCPU": inventory.pop("VCPU")})
        tree.update_inventory(host, inventory)
        for used in (consumer["allocations"] for consumer in allocations.values()):
            moved = used.get(host, {"resources": {}})["resources"].pop("VCPU", None)
            if moved is not None:
                used[child] = {"resources": {"VCPU": moved}}
            if host in used and not used[host]["resources"]:
                del used[host]

    return reshape
