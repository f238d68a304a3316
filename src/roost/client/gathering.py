"""Gathers what many providers have, and what consumers hold of them.

Placement answers such questions for one provider at a time, so several threads ask at once.
Placement has no list of consumers. A list is gathered from the allocations of providers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from roost.client.errors import PlacementError
from roost.client.parallel import in_order
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration, AmountsByClass, allocations_path
from roost.client.shapes import CONSUMER
from roost.client.transport import PlacementRequest
from roost.model.inventory import Inventory

CONCURRENCY = 4

TellProgress = Callable[[int, int], None]
"""Takes the number of all questions, and the number of those answered since."""

Q = TypeVar("Q")
A = TypeVar("A")

NO_PROJECT = "00000000-0000-0000-0000-000000000000"
"""The project of consumers that clients of 1.7 and older made without one."""


@dataclass(frozen=True)
class GatheredProvider:
    """A provider with its inventories, and the amounts that consumers hold of it."""

    body: ProviderBody
    inventories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allocations: Mapping[str, AmountsByClass] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        """The uuid of the provider."""
        return str(self.body["uuid"])

    @property
    def name(self) -> str:
        """The name of the provider."""
        return str(self.body["name"])

    @cached_property
    def used(self) -> Mapping[str, int]:
        """The amount of each class that all consumers together hold."""
        amounts: Counter[str] = Counter()
        for held in self.allocations.values():
            amounts.update(held)
        return amounts

    def inventory(self, resource_class: str) -> Inventory:
        """An inventory of the provider, as a value."""
        return inventory_of(resource_class, self.inventories[resource_class])


def inventory_of(resource_class: str, fields: Mapping[str, Any]) -> Inventory:
    """An inventory out of the fields that a server sends."""
    known = {
        name: fields[name]
        for name in ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
        if name in fields
    }
    return Inventory(resource_class, **known)


def gather(
    server: Administration,
    bodies: Sequence[ProviderBody],
    advance: TellProgress,
    *,
    with_inventories: bool = True,
    with_allocations: bool = True,
) -> Iterator[GatheredProvider]:
    """What each of these providers has; a provider that another client deletes is left out."""

    def read(body: ProviderBody) -> GatheredProvider | None:
        uuid = body["uuid"]
        try:
            _, inventories = server.inventories(uuid) if with_inventories else (0, {})
            allocations = server.allocations_on(uuid) if with_allocations else {}
        except PlacementError as error:
            if error.status == 404:
                return None
            raise
        return GatheredProvider(body, inventories, allocations)

    yield from (found for found in ask_each(bodies, read, advance) if found is not None)


def ask_each(questions: Sequence[Q], ask: Callable[[Q], A], advance: TellProgress) -> Iterator[A]:
    """The answers in the order of the questions, a few questions at a time."""
    for answer in in_order(questions, ask, CONCURRENCY):
        advance(len(questions), 1)
        yield answer


def holdings(providers: Iterable[GatheredProvider]) -> dict[str, dict[str, AmountsByClass]]:
    """What each consumer holds, by the uuid of the provider."""
    found: dict[str, dict[str, AmountsByClass]] = {}
    for provider in providers:
        for consumer, held in provider.allocations.items():
            found.setdefault(consumer, {})[provider.uuid] = held
    return found


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer with all that it holds, by the uuid of the provider."""

    uuid: str
    holds: Mapping[str, AmountsByClass]
    project: str | None = None
    user: str | None = None
    generation: int | None = None
    # `None` before 1.38, and for a consumer that no client has given a type.
    type: str | None = None

    @property
    def amounts(self) -> AmountsByClass:
        """The amount of each class on all providers together."""
        total: Counter[str] = Counter()
        for held in self.holds.values():
            total.update(held)
        return dict(sorted(total.items()))


def read_holder(server: Administration, uuid: str) -> Holder | None:
    """A consumer; `None` if it holds nothing, because then Placement knows nothing of it."""
    request = PlacementRequest(
        "GET", allocations_path(uuid), None, str(server.version), repeatable=True
    )
    answer = server.send(request)
    if not answer.ok:
        raise PlacementError(
            f"Cannot read consumer {uuid}",
            status=answer.status,
            detail=answer.detail,
            request_id=answer.request_id,
        )
    body = answer.shaped(CONSUMER)
    held = body["allocations"]
    if not held:
        return None
    kind = body.get("consumer_type")
    return Holder(
        uuid=uuid,
        holds={provider: dict(its["resources"]) for provider, its in held.items()},
        project=body.get("project_id"),
        user=body.get("user_id"),
        generation=body.get("consumer_generation"),
        type=None if kind in (None, "unknown") else str(kind),
    )


def uuids_of_consumers(
    server: Administration, bodies: Sequence[ProviderBody], tell: TellProgress
) -> list[str]:
    """The uuids of all consumers of these providers."""
    return sorted(holdings(gather(server, bodies, tell, with_inventories=False)))


def read_holders(
    server: Administration, uuids: Iterable[str], tell: TellProgress
) -> Iterator[Holder]:
    """These consumers, as the caller takes them; one that ends meanwhile is left out."""
    found = ask_each(list(uuids), lambda uuid: read_holder(server, uuid), tell)
    return (holder for holder in found if holder is not None)
