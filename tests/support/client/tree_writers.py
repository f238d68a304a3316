"""The writers of one tree: two owners and a compute service at random, and an operator."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from roost.client.drivers.driver import Allocations
from roost.client.provider_tree import ProviderTree
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields
from support.client.operator_edits import Operator
from support.client.random_choices import Choices

AGENT, OTHER = "agent", "other"

# The parent of each provider. On the server, names begin with the name of the host.
PARENTS = {"": None, "numa": "", "device": "numa", "bridge": ""}

BY_HAND = "CUSTOM_BY_HAND"
LICENCE = "CUSTOM_LICENCE"
"""The agent always declares its total on the host. The operator sets its `reserved`."""

SHARED = "CUSTOM_SHARED"
AGGREGATES = {
    AGENT: "aaaaaaaa-1111-4111-8111-111111111111",
    OTHER: "bbbbbbbb-1111-4111-8111-111111111111",
    SHARED: "cccccccc-1111-4111-8111-111111111111",
}
BY_HAND_TRAITS = [f"{BY_HAND}_{number}" for number in range(4)]
BY_HAND_AGGREGATES = [f"dddddddd-1111-4111-8111-00000000000{number}" for number in range(4)]

COMPUTE_CLASSES = frozenset({"VCPU", "MEMORY_MB"})
COMPUTE_TRAITS = frozenset({"HW_CPU_X86_AVX", "COMPUTE_NODE"})


# -- declarations


def a_declaration(host: str, owner: str, choices: Choices) -> Declaration:
    chosen = [""]
    chosen += [name for name, parent in PARENTS.items() if parent in chosen and choices.likely()]
    return Declaration(
        tuple(
            DeclaredProvider(
                host + name,
                None if PARENTS[name] is None else f"{host}{PARENTS[name]}",
                None,
                some_inventories(owner, name, choices),
                frozenset(choices.some([f"CUSTOM_{owner.upper()}", SHARED])),
                frozenset(choices.some([AGGREGATES[owner], AGGREGATES[SHARED]])),
            )
            for name in chosen
        )
    )


def some_inventories(owner: str, name: str, choices: Choices) -> dict[str, InventoryFields]:
    found: dict[str, InventoryFields] = {}
    if owner == AGENT and name == "":
        found[LICENCE] = {"total": choices.one((8, 16))}
    if choices.yes():
        found[f"CUSTOM_{owner.upper()}"] = {"total": choices.one((8, 16)), **reserved(choices)}
    if choices.yes():
        # Both owners declare the same total. Only OTHER declares `reserved`.
        found[SHARED] = {"total": 4, **(reserved(choices) if owner == OTHER else {})}
    return found


def reserved(choices: Choices) -> dict[str, int]:
    return {"reserved": 2} if choices.yes() else {}


@dataclass(frozen=True)
class Compute:
    """The part of the compute service. The service edits this part and no other."""

    host: str
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    has_child: bool = False

    @property
    def child(self) -> str:
        return f"{self.host}compute"

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        foreign = {
            name: fields
            for name, fields in provider_tree.data(nodename).inventory.items()
            if name not in COMPUTE_CLASSES
        }
        provider_tree.update_inventory(nodename, foreign | self.inventories)
        provider_tree.remove_traits(nodename, *(COMPUTE_TRAITS - self.traits))
        provider_tree.add_traits(nodename, *self.traits)
        if provider_tree.exists(self.child) and not self.has_child:
            provider_tree.remove(self.child)
        if self.has_child:
            if not provider_tree.exists(self.child):
                provider_tree.new_child(self.child, nodename)
            provider_tree.update_inventory(self.child, {"VGPU": {"total": 4}})


def a_compute(host: str, choices: Choices) -> Compute:
    return Compute(
        host,
        {name: {"total": choices.one((8, 16))} for name in choices.some(sorted(COMPUTE_CLASSES))},
        frozenset(choices.some(sorted(COMPUTE_TRAITS))),
        choices.yes(),
    )


# -- the operator


@dataclass
class OperatorWork:
    """The edits of the operator, which must survive all reports."""

    host: str
    operator: Operator
    inventories: dict[str, int] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    reserved: int = 0
    consumers: list[str] = field(default_factory=list)
    claimed: dict[str, set[str]] = field(default_factory=dict)
    # A late request, whose client has given up, may still make the operator act.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, choices: Choices, *, between_reports: bool = False) -> None:
        """Make some random edits to existing providers."""
        deeds = [self._add_trait, self._add_aggregate, self._add_inventory, self._reserve]
        deeds += [self._add_child, self._claim]
        if between_reports:
            # An edit without generation, between the read and the write of a report, is lost.
            deeds.append(self._add_aggregate_without_generation)
        with self.lock:
            there = self.operator.names(self.host)
            if there:
                for deed in choices.some(deeds):
                    deed(there, choices)

    def finish(self) -> None:
        """Delete all allocations of the operator's consumers."""
        for consumer in self.consumers:
            self.operator.release(consumer)

    def _some_provider(self, there: set[str], choices: Choices) -> str:
        """A random provider; often the host, to which all writers write."""
        if choices.yes():
            return ""
        return choices.one([name for name in PARENTS if self.host + name in there])

    def _add_inventory(self, there: set[str], choices: Choices) -> None:
        name, total = self._some_provider(there, choices), choices.one((8, 16))
        self.operator.set_inventory(self.host + name, BY_HAND, total=total)
        self.inventories[name] = total

    def _add_child(self, there: set[str], choices: Choices) -> None:
        parent = self._some_provider(there, choices)
        name = f"by-hand-below-{parent}"
        if name not in self.children:
            self.operator.create(self.host + name, self.host + parent)
            self.children[name] = parent

    # Traits and aggregates vanish with their provider. So the operator adds them to the host only,
    # which stays.

    def _add_trait(self, there: set[str], choices: Choices) -> None:
        trait = choices.one(BY_HAND_TRAITS)
        self.operator.add_traits(self.host, trait)
        self.traits.add(trait)

    def _add_aggregate(self, there: set[str], choices: Choices) -> None:
        aggregate = choices.one(BY_HAND_AGGREGATES)
        self.operator.add_aggregates(self.host, aggregate)
        self.aggregates.add(aggregate)

    def _add_aggregate_without_generation(self, there: set[str], choices: Choices) -> None:
        aggregate = choices.one(BY_HAND_AGGREGATES)
        self.operator.add_aggregates_without_generation(self.host, aggregate)
        self.aggregates.add(aggregate)

    def _reserve(self, there: set[str], choices: Choices) -> None:
        if LICENCE in self.operator.inventories(self.host):
            self.reserved = choices.one((1, 2))
            self.operator.set_inventory(self.host, LICENCE, reserved=self.reserved)

    def _claim(self, there: set[str], choices: Choices) -> None:
        """Allocate a resource, so that its inventory stays until the operator has finished."""
        name = self.host + self._some_provider(there, choices)
        inventories = self.operator.inventories(name)
        # One unit of an inventory keeps it, and the smallest inventory has two.
        unclaimed = sorted(inventories.keys() - self.claimed.get(name, set()))
        if unclaimed:
            resource_class = choices.one(unclaimed)
            self.consumers.append(self.operator.claim(name, resource_class))
            self.claimed.setdefault(name, set()).add(resource_class)
