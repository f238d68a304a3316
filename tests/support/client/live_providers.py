"""Providers on a live server, which tests make and look at over HTTP, beside the reporter.

Each test has its own names and uuids, so that many tests can share one server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4, uuid5

from roost.client.transport import PlacementRequest, PlacementResponse, Transport

LATEST = "1.39"

Totals = Mapping[str, int]


class LiveProviders:
    """Providers, aggregates and consumers that tests call by short names such as `CN1`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._namespace = uuid4()
        self._mark = self._namespace.hex[:12]
        self._names: dict[str, str] = {}
        self._claimed: set[str] = set()

    # -- names on the server

    def uuid(self, short: str) -> str:
        """The uuid of a provider or an aggregate, whether or not the server has it."""
        found = str(uuid5(self._namespace, short))
        self._names[found] = short
        return found

    def name(self, short: str) -> str:
        """The name of a provider, whether or not the server has it."""
        return f"{short}-{self._mark}"

    def custom(self, short: str) -> str:
        """The name of a resource class or a trait that no other test uses."""
        return f"CUSTOM_{short}_{self._mark.upper()}"

    def short(self, uuid: str) -> str:
        """The short name of the provider, aggregate or consumer with this uuid."""
        return self._names[uuid]

    def shorts(self, uuids: Iterable[str]) -> list[str]:
        """The short names, in alphabetical order."""
        return sorted(map(self.short, uuids))

    def path(self, short: str, what: str = "") -> str:
        """The path of a provider, or of its `inventories`, `traits` or `aggregates`."""
        return f"/resource_providers/{self.uuid(short)}" + (f"/{what}" if what else "")

    def in_words(self, requests: Iterable[PlacementRequest]) -> list[str]:
        """Requests as `PUT CN1/traits`, with short names instead of paths and uuids."""
        words = []
        for request in requests:
            text = str(request).replace("/resource_providers/", "")
            for uuid, short in self._names.items():
                text = text.replace(uuid, short)
            words.append(text)
        return words

    # -- making

    def add(
        self,
        short: str,
        parent: str | None = None,
        *,
        totals: Totals | None = None,
        traits: Iterable[str] = (),
        aggregates: Iterable[str] = (),
    ) -> str:
        """Create a provider with inventories, traits and aggregates. Returns its uuid."""
        body = {"uuid": self.uuid(short), "name": self.name(short)}
        if parent is not None:
            body["parent_provider_uuid"] = self.uuid(parent)
        generation = self.send("POST", "/resource_providers", body).field("generation")
        for what, value in (
            ("inventories", {name: {"total": total} for name, total in (totals or {}).items()}),
            ("traits", list(traits)),
            ("aggregates", [self.uuid(aggregate) for aggregate in aggregates]),
        ):
            if value:
                generation = self._put(short, what, value, generation)
        return self.uuid(short)

    def set_totals(self, short: str, **totals: int) -> None:
        """Replace all inventories."""
        self._replace(short, "inventories", {name: {"total": n} for name, n in totals.items()})

    def set_traits(self, short: str, *traits: str) -> None:
        """Replace all traits."""
        self._replace(short, "traits", traits)

    def set_aggregates(self, short: str, *aggregates: str) -> None:
        """Replace all aggregates."""
        self._replace(short, "aggregates", list(map(self.uuid, aggregates)))

    def set_aggregates_unseen(self, short: str, *aggregates: str) -> None:
        """Replace all aggregates as old clients do: the generation does not move."""
        body = list(map(self.uuid, aggregates))
        self.send("PUT", self.path(short, "aggregates"), body, "1.18")

    def delete(self, short: str) -> None:
        self.send("DELETE", self.path(short))

    def claim(self, consumer: str, **taken: Totals) -> str:
        """Let a consumer have this of these providers and nothing else; its uuid."""
        uuid = self.uuid(consumer)
        generation = None
        if uuid in self._claimed:
            generation = self.consumer(consumer)["consumer_generation"]
        self._claimed.add(uuid)
        body = {
            "allocations": {self.uuid(name): {"resources": used} for name, used in taken.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": generation,
        }
        self.send("PUT", f"/allocations/{uuid}", body, "1.28")
        return uuid

    def release(self, consumer: str) -> None:
        """Delete the allocations of a consumer."""
        self.send("DELETE", f"/allocations/{self.uuid(consumer)}")

    # -- looking

    def exists(self, short: str) -> bool:
        return self._sent("GET", self.path(short)).status == 200

    def provider(self, short: str) -> Any:
        return self.send("GET", self.path(short)).json

    def generation(self, short: str) -> int:
        generation: int = self.provider(short)["generation"]
        return generation

    def inventories(self, short: str) -> Any:
        return self.send("GET", self.path(short, "inventories")).field("inventories")

    def totals(self, short: str) -> dict[str, int]:
        return {name: fields["total"] for name, fields in self.inventories(short).items()}

    def traits(self, short: str) -> set[str]:
        return set(self.send("GET", self.path(short, "traits")).field("traits"))

    def aggregates(self, short: str) -> list[str]:
        found = self.send("GET", self.path(short, "aggregates")).field("aggregates")
        return self.shorts(found)

    def consumer(self, consumer: str) -> Any:
        """The server's answer about the allocations of a consumer."""
        return self.send("GET", f"/allocations/{self.uuid(consumer)}", version="1.28").json

    def taken(self, consumer: str) -> dict[str, Totals]:
        """The resources that a consumer has allocated, by the short names of providers."""
        found = self.consumer(consumer)["allocations"]
        return {self.short(uuid): used["resources"] for uuid, used in found.items()}

    # -- sending

    def send(
        self, method: str, path: str, body: Any = None, version: str = LATEST
    ) -> PlacementResponse:
        """Send a request that must succeed."""
        answer = self._sent(method, path, body, version)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.detail}"
        return answer

    def _sent(
        self, method: str, path: str, body: Any = None, version: str = LATEST
    ) -> PlacementResponse:
        return self._transport.send(PlacementRequest(method, path, body, version))

    def _replace(self, short: str, what: str, value: Any) -> None:
        self._put(short, what, value, self.generation(short))

    def _put(self, short: str, what: str, value: Any, generation: int) -> int:
        body = {what: value, "resource_provider_generation": generation}
        answer = self.send("PUT", self.path(short, what), body)
        moved: int = answer.field("resource_provider_generation")
        return moved
