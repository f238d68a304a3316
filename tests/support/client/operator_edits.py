"""The manual edits of an operator, which the client under test does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from support.api_client import Answer, ApiClient


@dataclass(frozen=True)
class Picture:
    """One provider as the server shows it, with all fields of its inventories."""

    parent: str | None
    inventories: dict[str, dict[str, Any]]
    traits: frozenset[str]
    aggregates: frozenset[str]


@dataclass(frozen=True)
class Operator:
    """Addresses providers by name. If the server refuses a request, the test fails."""

    api: ApiClient
    _known: set[tuple[str, str]] = field(default_factory=set)

    # -- looking

    def uuid(self, name: str) -> str | None:
        """The uuid of a provider, or `None` if the server does not have the provider."""
        found = _good(self.api.get(f"/resource_providers?name={name}")).json["resource_providers"]
        return found[0]["uuid"] if found else None

    def tree(self, root: str) -> dict[str, Picture]:
        """All providers of a tree, by name; empty if the server does not have the root."""
        members = self._members(root)
        names = {provider["uuid"]: name for name, provider in members.items()}
        return {
            name: Picture(
                names.get(provider["parent_provider_uuid"]),
                self._read(provider["uuid"], "inventories")["inventories"],
                frozenset(self._read(provider["uuid"], "traits")["traits"]),
                frozenset(self._read(provider["uuid"], "aggregates")["aggregates"]),
            )
            for name, provider in members.items()
        }

    def names(self, root: str) -> set[str]:
        """The names of all providers of a tree."""
        return set(self._members(root))

    def inventories(self, name: str) -> dict[str, dict[str, Any]]:
        """The inventories of a provider."""
        found: dict[str, dict[str, Any]]
        found = self._read(self._demand(name), "inventories")["inventories"]
        return found

    # -- editing

    def create(self, name: str, below: str | None = None) -> str:
        """Create a provider. Returns its uuid."""
        body = {"name": name, "uuid": str(uuid4())}
        if below is not None:
            body["parent_provider_uuid"] = self._demand(below)
        _good(self.api.post("/resource_providers", body))
        return body["uuid"]

    def move(self, name: str, below: str | None) -> None:
        """Move a provider below the one with this uuid, or make it a root."""
        body = {"name": name, "parent_provider_uuid": below}
        _good(self.api.put(f"/resource_providers/{self._demand(name)}", body))

    def delete(self, name: str) -> None:
        """Delete a provider."""
        _good(self.api.delete(f"/resource_providers/{self._demand(name)}"))

    def set_inventory(self, name: str, resource_class: str, **fields: Any) -> None:
        """Set fields of an inventory. A missing inventory is added."""
        self._make_known("resource_classes", [resource_class])
        self._edit(
            name,
            "inventories",
            lambda found: found | {resource_class: found.get(resource_class, {}) | fields},
        )

    def add_traits(self, name: str, *traits: str) -> None:
        """Add traits."""
        self._make_known("traits", traits)
        self._edit(name, "traits", lambda found: sorted({*found, *traits}))

    def add_aggregates(self, name: str, *aggregates: str) -> None:
        """Put a provider into aggregates."""
        self._edit(name, "aggregates", lambda found: sorted({*found, *aggregates}))

    def add_aggregates_without_generation(self, name: str, *aggregates: str) -> None:
        """Put a provider into aggregates as clients before 1.19 do: its generation stays."""
        uuid = self._demand(name)
        before = self._read(uuid, "aggregates")["aggregates"]
        path = f"/resource_providers/{uuid}/aggregates"
        _good(self.api.at("1.1").put(path, sorted({*before, *aggregates})))

    # -- using

    def claim(self, name: str, resource_class: str, amount: int = 1) -> str:
        """Allocate resources of a provider to a new consumer. Returns the consumer."""
        consumer = str(uuid4())
        body = {
            "allocations": {self._demand(name): {"resources": {resource_class: amount}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        _good(self.api.put(f"/allocations/{consumer}", body))
        return consumer

    def release(self, consumer: str) -> None:
        """Delete the allocations of a consumer."""
        _good(self.api.delete(f"/allocations/{consumer}"))

    # -- inside

    def _demand(self, name: str) -> str:
        uuid = self.uuid(name)
        assert uuid is not None, f"there is no provider {name}"
        return uuid

    def _members(self, root: str) -> dict[str, Any]:
        uuid = self.uuid(root)
        if uuid is None:
            return {}
        listed = _good(self.api.get(f"/resource_providers?in_tree={uuid}"))
        return {provider["name"]: provider for provider in listed.json["resource_providers"]}

    def _make_known(self, kind: str, names: Iterable[str]) -> None:
        for name in names:
            if name.startswith("CUSTOM_") and (kind, name) not in self._known:
                _good(self.api.put(f"/{kind}/{name}"))
                self._known.add((kind, name))

    def _read(self, uuid: str, kind: str) -> Any:
        return _good(self.api.get(f"/resource_providers/{uuid}/{kind}")).json

    def _edit(self, name: str, kind: str, change: Callable[[Any], Any]) -> None:
        uuid = self._demand(name)
        found = self._read(uuid, kind)
        body = {
            "resource_provider_generation": found["resource_provider_generation"],
            kind: change(found[kind]),
        }
        _good(self.api.put(f"/resource_providers/{uuid}/{kind}", body))


def _good(answer: Answer) -> Answer:
    assert answer.status < 400, answer.body
    return answer
