"""A change of allocations: one request, and the allocations that its consumers get. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.client.claims.consumer_state import Body, ConsumerState
from roost.client.outcome import Outcome
from roost.client.placement.placement import allocations_path
from roost.client.transport import PlacementRequest

AllocationsByConsumer = Mapping[str, ConsumerState]


@dataclass(frozen=True, slots=True)
class AllocationChange:
    """A request that gives consumers new allocations.

    `generations` are those that the request replaces; it replaces a consumer without generation
    in any case.
    """

    request: PlacementRequest
    bodies: Mapping[str, Body]
    generations: Mapping[str, int | None] = field(default_factory=dict)

    def outcome(self, now: AllocationsByConsumer) -> Outcome:
        """Whether the change is carried out, given what its consumers have now.

        Consumers are read in turn. A change that the server carries out in between shows in some
        of them only, and counts as not done.
        """
        done = all(self._is_done(consumer, found) for consumer, found in now.items())
        return Outcome.DONE if done else Outcome.NOT_DONE

    def is_overtaken(self, now: AllocationsByConsumer) -> bool:
        """Whether another writer has changed a consumer since the change was prepared."""
        return any(
            self.generations.get(consumer, found.generation) != found.generation
            and not self._is_done(consumer, found)
            for consumer, found in now.items()
        )

    def _is_done(self, consumer: str, now: ConsumerState) -> bool:
        return now.equals(ConsumerState.from_body(self.bodies[consumer]))


def put_change(
    consumer_uuid: str, body: Body, version: str, generation: int | None
) -> AllocationChange:
    """The change of one consumer."""
    request = PlacementRequest("PUT", allocations_path(consumer_uuid), body, version)
    return AllocationChange(request, {consumer_uuid: body}, {consumer_uuid: generation})


def post_change(bodies: Mapping[str, Body], version: str) -> AllocationChange:
    """The change of several consumers in one step."""
    generations = {consumer: body["consumer_generation"] for consumer, body in bodies.items()}
    request = PlacementRequest("POST", "/allocations", dict(bodies), version)
    return AllocationChange(request, bodies, generations)


def delete_change(consumer_uuid: str) -> AllocationChange:
    """The change that deletes all allocations of a consumer, at any generation."""
    request = PlacementRequest("DELETE", allocations_path(consumer_uuid))
    return AllocationChange(request, {consumer_uuid: {"allocations": {}}})
