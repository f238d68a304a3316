"""`GET /allocation_candidates`: the query, a kept answer or a search, and the response.

A kept answer that still holds is sent again. Else a search answers, and its answer is kept. An
empty answer tells its reason to a client that asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from time import perf_counter
from typing import NamedTuple

from roost.api.candidates.body import candidate_body, streamed_body
from roost.api.candidates.kept_answers import AnswerKey, WholeAnswer
from roost.api.candidates.query import parse_candidate_query
from roost.api.candidates.schemas import CANDIDATES, PLACEMENT_QUERY
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request, parse_query_string
from roost.api.http.responses import Response, now, with_cache_headers
from roost.api.observation.slow_requests import SearchAsked
from roost.api.routing import RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.metrics.catalogue import EMPTY_ANSWERS, SEARCHED_BLOCKS, TRUNCATED
from roost.metrics.stage_times import Stage
from roost.model.candidate_query.query import CandidateQuery
from roost.model.text import printable
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import FoundCandidates
from roost.search.forest.forest import Forest
from roost.service.questions.candidates import list_candidates
from roost.service.questions.explain import Reason, find_reason
from roost.turns import TURNS

# An answer with more candidates, some megabytes, is sent piece by piece.
_CANDIDATES_AT_ONCE_MAX = 4000
# The same for the number of candidates times the slots of each.
_FILLED_SLOTS_AT_ONCE_MAX = 32_000

# The parsed form of a longer query string is not remembered.
_SHORT_QUERY = 2000

_CONTENT_TYPE = ("content-type", "application/json")
_SEARCHED, _KEPT = "search", "kept"
TRUNCATED_HEADER = "X-Roost-Truncated"
EXPLAIN_HEADER = "X-Roost-Explain"
REASON_HEADER = "X-Roost-Reason"
# The longest reason in a header.
_REASON_LENGTH_MAX = 300
_CUT = "..."
EXPLAIN_PARAMETER = RequestParameter(
    EXPLAIN_HEADER, "`1` asks for the reason of an empty answer.", "1"
)


class AskedCandidates(NamedTuple):
    """What a client asks, and how its answer is remembered."""

    query: CandidateQuery
    # The version that the answer has.
    version: Microversion
    order: CandidateOrder
    question: AnswerKey
    # False if the next answer to the same request may differ, so that none is kept.
    is_repeatable: bool


@Route(
    "GET",
    "/allocation_candidates",
    rule="placement:allocation_candidates:list",
    summary="Find providers for a request",
    successes={
        200: Success(
            "The candidates. None are an empty list.",
            CANDIDATES,
            ("cached", "truncated", "reason"),
        )
    },
    refusals={400: "A parameter is unknown to the version, malformed, or names an unknown thing."},
    queries=(PLACEMENT_QUERY,),
    headers=(EXPLAIN_PARAMETER,),
)
def list_allocation_candidates(services: Services, request: Request) -> Response:
    """All ways to place a request, each ready for `PUT /allocations/{consumer}`.

    The answer names each provider of a candidate with its capacity, usage and traits.
    """
    text: str = request.environ.get("QUERY_STRING", "")
    parse = _parse_with_memory if len(text) <= _SHORT_QUERY else _parse
    limits = services.settings.limits
    query = parse(text, request.version, limits.max_request_groups, limits.max_query_parameters)
    order = services.settings.candidate_order
    question = text, request.version
    # The next search in random order finds other candidates.
    asked = AskedCandidates(query, request.version, order, question, not order.shuffled)
    return answer_candidates(services, request, asked)


def answer_candidates(services: Services, request: Request, asked: AskedCandidates) -> Response:
    """The answer: an earlier one that still holds, or that of a search.

    An empty answer tells its reason if the client or the operator asks for it.
    """
    explains = services.settings.watch.explain_empty or request.header(EXPLAIN_HEADER) == "1"
    forest = services.forest()
    kept = services.answers.answer(asked.question, forest)
    if kept is None:
        answer = _answer_by_search(services, request, forest, asked, explains=explains)
        if isinstance(answer, Response):
            return with_cache_headers(answer, request, now())
    else:
        answer = kept
        request.candidates = _KEPT, kept.count
    response = Response(200, answer.body, [_CONTENT_TYPE, *answer.headers])
    if explains and not answer.count:
        reason = _reason(services, forest, asked, is_exact=not answer.truncated)
        EMPTY_ANSWERS.count((reason.stage,))
        # For the line of the request in the log.
        request.reason = reason.text
        response.headers.append((REASON_HEADER, header_text(reason.text)))
    return with_cache_headers(response, request, now())


def _answer_by_search(
    services: Services,
    request: Request,
    forest: Forest,
    asked: AskedCandidates,
    *,
    explains: bool,
) -> WholeAnswer | Response:
    """The answer of a search, which is kept; a response that is sent in pieces if it is large."""
    limits, times = services.settings.limits, request.times
    began = perf_counter()
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        request.search = SearchAsked(forest, asked.query, turn)
        kept_work = services.answers.work(asked.question)
        variants = list_candidates(forest, asked.query, asked.order, turn.pause, kept_work)
        if explains and len(variants) == 1:
            variants = [_with_count_if_empty(variants[0])]
        found = variants[0]
        times.end(Stage.SEARCH, began)
        times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
        _add_to_metrics(found)
        count = sum(part.count or 0 for part in variants)
        request.candidates = _SEARCHED, count
        truncated = any(found.truncated for found in variants)
        headers = ((TRUNCATED_HEADER, str(count)),) if truncated else ()
        answer = None
        if not _is_large(found, count):
            began = perf_counter()
            body = candidate_body(variants, asked.version, services.summaries, turn.pause)
            answer = WholeAnswer(body, headers, count, truncated)
            times.end(Stage.RENDER, began)
    # The work of one variant says nothing about what other variants find.
    if found.kept_work is not None and not found.alternatives:
        repeated = answer if asked.is_repeatable else None
        services.answers.keep(asked.question, forest, found.kept_work, repeated)
    if answer is not None:
        return answer
    chunks = streamed_body(variants, asked.version, services.summaries)
    return Response(200, headers=[_CONTENT_TYPE, *headers], stream=turn.pieces(chunks))


def _reason(
    services: Services, forest: Forest, asked: AskedCandidates, *, is_exact: bool
) -> Reason:
    """Why an answer is empty."""
    answers, limits = services.answers, services.settings.limits
    reason = answers.reason(asked.question, forest)
    if reason is None:
        work = answers.work(asked.question)
        with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
            reason = find_reason(forest, asked.query, work, turn.pause, is_exact=is_exact)
        answers.keep_reason(asked.question, forest, reason)
    return reason


def _add_to_metrics(found: FoundCandidates) -> None:
    """Add a search to the metrics."""
    if found.kept_work is not None:
        SEARCHED_BLOCKS.count(amount=len(found.kept_work.looked_at))
    if found.truncated:
        TRUNCATED.count()


def _parse(
    text: str, version: Microversion, groups_max: int, parameters_max: int
) -> CandidateQuery:
    return parse_candidate_query(parse_query_string(text, parameters_max), version, groups_max)


# Clients ask the same few questions again and again.
_parse_with_memory = lru_cache(maxsize=1024)(_parse)


def _is_large(found: FoundCandidates, count: int) -> bool:
    """Whether the answer is too large for memory, or of unknown size."""
    return (
        found.count is None
        or count > _CANDIDATES_AT_ONCE_MAX
        or count * len(found.slots) > _FILLED_SLOTS_AT_ONCE_MAX
    )


def _with_count_if_empty(found: FoundCandidates) -> FoundCandidates:
    """What a search found, with the count 0 if it found nothing, even if no bound made it count."""
    if found.count is not None:
        return found
    batches = iter(found.batches)
    first = next(batches, None)
    if first is None:
        return replace(found, batches=(), count=0)
    return replace(found, batches=chain((first,), batches))


def header_text(text: str) -> str:
    """A sentence as the value of a header: in ASCII, and not too long.

    >>> header_text("No provider has inventory of PCPU.")
    'No provider has inventory of PCPU.'
    """
    plain = printable(text).encode("ascii", "replace").decode("ascii")
    return (
        plain
        if len(plain) <= _REASON_LENGTH_MAX
        else plain[: _REASON_LENGTH_MAX - len(_CUT)] + _CUT
    )


ROUTES = routes_of("Candidates", list_allocation_candidates, since=Microversion(1, 10))
