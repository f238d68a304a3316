"""Claims: a drop-in for the calls of Nova's report client that write allocations.

`find_candidates` and `claim` are those of `roost.client.claims.claiming`, and raise errors with
reasons. All further methods behave as those of Nova's report client: True means that the consumers
have the allocations. False means that the server refused; the log has the reason. If the server
cannot be reached, claims, moves, swaps and deletions return False as well; all further methods
raise `PlacementAPIConnectFailure`. An outcome that stays unknown is `WriteLost`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from roost.client.claims.allocation_writer import (
    DONE_BEFORE,
    RETRIES,
    AllocationChange,
    delete_change,
    no_allocations,
    post_change,
    put_change,
)
from roost.client.claims.claiming import Claiming, ClaimOptions, QueryValue
from roost.client.claims.consumer_state import (
    GENERATION_VERSION,
    Body,
    ConsumerState,
    ResourcesByProvider,
    move_bodies,
    require_amounts,
    require_version,
    swap_bodies,
    with_move,
    with_resources,
    without_providers,
    without_resources,
    writing_version,
)
from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationMoveFailed,
    AllocationUpdateFailed,
    NotConfigured,
    PlacementError,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    TransportFailed,
    UnreadableAnswer,
    WriteLost,
)
from roost.client.outcome import Outcome, finding_out, outcome_of
from roost.client.placement.answers import is_concurrent_update, refusal
from roost.client.transport import PlacementResponse

Candidates = tuple[list[Body], dict[str, Body], str] | tuple[None, None, None]
"""Allocation requests, provider summaries, and the version to claim one of them with."""

_LOG = logging.getLogger(__name__)


class Claims(Claiming):
    """The allocations of one placement server."""

    def allocation_candidates(self, query: Mapping[str, QueryValue]) -> Candidates:
        """The candidates of a query; three times `None` if there is no usable answer."""
        try:
            found = self.find_candidates(query, explain=False)
        except (NotConfigured, UnreadableAnswer):
            raise
        except PlacementError as error:
            _LOG.warning("No allocation candidates: %s", error)
            return None, None, None
        return found.allocation_requests, found.provider_summaries, found.version

    def claim_resources(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        **options: Unpack[ClaimOptions],
    ) -> bool:
        """Claim an allocation request for a consumer, which keeps its present allocations.

        Nova's rule for moves holds: of a provider that the consumer uses already, nothing is
        claimed, and the result is True all the same. `claim` raises an error instead.
        `AllocationUpdateFailed` is raised if the consumer has changed since its generation was
        read.
        """

        def claim() -> bool:
            return _accepted(
                self._claim(
                    consumer_uuid,
                    allocation_request,
                    project_id,
                    user_id,
                    allocated=with_move,
                    **options,
                )
            )

        return _false_if_unreachable(f"claim for consumer {consumer_uuid}", claim)

    def put_allocations(
        self, consumer_uuid: str, body: Body, *, version: str = GENERATION_VERSION
    ) -> bool:
        """Replace all allocations of a consumer with those of a body.

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
        """Replace the allocations of the target with those of the source, which loses them.

        True as well if they were moved before. From version 1.38 on the consumer's type moves too.
        """
        require_version(version, GENERATION_VERSION, "it knows no consumer generations")

        def prepare() -> AllocationChange | PlacementResponse:
            source = self._writer.read(source_uuid, version)
            target = self._writer.read(target_uuid, version)
            if not source.resources:
                return DONE_BEFORE if target.resources else no_allocations(source_uuid)
            bodies = move_bodies(source_uuid, source, target_uuid, target)
            return post_change(bodies, writing_version(version, source.consumer_type))

        def move() -> bool:
            return _accepted(self._writer.write(prepare, AllocationMoveFailed))

        return _false_if_unreachable(f"move from {source_uuid} to {target_uuid}", move)

    def swap_allocations(self, first_uuid: str, second_uuid: str) -> bool:
        """Exchange the allocations of two consumers in one step.

        Raises `AllocationMoveFailed` if a consumer has none: use `move_allocations` then.
        """

        def prepare() -> AllocationChange:
            first, second = self._writer.read(first_uuid), self._writer.read(second_uuid)
            for consumer, found in ((first_uuid, first), (second_uuid, second)):
                if not found.resources:
                    raise AllocationMoveFailed(
                        f"consumer {consumer} has no allocations to swap: move them instead"
                    )
            return post_change(
                swap_bodies(first_uuid, first, second_uuid, second), GENERATION_VERSION
            )

        def swap() -> bool:
            return _accepted(self._writer.write(prepare, AllocationMoveFailed))

        return _false_if_unreachable(f"swap of {first_uuid} and {second_uuid}", swap)

    def delete_allocations(self, consumer_uuid: str, force: bool = False) -> bool:
        """Delete all allocations of a consumer; False if it has none.

        Without `force` the call fails if the consumer changes between the read and the write.
        """
        nothing = no_allocations(consumer_uuid)

        def prepare() -> AllocationChange | PlacementResponse:
            if force:
                return delete_change(consumer_uuid)
            present = self._writer.read(consumer_uuid)
            return _put(consumer_uuid, present, {}) if present.resources else nothing

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
        """Add resources to the allocations of a consumer, which must have some."""
        require_amounts(resources)
        return self._edit(consumer_uuid, lambda present: with_resources(present, resources))

    def remove_resources(self, consumer_uuid: str, resources: ResourcesByProvider) -> bool:
        """Remove resources from the allocations of a consumer, which must have them."""
        require_amounts(resources)
        return self._edit(consumer_uuid, lambda present: without_resources(present, resources))

    def remove_provider_tree(self, consumer_uuid: str, root_uuid: str) -> bool:
        """Remove all allocations of a consumer in one tree of providers."""
        return self._edit(
            consumer_uuid, lambda present: without_providers(present, self._tree(root_uuid))
        )

    def _edit(
        self, consumer_uuid: str, edit: Callable[[ResourcesByProvider], ResourcesByProvider]
    ) -> bool:
        def prepare() -> AllocationChange | PlacementResponse:
            present = self._writer.read(consumer_uuid)
            resources = edit(present.resources)
            if resources == present.resources:
                return DONE_BEFORE
            if not present.resources:
                raise AllocationUpdateFailed(
                    f"consumer {consumer_uuid} has no allocations to change: claim first"
                )
            return _put(consumer_uuid, present, resources)

        # Each try edits the allocations as they are then, so any conflict may be retried.
        answer = self._writer.write(prepare, AllocationUpdateFailed, retry=is_concurrent_update)
        if not answer.ok and not is_concurrent_update(answer):
            message = f"the allocations of consumer {consumer_uuid} could not be changed"
            raise refusal(AllocationUpdateFailed, message, answer)
        return _accepted(answer)

    def aggregate_add_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Put the provider of a host into an aggregate."""
        self._edit_aggregates(host_name, lambda present: present | {aggregate_uuid})

    def aggregate_remove_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Take the provider of a host out of an aggregate."""
        self._edit_aggregates(host_name, lambda present: present - {aggregate_uuid})

    def _edit_aggregates(
        self, host_name: str, edit: Callable[[frozenset[str]], frozenset[str]]
    ) -> None:
        """Replace the aggregates of a host, again after a conflict or a lost answer."""
        uuid = self._provider_named(host_name)
        lost: WriteLost | None = None
        for number in self._retries:
            with finding_out(lost):
                generation, present = self._placement.aggregates(uuid)
            wanted = edit(present)
            if wanted == present:
                return
            try:
                self._placement.replace(uuid, generation, "aggregates", wanted)
            except (ResourceProviderUpdateConflict, WriteLost) as error:
                # The next try reads the aggregates again, and finds what is left to do.
                if number == RETRIES:
                    raise
                lost = error if isinstance(error, WriteLost) else None
            else:
                return

    def _provider_named(self, name: str) -> str:
        for provider in self._placement.providers_named(name):
            return str(provider["uuid"])
        raise ResourceProviderRetrievalFailed(
            f"there is no provider named {name!r}: give the exact name of the host's provider"
        )

    def _tree(self, root_uuid: str) -> list[str]:
        return [provider["uuid"] for provider in self._placement.tree(root_uuid)]


def _put(
    consumer_uuid: str, present: ConsumerState, resources: ResourcesByProvider
) -> AllocationChange:
    """The change of the resources of a consumer that was read."""
    body = present.body(resources, present.generation)
    return put_change(consumer_uuid, body, GENERATION_VERSION, present.generation)


def _accepted(answer: PlacementResponse) -> bool:
    """Whether the server accepted; the reason of a refusal is logged."""
    if not answer.ok:
        _LOG.warning("Allocations were refused: %s [%s]", answer.detail, answer.request_id)
    return answer.ok


def _false_if_unreachable(what: str, act: Callable[[], bool]) -> bool:
    """Call `act`; returns False if nothing was written because the server cannot be reached."""
    try:
        return act()
    except TransportFailed as error:
        if outcome_of(error) is not Outcome.NOT_DONE:
            raise
        _LOG.warning("The %s was not made: %s", what, error)
        return False


def _never(_answer: PlacementResponse) -> bool:
    return False
