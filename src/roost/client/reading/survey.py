"""Reads everything that a placement server has, for a copy of it.

Requests are those of version 1.14 or newer, up to 1.39. Older servers have no trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roost.client.errors import PlacementError
from roost.client.placement.answers import require_ok
from roost.client.placement.placement import Administration
from roost.client.reading.consumers import ConsumerReader
from roost.client.shapes import HOLDINGS, INVENTORY, JsonShape
from roost.client.transport import PlacementRequest, Transport

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
        self.server = Administration(transport)
        self.version = self.server.version

    @property
    def tells_consumer_generations(self) -> bool:
        """Whether the allocations of a provider tell the generations of consumers."""
        return self.version >= (1, 28)

    @property
    def losses(self) -> list[str]:
        """What a copy of this server lacks because of its version."""
        return [loss for version, loss in _LOSSES if self.version < version]

    def provider(self, uuid: str) -> SurveyedProvider | None:
        """What a provider has; `None` if it does not exist, or changes all the time."""
        for _ in range(_ATTEMPTS):
            found = self._provider_once(uuid)
            if found is not None:
                return found
        return None

    def aggregates(self, uuid: str) -> list[str] | None:
        """The aggregates of a provider; `None` if it does not exist."""
        found = self._part(uuid, "aggregates")
        return None if found is None else sorted(found["aggregates"])

    def consumer(self, uuid: str) -> SurveyedConsumer | None:
        """A consumer; `None` if it has no allocations."""
        holder = ConsumerReader(self.server).one(uuid)
        if holder is None:
            return None
        if holder.project is None or holder.user is None:
            raise SurveyFailed(f"The server does not tell the project and user of consumer {uuid}")
        generation = holder.generation or 1
        return SurveyedConsumer(holder.project, holder.user, generation, holder.type, holder.holds)

    def project_usages(self, project: str) -> dict[str, int]:
        """The amounts that a project uses, by resource class."""
        return self.server.usages_of_project(project, version="1.9")

    def _provider_once(self, uuid: str) -> SurveyedProvider | None:
        """What a provider has; `None` if it changed between two answers."""
        parts: dict[str, Any] = {}
        generations = set()
        for name in _PARTS:
            body = self._part(uuid, name)
            if body is None:
                return None
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

    def _part(self, uuid: str, name: str) -> dict[str, Any] | None:
        """One part of what a provider has; `None` if the provider does not exist."""
        path = f"/resource_providers/{uuid}/{name}"
        request = PlacementRequest("GET", path, None, str(self.version), repeatable=True)
        answer = self.server.send(request)
        if answer.status == 404:
            return None
        require_ok(answer, SurveyFailed, f"Cannot read {path}")
        return dict(answer.shaped({name: _PARTS[name], "resource_provider_generation?": int}))
