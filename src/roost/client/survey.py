"""Reads everything that a placement server has, for a copy of it.

Requests are those of version 1.14 or newer, up to 1.39. Older servers have no trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from roost.client.errors import PlacementError
from roost.client.placement.answers import (
    ProviderBody,
    class_names,
    names,
    provider_bodies,
    require_ok,
    usages,
)
from roost.client.placement.placement import allocations_path
from roost.client.shapes import CONSUMER, HOLDINGS, INVENTORY, JsonShape
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.client.versions import newest_common

_ATTEMPTS = 5
# What a provider has, in the order in which it is read.
_PARTS: JsonShape = {
    "inventories": {str: INVENTORY},
    "traits": [str],
    "aggregates": [str],
    "allocations": HOLDINGS,
}

# What a copy lacks if the server is older than a version.
_LOSSES = (
    ((1, 19), "changes of aggregates during the copy are not noticed"),
    ((1, 28), "consumers begin at generation 1"),
    ((1, 38), "consumers have no type"),
)


class SurveyFailed(PlacementError):
    """The server cannot be read."""


@dataclass(frozen=True, slots=True)
class SurveyedProvider:
    """What a provider has at one generation. The values are those of JSON."""

    generation: int
    inventories: Mapping[str, Mapping[str, Any]]
    traits: list[str]
    aggregates: list[str]
    # Amounts by consumer and resource class.
    allocations: Mapping[str, Mapping[str, int]]
    # The generation of each of these consumers, from version 1.28 on.
    consumer_generations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SurveyedConsumer:
    """The owner of allocations, and the allocations by provider and resource class."""

    project: str
    user: str
    generation: int
    type: str | None
    allocations: Mapping[str, Mapping[str, int]]


class Survey:
    """Requests to one server, at the newest version that both sides know."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.version = newest_common(transport, purpose="copies of trees")

    @property
    def tells_consumer_generations(self) -> bool:
        """Whether the allocations of a provider tell the generations of consumers."""
        return self.version >= (1, 28)

    @property
    def losses(self) -> list[str]:
        """What a copy of this server lacks because of its version."""
        return [loss for version, loss in _LOSSES if self.version < version]

    def providers(self) -> list[ProviderBody]:
        """All providers, without what they have."""
        return provider_bodies(self._get("/resource_providers"))

    def resource_classes(self) -> list[str]:
        """The names of all resource classes."""
        return class_names(self._get("/resource_classes"))

    def traits(self) -> list[str]:
        """The names of all traits."""
        return list(self._get("/traits").field("traits", [str]))

    def provider(self, uuid: str) -> SurveyedProvider | None:
        """What a provider has; `None` if it does not exist, or changes all the time."""
        for _ in range(_ATTEMPTS):
            found = self._provider_once(f"/resource_providers/{uuid}")
            if found is not None:
                return found
        return None

    def aggregates(self, uuid: str) -> list[str] | None:
        """The aggregates of a provider; `None` if it does not exist."""
        path = f"/resource_providers/{uuid}/aggregates"
        answer = self._send(path)
        if answer.status == 404:
            return None
        require_ok(answer, SurveyFailed, f"Cannot read {path}")
        return sorted(names(answer, "aggregates"))

    def consumer(self, uuid: str) -> SurveyedConsumer | None:
        """A consumer; `None` if it has no allocations."""
        answer = self._get(allocations_path(uuid))
        held = answer.field("allocations", HOLDINGS)
        if not held:
            return None
        body = answer.shaped({**CONSUMER, "project_id": str, "user_id": str})
        kind = body.get("consumer_type")
        return SurveyedConsumer(
            project=str(body["project_id"]),
            user=str(body["user_id"]),
            generation=int(body.get("consumer_generation") or 1),
            type=None if kind in (None, "unknown") else str(kind),
            allocations={uuid: dict(its["resources"]) for uuid, its in held.items()},
        )

    def project_usages(self, project: str) -> dict[str, int]:
        """The amounts that a project uses, by resource class."""
        path = f"/usages?project_id={quote(project, safe='')}"
        return usages(self._get(path, "1.9"))

    def _provider_once(self, path: str) -> SurveyedProvider | None:
        """What a provider has; `None` if it changed between two answers."""
        parts = {}
        generations = set()
        for name, shape in _PARTS.items():
            answer = self._send(f"{path}/{name}")
            if answer.status == 404:
                return None
            require_ok(answer, SurveyFailed, f"Cannot read {path}/{name}")
            body = answer.shaped({name: shape, "resource_provider_generation?": int})
            parts[name] = body[name]
            # Aggregates have a generation from 1.19 on.
            if "resource_provider_generation" in body:
                generations.add(body["resource_provider_generation"])
        if len(generations) != 1:
            return None
        return SurveyedProvider(
            generation=generations.pop(),
            inventories=parts["inventories"],
            traits=sorted(parts["traits"]),
            aggregates=sorted(parts["aggregates"]),
            allocations={
                consumer: dict(its["resources"]) for consumer, its in parts["allocations"].items()
            },
            consumer_generations={
                consumer: int(its["consumer_generation"])
                for consumer, its in parts["allocations"].items()
                if its.get("consumer_generation") is not None
            },
        )

    def _get(self, path: str, version: str | None = None) -> PlacementResponse:
        answer = self._send(path, version)
        require_ok(answer, SurveyFailed, f"Cannot read {path.partition('?')[0]}")
        return answer

    def _send(self, path: str, version: str | None = None) -> PlacementResponse:
        asked = version or str(self.version)
        return self._transport.send(PlacementRequest("GET", path, None, asked, repeatable=True))
