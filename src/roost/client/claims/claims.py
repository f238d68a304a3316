"""Claims: asks for candidates, and writes the allocations of consumers.

`find_candidates` and `claim` raise errors with reasons. `allocation_candidates`, `claim_resources`
and the further methods behave as those of Nova's report client: True means that the consumers have
the allocations. False means that the server refused; the log has the reason. If the server cannot
be reached, claims, moves, swaps and deletions return False as well; all further methods raise
`PlacementAPIConnectFailure`.

Methods that write try again, at most three times, if another writer changed a provider at the
same time. `roost.client.claims.allocation_writer` has the rules for a lost answer and for a server
error. An outcome that stays unknown is raised as `WriteLost`, never told as a refusal.
"""

from __future__ import annotations

import logging
import random as random_numbers
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from roost.client.claims.allocation_change import (
    AllocationChange,
    delete_change,
    post_change,
    put_change,
)
from roost.client.claims.allocation_writer import (
    DONE_BEFORE,
    AllocationWriter,
    no_allocations,
)
from roost.client.claims.candidates import (
    CandidateAnswer,
    QueryValue,
    candidate_answer,
    candidates_request,
)
from roost.client.claims.consumer_state import (
    GENERATION_VERSION,
    OBJECT_VERSION,
    TYPE_VERSION,
    Body,
    ConsumerState,
    ResourcesByProvider,
    at_least,
    claim_body,
    move_bodies,
    reading_version,
    require_amounts,
    require_version,
    swap_bodies,
    with_resources,
    without_providers,
    without_resources,
    writing_version,
)
from roost.client.claims.host_aggregates import HostAggregates
from roost.client.claims.refusals import claim_refused
from roost.client.claims.retries import Retries
from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationMoveFailed,
    AllocationUpdateFailed,
    NotConfigured,
    PlacementError,
    TransportFailed,
    UnreadableAnswer,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.placement import Placement
from roost.client.placement.answers import is_concurrent_update, refusal
from roost.client.transport import PlacementResponse, Transport
from roost.client.versions import ServerTooOld, ServerVersion, newest_common

OLDEST_WITH_CLAIMS = ServerVersion(1, 28)
"""Since then a claim says which generation of its consumer it replaces, so a repeat is safe."""
_NOT_ACCEPTABLE = 406

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
        retries = Retries(sleep, random)
        self._writer = AllocationWriter(self._placement, retries)
        self._host_aggregates = HostAggregates(self._placement, retries)

    @cached_property
    def version(self) -> str:
        """The newest version that the client and the server both speak, asked for once.

        Raises `ServerTooOld` if the server speaks none from 1.28 on.
        """
        return str(newest_common(self._transport, OLDEST_WITH_CLAIMS, "claims"))

    # -- with reasons

    def find_candidates(
        self, query: Mapping[str, QueryValue], *, explain: bool = True
    ) -> CandidateAnswer:
        """The candidates of a query; with `explain`, Roost says why there is none.

        Raises `QuestionRefused` with the reason of the server, for instance a misspelt name.
        """
        version = self.version
        answer = self._placement.send(candidates_request(query, version, explain=explain))
        if answer.status == _NOT_ACCEPTABLE:
            # An older server has taken over since, for instance in the middle of an upgrade.
            self.__dict__.pop("version", None)
            version = self.version
            answer = self._placement.send(candidates_request(query, version, explain=explain))
        return candidate_answer(answer, version)

    def claim(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        *,
        version: str | None = None,
        consumer_type: str | None = None,
        consumer_generation: int | None = None,
    ) -> None:
        """Claim an allocation request for a consumer, or raise why not.

        The arguments are those of `claim_resources`. Raises `ClaimRefused` if the server refused,
        and `AllocationUpdateFailed` if another writer changed the consumer. `WriteLost` means that
        it stays unknown whether the claim was made.
        """
        answer = self._claim(
            consumer_uuid,
            allocation_request,
            project_id,
            user_id,
            version=version,
            consumer_type=consumer_type,
            consumer_generation=consumer_generation,
        )
        if not answer.ok:
            raise claim_refused(consumer_uuid, answer)

    # -- as Nova's report client

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
        *,
        version: str | None = None,
        consumer_type: str | None = None,
        consumer_generation: int | None = None,
    ) -> bool:
        """Claim an allocation request for a consumer, which keeps its present allocations.

        `version` is that of the candidates, or the newest. `consumer_type` needs a server of
        1.38; a consumer keeps its type if none is given. `consumer_generation`, here or in the
        request, is the generation that the caller has read. If the consumer has changed since,
        `AllocationUpdateFailed` is raised.
        """

        def claim() -> bool:
            return _accepted(
                self._claim(
                    consumer_uuid,
                    allocation_request,
                    project_id,
                    user_id,
                    version=version,
                    consumer_type=consumer_type,
                    consumer_generation=consumer_generation,
                )
            )

        return _false_if_unreachable(f"claim for consumer {consumer_uuid}", claim)

    def _claim(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        *,
        version: str | None,
        consumer_type: str | None,
        consumer_generation: int | None,
    ) -> PlacementResponse:
        type_ = consumer_type or allocation_request.get("consumer_type")
        seen = consumer_generation
        if seen is None:
            seen = allocation_request.get("consumer_generation")
        asked = self._claim_version(version, with_type=type_ is not None)
        if seen is not None:
            require_version(asked, GENERATION_VERSION, "it knows no consumer generations")

        def prepare() -> AllocationChange:
            present = self._writer.read(consumer_uuid, reading_version(asked))
            generation = present.generation if seen is None else seen
            kept_type = type_ or present.consumer_type
            used = writing_version(asked, kept_type)
            body = claim_body(
                allocation_request,
                present,
                project_id=project_id,
                user_id=user_id,
                version=used,
                generation=generation,
                consumer_type=kept_type,
            )
            return put_change(consumer_uuid, body, used, generation)

        return self._writer.write(prepare, AllocationUpdateFailed)

    def _claim_version(self, given: str | None, *, with_type: bool) -> str:
        """The version of a claim: that of the caller, or the newest one."""
        version = given or self.version
        require_version(version, OBJECT_VERSION, "its allocation requests are lists")
        if with_type and given is not None:
            require_version(version, TYPE_VERSION, "it knows no consumer types")
        if with_type and not at_least(version, TYPE_VERSION):
            raise ServerTooOld(
                f"The server speaks placement {version} at most, and consumer types need "
                f"{TYPE_VERSION}. Leave the type out, or upgrade the server."
            )
        return version

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
        self._host_aggregates.edit(host_name, lambda present: present | {aggregate_uuid})

    def aggregate_remove_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Take the provider of a host out of an aggregate."""
        self._host_aggregates.edit(host_name, lambda present: present - {aggregate_uuid})

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
