"""Claims: consumers get, keep, move and give back the resources of providers.

Methods that write try again, at most three times, when somebody else changed a provider at the
same moment. True means that the allocations are as asked for; False that they are not, and that
nothing of the call is under way any more. The log says why.

Claims, moves, swaps and deletions are False as well if the server cannot be reached; the other
methods raise `PlacementAPIConnectFailure` then. When an answer is lost, the rule at the top of
`roost.client.claims.writing` applies; what cannot be settled by it raises `AnswerLost`.
"""

from __future__ import annotations

import logging
import random as random_numbers
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from roost.client.claims.requests import (
    GENERATION_VERSION,
    OBJECT_VERSION,
    Body,
    Holding,
    ResourcesByProvider,
    claim_body,
    move_bodies,
    move_version,
    require_amounts,
    require_version,
    swap_bodies,
    with_resources,
    without_providers,
    without_resources,
)
from roost.client.claims.writing import (
    DONE_BEFORE,
    RETRIES,
    AllocationWriter,
    Change,
    delete_change,
    is_conflict,
    nothing_held,
    post_change,
    put_change,
    refusal,
)
from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationMoveFailed,
    AllocationUpdateFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    TransportFailed,
    WriteLost,
)
from roost.client.reporting.placement import Placement
from roost.client.transport import Request, Response, Transport

CANDIDATES_VERSION = "1.36"
CANDIDATES_LIMIT = 1000

QueryValue = str | int | Sequence[str]
"""One value of a query parameter, or several of one that may be repeated."""
Candidates = tuple[list[Body], dict[str, Body], str] | tuple[None, None, None]
"""Allocation requests, provider summaries, and the version to claim one of them with."""

_LOG = logging.getLogger(__name__)


