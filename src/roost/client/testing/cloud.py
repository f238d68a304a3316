"""The providers and consumers of a fake server, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import os_resource_classes
import os_traits

from roost.client.claims.consumer_state import ResourcesByProvider
from roost.model.identifiers import is_custom
from roost.model.inventory import Inventory

UNDEFINED_CODE = "placement.undefined_code"


class FakeRefusal(Exception):
    """A request that the fake server refuses."""

    def __init__(self, status: int, detail: str, code: str = UNDEFINED_CODE) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code


@dataclass
class FakeProvider:
    """A provider with all that it has."""

    uuid: str
    name: str
    parent: str | None = None
    generation: int = 0
    inventories: dict[str, Inventory] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


@dataclass
class FakeConsumer:
    """A consumer that holds something."""

    uuid: str
    project: str
    user: str
    type: str | None = None
    generation: int = 0
    holds: ResourcesByProvider = field(default_factory=dict)


class FakeCloud:
    """All that a fake server has."""

    def __init__(self) -> None:
        self.providers: dict[str, FakeProvider] = {}
        self.consumers: dict[str, FakeConsumer] = {}
        self.traits: set[str] = set(os_traits.get_traits())
        # The order of the list that a server answers with.
        self.classes: list[str] = list(os_resource_classes.STANDARDS)

    # -- providers

    def provider(self, uuid: str) -> FakeProvider:
        """The provider with this uuid; a refusal if there is none."""
        if uuid not in self.providers:
            raise FakeRefusal(404, f"No resource provider with uuid {uuid} found")
        return self.providers[uuid]

    def named(self, name: str) -> FakeProvider | None:
        """The provider with this name; `None` if there is none."""
        return next((found for found in self.providers.values() if found.name == name), None)

    def root_of(self, provider: FakeProvider) -> str:
        """The uuid of the root of a provider's tree."""
        while provider.parent is not None:
            provider = self.providers[provider.parent]
        return provider.uuid

    def subtree(self, provider: FakeProvider) -> Iterator[FakeProvider]:
        """A provider and all below it."""
        yield provider
        for child in list(self.providers.values()):
            if child.parent == provider.uuid:
                yield from self.subtree(child)

    # -- what consumers hold

    def holders(self, uuid: str) -> Iterator[FakeConsumer]:
        """The consumers that hold something of a provider."""
        return (each for each in self.consumers.values() if uuid in each.holds)

    def used(self, uuid: str, without: Iterable[str] = ()) -> Counter[str]:
        """What consumers hold of a provider, by class; some consumers do not count."""
        total: Counter[str] = Counter()
        ignored = set(without)
        for consumer in self.holders(uuid):
            if consumer.uuid not in ignored:
                total.update(consumer.holds[uuid])
        return total

    # -- names

    def demand_classes(self, names: Iterable[str], prefix: str) -> None:
        """Refuse classes that the server does not know."""
        for name in names:
            if name not in self.classes:
                raise FakeRefusal(400, f"{prefix}No such resource class {name}.")

    def demand_custom(self, name: str, noun: str) -> None:
        """Refuse to change a standard trait or class."""
        if not is_custom(name):
            raise FakeRefusal(400, f"Cannot delete standard {noun} {name}.")
