"""Allocation candidates: the question of a scheduler, and its answer with reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from roost.client.claims.consumer_state import Body
from roost.client.questions import demand_answered
from roost.client.transport import PlacementRequest, PlacementResponse

CANDIDATES_LIMIT = 1000
PATH = "/allocation_candidates"

QueryValue = str | int | Sequence[str]
"""One value of a query parameter, or the values of a repeated one."""

_EXPLAIN = ("X-Roost-Explain", "1")
_REASON = "x-roost-reason"


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
