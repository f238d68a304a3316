"""Consumers of a server: what they hold, and the project, user and type of each.

Placement has no list of consumers. A list is gathered from the allocations of providers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roost.client.errors import PlacementError
from roost.client.gathering import TellProgress, ask_each, gather, holdings
from roost.client.placement import ProviderBody
from roost.client.placement.administration import Administration, AmountsByClass
from roost.client.placement.placement import allocations_path
from roost.client.shapes import CONSUMER
from roost.client.transport import PlacementRequest

NO_PROJECT = "00000000-0000-0000-0000-000000000000"
"""The project of consumers that clients of 1.7 and older made without one."""


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