class Claims:
    """The allocations of one placement server."""

    def __init__(
        self,
        transport: Transport,
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[float, float], float] = random_numbers.uniform,
    ) -> None:
        self._transport = transport
        self._placement = Placement(transport)
        self._writer = AllocationWriter(transport, sleep, random)

    def allocation_candidates(self, query: Mapping[str, QueryValue]) -> Candidates:
        """Where a request could be placed; three times None if the server does not tell."""
        parameters = sorted({"limit": CANDIDATES_LIMIT, **query}.items())
        path = f"/allocation_candidates?{urlencode(parameters, doseq=True)}"
        request = Request("GET", path, version=CANDIDATES_VERSION, repeatable=True)
        try:
            answer = self._transport.send(request)
        except TransportFailed as error:
            _LOG.warning("No allocation candidates: %s", error)
            return None, None, None
        if answer.status != 200:
            _LOG.warning("No allocation candidates: %s", _described(request, answer))
            return None, None, None
        return (
            answer.field("allocation_requests"),
            answer.field("provider_summaries"),
            CANDIDATES_VERSION,
        )

    def claim_resources(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        *,
        version: str = CANDIDATES_VERSION,
        consumer_generation: int | None = None,
    ) -> bool:
        """Claim an allocation request for a consumer, which keeps what it holds already.

        `consumer_generation`, here or in the request, is the one that the caller has seen; if the
        consumer has changed since then, or changes meanwhile, `AllocationUpdateFailed` is raised.
        """
        require_version(version, OBJECT_VERSION, "its allocation requests are lists")
        seen = consumer_generation
        if seen is None:
            seen = allocation_request.get("consumer_generation")
        if seen is not None:
            require_version(version, GENERATION_VERSION, "it knows no consumer generations")

        def prepare() -> Change:
            held = self._writer.read(consumer_uuid)
            generation = held.generation if seen is None else seen
            body = claim_body(
                allocation_request,
                held,
                project_id=project_id,
                user_id=user_id,
                version=version,
                generation=generation,
            )
            return put_change(consumer_uuid, body, version, generation)

        def claim() -> bool:
            return _accepted(self._writer.write(prepare, AllocationUpdateFailed))

        return _false_if_unreachable(f"claim for consumer {consumer_uuid}", claim)

    def put_allocations(
        self, consumer_uuid: str, body: Body, *, version: str = GENERATION_VERSION
    ) -> bool:
        """Replace all that a consumer holds with what a body says.

        Raises `AllocationUpdateFailed` if the consumer is not at the body's generation, and
        `PlacementAPIConnectFailure` if there is no connection.
        """
        require_version(version, GENERATION_VERSION, "it knows no consumer generations")
        if "consumer_generation" not in body:
            raise ValueError(
                f"the body for consumer {consumer_uuid} lacks consumer_generation: give the one "
                "that was read, or None for a new consumer"
            )
        change = put_change(consumer_uuid, body, version, body["consumer_generation"])
        return _accepted(self._writer.write(lambda: change, AllocationUpdateFailed))

    def move_allocations(
        self, source_uuid: str, target_uuid: str, *, version: str = GENERATION_VERSION
    ) -> bool:
        """Give all that one consumer holds to another one, in place of what that one holds.

        Also true if it was moved before. From version 1.38 on the consumer's type moves as well.
        """
        require_version(version, GENERATION_VERSION, "it knows no consumer generations")

        def prepare() -> Change | Response:
            source = self._writer.read(source_uuid, version)
            target = self._writer.read(target_uuid, version)
            if not source.resources:
                return DONE_BEFORE if target.resources else nothing_held(source_uuid)
            bodies = move_bodies(source_uuid, source, target_uuid, target)
            return post_change(bodies, move_version(version, source))

        def move() -> bool:
            return _accepted(self._writer.write(prepare, AllocationMoveFailed))

        return _false_if_unreachable(f"move from {source_uuid} to {target_uuid}", move)

    def swap_allocations(self, first_uuid: str, second_uuid: str) -> bool:
        """Give to each of two consumers what the other one holds, in one step.

        Raises `AllocationMoveFailed` if one of them holds nothing: that would be a move.
        """

        def prepare() -> Change:
            first, second = self._writer.read(first_uuid), self._writer.read(second_uuid)
            for consumer, holding in ((first_uuid, first), (second_uuid, second)):
                if not holding.resources:
                    raise AllocationMoveFailed(f"consumer {consumer} has nothing to swap")
            return post_change(
                swap_bodies(first_uuid, first, second_uuid, second), GENERATION_VERSION
            )

        def swap() -> bool:
            return _accepted(self._writer.write(prepare, AllocationMoveFailed))

        return _false_if_unreachable(f"swap of {first_uuid} and {second_uuid}", swap)

    def delete_allocations(self, consumer_uuid: str, force: bool = False) -> bool:
        """Take from a consumer all that it holds; False if it holds nothing.

        Without `force` it fails if the consumer changes between reading and writing.
        """
        nothing = nothing_held(consumer_uuid)

        def prepare() -> Change | Response:
            if force:
                return delete_change(consumer_uuid)
            held = self._writer.read(consumer_uuid)
            return _put(consumer_uuid, held, {}) if held.resources else nothing

        def delete() -> bool:
            answer = self._writer.write(prepare, AllocationDeleteFailed, retry=_never)
            if answer is nothing or (force and answer.status == 404):
                return False
            if not answer.ok:
                message = f"the allocations of consumer {consumer_uuid} could not be deleted"
                raise refusal(AllocationDeleteFailed, message, answer)
            return True

        return _false_if_unreachable(f"deletion for consumer {consumer_uuid}", delete)

    def add_resources(self, consumer_uuid: str, resources: ResourcesByProvider) -> bool:
        """Add resources to what a consumer holds; it has to hold something."""
        require_amounts(resources)
        return self._edit(consumer_uuid, lambda held: with_resources(held, resources))

    def remove_resources(self, consumer_uuid: str, resources: ResourcesByProvider) -> bool:
        """Take resources from what a consumer holds, which has to be as much at least."""
        require_amounts(resources)
        return self._edit(consumer_uuid, lambda held: without_resources(held, resources))

    def remove_provider_tree(self, consumer_uuid: str, root_uuid: str) -> bool:
        """Take from a consumer all that it holds in one tree of providers, if anything."""
        return self._edit(
            consumer_uuid, lambda held: without_providers(held, self._tree(root_uuid))
        )

    def _edit(
        self, consumer_uuid: str, edit: Callable[[ResourcesByProvider], ResourcesByProvider]
    ) -> bool:
        def prepare() -> Change | Response:
            held = self._writer.read(consumer_uuid)
            resources = edit(held.resources)
            if resources == held.resources:
                return DONE_BEFORE
            if not held.resources:
                raise AllocationUpdateFailed(
                    f"consumer {consumer_uuid} holds nothing that could be changed: claim first"
                )
            return _put(consumer_uuid, held, resources)

        # The edit is made again on what is then there, so any conflict may be retried.
        answer = self._writer.write(prepare, AllocationUpdateFailed, retry=is_conflict)
        if not answer.ok and not is_conflict(answer):
            message = f"the allocations of consumer {consumer_uuid} could not be changed"
            raise refusal(AllocationUpdateFailed, message, answer)
        return _accepted(answer)

    def aggregate_add_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Put the provider of a host into an aggregate."""
        self._edit_aggregates(host_name, lambda there: there | {aggregate_uuid})

    def aggregate_remove_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Take the provider of a host out of an aggregate."""
        self._edit_aggregates(host_name, lambda there: there - {aggregate_uuid})

    def _edit_aggregates(
        self, host_name: str, edit: Callable[[frozenset[str]], frozenset[str]]
    ) -> None:
        uuid = self._provider_named(host_name)
        for number in self._writer.tries():
            generation, there = self._placement.aggregates(uuid)
            wanted = edit(there)
            if wanted == there:
                return
            try:
                self._placement.put_aggregates(uuid, generation, wanted)
            except (ResourceProviderUpdateConflict, WriteLost):
                # What is there now tells whether there is anything left to do.
                if number == RETRIES:
                    raise
            else:
                return

    def _provider_named(self, name: str) -> str:
        for provider in self._placement.providers_named(name):
            return str(provider["uuid"])
        raise ResourceProviderRetrievalFailed(
            f"there is no provider named {name!r}: a host's provider bears its exact name"
        )

    def _tree(self, root_uuid: str) -> list[str]:
        return [provider["uuid"] for provider in self._placement.tree(root_uuid)]


def _put(consumer_uuid: str, held: Holding, resources: ResourcesByProvider) -> Change:
    """The change that makes a consumer hold other resources than it did when it was read."""
    body = held.body(resources, held.generation)
    return put_change(consumer_uuid, body, GENERATION_VERSION, held.generation)


def _accepted(answer: Response) -> bool:
    """Whether the server took it; if not, the log says why."""
    if not answer.ok:
        _LOG.warning("Allocations were refused: %s [%s]", answer.detail, answer.request_id)
    return answer.ok


def _false_if_unreachable(what: str, act: Callable[[], bool]) -> bool:
    """False instead of an error when nothing was written because the server cannot be asked."""
    try:
        return act()
    except TransportFailed as error:
        if error.maybe_done:
            raise
        _LOG.warning("No %s: %s", what, error)
        return False


def _never(_answer: Response) -> bool:
    return False


def _described(request: Request, answer: Response) -> str:
    return f"{request} was answered with {answer.status} [{answer.request_id}]: {answer.detail}"
