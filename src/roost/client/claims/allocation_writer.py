"""The writer of allocations: retries conflicts, and finds out about unknown outcomes.

The server may have carried out a write whose answer was lost; it may do so later, or never. The
same is true of a write that was answered with a server error (5xx). So:

1. The writer reads the consumers. If they have what was sent, the write is done.
2. If another writer has changed a consumer since, nothing more is written. That writer may have
   replaced what was written, or added to it, so the outcome stays unknown.
3. Otherwise the writer sends the same bytes again. They replace the same generations, so the
   server accepts at most one of all copies, however late the first one arrives.
4. After that the result is never "refused": the server might carry the first copy out after it
   refused a later one. An outcome that stays unknown is raised as `WriteLost`.

Before version 1.28 the server compares no generations. There a late copy can replace what another
writer wrote meanwhile; resources are still not claimed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from roost.client.claims.consumer_state import (
    GENERATION_VERSION,
    Body,
    ConsumerState,
    reading_version,
)
from roost.client.errors import (
    NotConfigured,
    PlacementError,
    TransportFailed,
    UnreadableAnswer,
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.placement import Placement
from roost.client.placement.answers import is_concurrent_update, refusal
from roost.client.placement.placement import allocations_path
from roost.client.shapes import CONSUMER
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import TOO_MANY_REQUESTS

RETRIES = 3
"""How often a write is tried again after the first try."""

AllocationsByConsumer = Mapping[str, ConsumerState]

_CONSUMER_CONFLICT = "consumer generation conflict"

DONE_BEFORE = PlacementResponse(204)
"""Stands for the answer to a write that was carried out before."""


class Retries:
    """The numbers of the tries, from 0; sleeps a random time before each but the first."""

    def __init__(
        self, sleep: Callable[[float], None], random: Callable[[float, float], float]
    ) -> None:
        self._sleep = sleep
        self._random = random

    def __iter__(self) -> Iterator[int]:
        yield 0
        for number in range(1, RETRIES + 1):
            self._sleep(self._random(0, 2 * number))
            yield number


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


class _ReadRefused(Exception):
    """The server refused to send the allocations of a consumer."""

    def __init__(self, answer: PlacementResponse) -> None:
        super().__init__(answer.detail)
        self.answer = answer


def is_consumer_conflict(answer: PlacementResponse) -> bool:
    """Whether another writer changed the consumer: only the caller can decide what to do."""
    return is_concurrent_update(answer) and _CONSUMER_CONFLICT in answer.detail


def is_provider_conflict(answer: PlacementResponse) -> bool:
    """Whether another writer changed a provider: the same write may succeed the next time."""
    return is_concurrent_update(answer) and not is_consumer_conflict(answer)


def no_allocations(consumer_uuid: str) -> PlacementResponse:
    """Stands for the answer to a write that is not needed: the consumer has no allocations."""
    return PlacementResponse(404, content=f"consumer {consumer_uuid} has no allocations".encode())


class AllocationWriter:
    """Reads and writes the allocations of consumers."""

    def __init__(self, placement: Placement, retries: Retries) -> None:
        self._placement = placement
        self._retries = retries

    def read(self, consumer_uuid: str, version: str = GENERATION_VERSION) -> ConsumerState:
        """What a consumer has; only for the function that `write` gets as `prepare`."""
        path = allocations_path(consumer_uuid)
        answer = self._placement.send(
            PlacementRequest("GET", path, version=version, repeatable=True)
        )
        if not answer.ok:
            raise _ReadRefused(answer)
        try:
            return ConsumerState.from_body(answer.shaped(CONSUMER))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise answer.unreadable() from error

    def write(
        self,
        prepare: Callable[[], AllocationChange | PlacementResponse],
        failure: type[PlacementError],
        retry: Callable[[PlacementResponse], bool] = is_provider_conflict,
    ) -> PlacementResponse:
        """Send the change that `prepare` makes, a new one for each try; returns the last answer.

        `retry` tells which answers are tried again. If `prepare` returns an answer, nothing is
        sent. If `prepare` cannot read a consumer, the refusal is the answer. A conflict about a
        consumer that is not retried is raised as `failure`.
        """
        answer: PlacementResponse
        tries = iter(self._retries)
        for _ in tries:
            try:
                change = prepare()
            except _ReadRefused as refused:
                return refused.answer
            if isinstance(change, PlacementResponse):
                return change
            try:
                answer = self._send(change)
            except WriteLost as lost:
                return self._settle(change, lost, tries)
            if not retry(answer):
                if is_consumer_conflict(answer):
                    raise refusal(failure, _consumer_changed(change.request), answer)
                break
        return answer

    def _send(self, change: AllocationChange) -> PlacementResponse:
        """Send the change; raises `WriteLost` after an answer that leaves the outcome open."""
        answer = self._placement.send(change.request)
        if outcome_of(answer) is Outcome.UNKNOWN:
            message = (
                f"the server failed at {change.request}, and may have carried it out or not: read "
                f"the allocations of {', '.join(change.bodies)} before writing again"
            )
            raise refusal(WriteLost, message, answer)
        return answer

    def _settle(
        self, change: AllocationChange, lost: WriteLost, tries: Iterator[int]
    ) -> PlacementResponse:
        """Find out about a change of unknown outcome, by the rules at the top of the module."""
        refused = None
        for _ in tries:
            outcome = self._outcome(change, lost)
            if outcome is Outcome.DONE:
                return DONE_BEFORE
            if outcome is Outcome.UNKNOWN:
                continue
            try:
                refused = self._send(change)
            except (TransportFailed, NotConfigured):
                continue
            if refused.ok:
                return refused
            if not (is_concurrent_update(refused) or refused.status == TOO_MANY_REQUESTS):
                break
        if self._outcome(change, lost) is Outcome.DONE:
            return DONE_BEFORE
        if refused is None:
            raise lost
        message = f"the answer to {change.request} was lost, and sending it again was refused"
        raise refusal(WriteLost, message, refused) from lost

    def _outcome(self, change: AllocationChange, lost: WriteLost) -> Outcome:
        """The outcome of a change as its consumers show it."""
        try:
            version = reading_version(change.request.version)
            now = {consumer: self.read(consumer, version) for consumer in change.bodies}
        except (TransportFailed, NotConfigured, UnreadableAnswer, _ReadRefused):
            return Outcome.UNKNOWN
        if change.is_overtaken(now):
            consumers = ", ".join(change.bodies)
            raise WriteLost(
                f"the answer to {change.request} was lost, and another writer has changed the "
                f"allocations of {consumers} since: read them before writing again"
            ) from lost
        return change.outcome(now)


def _consumer_changed(request: PlacementRequest) -> str:
    return (
        f"{request} was refused, because another writer has changed a consumer: read its "
        "allocations, then write again"
    )
