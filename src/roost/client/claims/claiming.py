"""Claiming: asks for candidates and claims one of them, or says why that cannot be done.

Methods that write try again, at most three times, if another writer changed a provider at the
same time. `roost.client.claims.allocation_writer` has the rules for a lost answer and for a server
error. An outcome that stays unknown is raised as `WriteLost`, never told as a refusal.
"""

from __future__ import annotations

import random as random_numbers
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, Unpack
from urllib.parse import urlencode

from roost.client.claims.allocation_writer import (
    AllocationChange,
    AllocationWriter,
    Retries,
    put_change,
)
from roost.client.claims.consumer_state import (
    GENERATION_VERSION,
    OBJECT_VERSION,
    TYPE_VERSION,
    Body,
    ResourcesByProvider,
    at_least,
    claim_body,
    reading_version,
    require_version,
    with_claim,
    writing_version,
)
from roost.client.errors import AllocationUpdateFailed, ClaimRefused
from roost.client.placement import Placement
from roost.client.placement.answers import is_concurrent_update, reason_of
from roost.client.questions import demand_answered
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.client.versions import ServerTooOld, ServerVersion, newest_common

CANDIDATES_LIMIT = 1000
PATH = "/allocation_candidates"

QueryValue = str | int | Sequence[str]
"""One value of a query parameter, or the values of a repeated one."""

_EXPLAIN = ("X-Roost-Explain", "1")
_REASON = "x-roost-reason"

_SHORT = re.compile(r"'([A-Z0-9_, ]+)' on resource provider '([^']+)'")

OLDEST_WITH_CLAIMS = ServerVersion(1, 28)
"""Since then a claim says which generation of its consumer it replaces, so a repeat is safe."""
_NOT_ACCEPTABLE = 406


@dataclass(frozen=True, slots=True)
class CandidateAnswer:
    """The candidates of a query, and the version to claim one of them with.

    `reason` says why there is none. Only Roost tells it, so it may be `None`.
    """

    allocation_requests: list[Body]
    provider_summaries: dict[str, Body]
    version: str
    reason: str | None = None


def candidates_request(
    query: Mapping[str, QueryValue], version: str, *, explain: bool
) -> PlacementRequest:
    """The request for the candidates of a query, at most 1000 unless the query says otherwise."""
    parameters = sorted({"limit": CANDIDATES_LIMIT, **query}.items())
    return PlacementRequest(
        "GET",
        f"{PATH}?{urlencode(parameters, doseq=True)}",
        version=version,
        repeatable=True,
        own_headers=(_EXPLAIN,) if explain else (),
    )


def candidate_answer(answer: PlacementResponse, version: str) -> CandidateAnswer:
    """The candidates of an answer; raises `QuestionRefused` if the server refused."""
    demand_answered(PATH, answer)
    return CandidateAnswer(
        answer.field("allocation_requests", [{"allocations": dict}]),
        answer.field("provider_summaries", {str: dict}),
        version,
        answer.headers.get(_REASON),
    )


def claim_refused(consumer_uuid: str, answer: PlacementResponse) -> ClaimRefused:
    """The error for a claim that the server refused."""
    message = f"The claim for consumer {consumer_uuid} was not made"
    if is_concurrent_update(answer):
        message += ", because other writers changed its providers at each try; claim again"
    short = _SHORT.search(answer.detail)
    error = ClaimRefused(
        message,
        status=answer.status,
        detail=reason_of(answer),
        request_id=answer.request_id,
        provider_uuid=short[2] if short else None,
        code=answer.code,
    )
    error.resource_class = short[1] if short else None
    return error


def demand_types(version: str) -> None:
    """Raise an error if the newest version of the server knows no consumer types."""
    if not at_least(version, TYPE_VERSION):
        raise ServerTooOld(
            f"The server speaks placement {version} at most, and consumer types need "
            f"{TYPE_VERSION}. Leave the type out, or upgrade the server."
        )


class ClaimOptions(TypedDict, total=False):
    """What a caller may say about a claim."""

    version: str | None
    """That of the candidates. If there is none, the claim has the newest version."""
    consumer_type: str | None
    """Needs a server of 1.38. Without a type, a consumer keeps its own."""
    consumer_generation: int | None
    """The generation that the caller has read, here or in the allocation request."""


class Claiming:
    """Claims at one placement server."""

    def __init__(
        self,
        transport: Transport,
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[float, float], float] = random_numbers.uniform,
    ) -> None:
        self._transport = transport
        self._placement = Placement(transport)
        self._retries = Retries(sleep, random)
        self._writer = AllocationWriter(self._placement, self._retries)

    @cached_property
    def version(self) -> str:
        """The newest version that the client and the server both speak, asked for once.

        Raises `ServerTooOld` if the server speaks none from 1.28 on.
        """
        return str(newest_common(self._transport, OLDEST_WITH_CLAIMS, "claims"))

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
        **options: Unpack[ClaimOptions],
    ) -> None:
        """Claim an allocation request for a consumer, or raise why not.

        The consumer keeps what it holds of other providers. Of the claimed providers it must hold
        nothing, or exactly what it claims: anything else is `AlreadyAllocated`. Raises
        `ClaimRefused` if the server refused, and `AllocationUpdateFailed` if another writer
        changed the consumer. `WriteLost` means that it stays unknown whether the claim was made.
        """
        answer = self._claim(
            consumer_uuid,
            allocation_request,
            project_id,
            user_id,
            allocated=lambda present, wanted: with_claim(consumer_uuid, present, wanted),
            **options,
        )
        if not answer.ok:
            raise claim_refused(consumer_uuid, answer)

    def _claim(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        *,
        allocated: Callable[[ResourcesByProvider, Mapping[str, Any]], Body],
        **options: Unpack[ClaimOptions],
    ) -> PlacementResponse:
        """Send a claim; `allocated` makes the allocations out of the present and claimed ones."""
        type_ = options.get("consumer_type") or allocation_request.get("consumer_type")
        seen = options.get("consumer_generation")
        if seen is None:
            seen = allocation_request.get("consumer_generation")
        asked = self._claim_version(options.get("version"), with_type=type_ is not None)
        if seen is not None:
            require_version(asked, GENERATION_VERSION, "it knows no consumer generations")

        def prepare() -> AllocationChange:
            present = self._writer.read(consumer_uuid, reading_version(asked))
            generation = present.generation if seen is None else seen
            kept_type = type_ or present.consumer_type
            used = writing_version(asked, kept_type)
            body = claim_body(
                allocation_request,
                allocated(present.resources, allocation_request["allocations"]),
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
        if with_type:
            demand_types(version)
        return version
