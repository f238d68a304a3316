"""A model of a cloud, and writes that change both the model and a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from support.scenarios.oracle import Inventory, Provider, World

# The allocations of a consumer, by provider and class.
Holding: TypeAlias = Mapping[str, Mapping[str, int]]
# Method, path, version and body to status and JSON.
Ask: TypeAlias = Callable[[str, str, str, Any], tuple[int, Any]]

VERSION = "1.39"
# The last version that claims without the consumer's generation.
CLAIM_VERSION = "1.27"


@dataclass(frozen=True)
class Cloud:
    """Providers and consumers, by their uuids."""

    providers: Mapping[str, Provider] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    # All custom classes and traits that writes have used.
    named: frozenset[str] = frozenset()

    def world(self) -> World:
        """The providers and their usage, as a search sees them."""
        return World(
            {
                uuid: replace(provider, used=self.used(uuid))
                for uuid, provider in self.providers.items()
            }
        )

    def used(self, provider: str) -> dict[str, int]:
        """The usage of a provider, by class."""
        used: dict[str, int] = {}
        for holding in self.holdings.values():
            for name, amount in holding.get(provider, {}).items():
                used[name] = used.get(name, 0) + amount
        return used

    def children(self, provider: str) -> list[str]:
        return [uuid for uuid, other in self.providers.items() if other.parent == provider]

    def with_provider(self, uuid: str, **changes: Any) -> Cloud:
        changed = replace(self.providers[uuid], **changes)
        return replace(self, providers={**self.providers, uuid: changed})

    def with_names(self, *names: str) -> Cloud:
        return replace(self, named=self.named.union(custom(names)))


def custom(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith("CUSTOM_")]


class Writer:
    """Sends writes to a service, with the generations that the service expects."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._generations: dict[str, int] = {}
        self._named: set[str] = set()

    def send(self, method: str, path: str, body: Any = None, version: str = VERSION) -> Any:
        """Send one request, which must succeed."""
        status, answer = self._ask(method, path, version, body)
        assert status < 300, f"{method} {path} {body}: {status} {answer}"
        return answer

    def post_provider(self, provider: str, body: Mapping[str, Any]) -> None:
        """Create a provider."""
        answer = self.send("POST", "/resource_providers", body)
        self._generations[provider] = answer["generation"]

    def put(self, provider: str, what: str, body: Mapping[str, Any]) -> None:
        """Replace the inventories, traits or aggregates of a provider."""
        if provider not in self._generations:
            path = f"/resource_providers/{provider}"
            self._generations[provider] = self.send("GET", path)["generation"]
        sent = {"resource_provider_generation": self._generations[provider], **body}
        answer = self.send("PUT", f"/resource_providers/{provider}/{what}", sent)
        self._generations[provider] = answer["resource_provider_generation"]

    def forget(self, *providers: str) -> None:
        """Forget the generations of these providers, because they may have changed."""
        for provider in providers:
            self._generations.pop(provider, None)

    def create_names(self, collection: str, *names: str) -> None:
        """Create the custom names among these, each once."""
        for name in custom(names):
            if name not in self._named:
                self.send("PUT", f"/{collection}/{name}")
                self._named.add(name)


class Write(ABC):
    """A change by a client."""

    @abstractmethod
    def apply(self, cloud: Cloud) -> Cloud:
        """The cloud after this write."""

    @abstractmethod
    def send(self, writer: Writer) -> None:
        """Send this write to a service."""


@dataclass(frozen=True)
class Create(Write):
    uuid: str
    parent: str | None = None

    def apply(self, cloud: Cloud) -> Cloud:
        return replace(cloud, providers={**cloud.providers, self.uuid: Provider(self.parent)})

    def send(self, writer: Writer) -> None:
        body = {"name": self.uuid, "uuid": self.uuid, "parent_provider_uuid": self.parent}
        writer.post_provider(self.uuid, body)


@dataclass(frozen=True)
class Delete(Write):
    uuid: str

    def apply(self, cloud: Cloud) -> Cloud:
        left = {uuid: provider for uuid, provider in cloud.providers.items() if uuid != self.uuid}
        return replace(cloud, providers=left)

    def send(self, writer: Writer) -> None:
        writer.send("DELETE", f"/resource_providers/{self.uuid}")
        writer.forget(self.uuid)


@dataclass(frozen=True)
class Move(Write):
    """A provider and its subtree get another parent, or the provider becomes a root."""

    uuid: str
    parent: str | None

    def apply(self, cloud: Cloud) -> Cloud:
        return cloud.with_provider(self.uuid, parent=self.parent)

    def send(self, writer: Writer) -> None:
        body = {"name": self.uuid, "parent_provider_uuid": self.parent}
        writer.send("PUT", f"/resource_providers/{self.uuid}", body)
        writer.forget(self.uuid)


@dataclass(frozen=True)
class SetInventories(Write):
    uuid: str
    inventories: Mapping[str, Inventory]

    def apply(self, cloud: Cloud) -> Cloud:
        changed = cloud.with_provider(self.uuid, inventories=self.inventories)
        return changed.with_names(*self.inventories)

    def send(self, writer: Writer) -> None:
        writer.create_names("resource_classes", *self.inventories)
        fields = {name: vars(inventory) for name, inventory in self.inventories.items()}
        writer.put(self.uuid, "inventories", {"inventories": fields})


@dataclass(frozen=True)
class SetTraits(Write):
    uuid: str
    traits: frozenset[str]

    def apply(self, cloud: Cloud) -> Cloud:
        return cloud.with_provider(self.uuid, traits=self.traits).with_names(*self.traits)

    def send(self, writer: Writer) -> None:
        writer.create_names("traits", *sorted(self.traits))
        writer.put(self.uuid, "traits", {"traits": sorted(self.traits)})


@dataclass(frozen=True)
class SetAggregates(Write):
    uuid: str
    aggregates: frozenset[str]

    def apply(self, cloud: Cloud) -> Cloud:
        return cloud.with_provider(self.uuid, aggregates=self.aggregates)

    def send(self, writer: Writer) -> None:
        writer.put(self.uuid, "aggregates", {"aggregates": sorted(self.aggregates)})


@dataclass(frozen=True)
class Claim(Write):
    """A consumer gets exactly these allocations."""

    consumer: str
    holding: Holding

    def apply(self, cloud: Cloud) -> Cloud:
        return replace(cloud, holdings={**cloud.holdings, self.consumer: self.holding})

    def send(self, writer: Writer) -> None:
        held = {provider: {"resources": dict(its)} for provider, its in self.holding.items()}
        body = {"allocations": held, "project_id": "a project", "user_id": "a user"}
        writer.send("PUT", f"/allocations/{self.consumer}", body, CLAIM_VERSION)
        writer.forget(*self.holding)


@dataclass(frozen=True)
class Release(Write):
    consumer: str

    def apply(self, cloud: Cloud) -> Cloud:
        left = {uuid: its for uuid, its in cloud.holdings.items() if uuid != self.consumer}
        return replace(cloud, holdings=left)

    def send(self, writer: Writer) -> None:
        writer.send("DELETE", f"/allocations/{self.consumer}")


def clearing(cloud: Cloud) -> list[Write]:
    """The writes that delete all consumers and providers. Custom names stay."""
    depths = {uuid: len(cloud.world().lineage(uuid)) for uuid in cloud.providers}
    deepest_first = sorted(depths, key=lambda uuid: depths[uuid], reverse=True)
    return [*map(Release, cloud.holdings), *map(Delete, deepest_first)]
