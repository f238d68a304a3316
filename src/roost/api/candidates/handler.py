"""`/allocation_candidates`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

from roost.api.candidates.answer_cache import CachedAnswer, Question
from roost.api.candidates.body import candidate_body, streamed_body
from roost.api.candidates.empty_answers import EmptyQuestion, counted, tell_reason, wants_reason
from roost.api.candidates.query import parse_candidate_query
from roost.api.microversions import Microversion
from roost.api.requests import Request, parse_query_string
from roost.api.responses import Response, now, with_cache_headers
from roost.api.services import Services
from roost.api.slow_requests import SearchAsked
from roost.metrics.catalogue import SEARCHED_BLOCKS, TRUNCATED
from roost.metrics.stages import Stage
from roost.model.candidates import CandidateQuery
from roost.search.candidate_order import CandidateOrder
from roost.search.candidates import FoundCandidates
from roost.search.forest import Forest
from roost.search.kept_work import KeptWork
from roost.search.turns import TURNS
from roost.service.candidates import list_candidates

# An answer with more candidates, some megabytes, is sent piece by piece.
_CANDIDATES_AT_ONCE_MAX = 4000
# The same for the number of candidates times the slots of each.
_FILLED_SLOTS_AT_ONCE_MAX = 32_000

# Neither the parsed form of a longer query string nor the work on it is remembered.
_SHORT_QUERY = 2000

_CONTENT_TYPE = ("content-type", "application/json")
_SEARCHED, _KEPT = "search", "kept"
TRUNCATED_HEADER = "X-Roost-Truncated"


class AskedCandidates(NamedTuple):
    """What a client asks, and how its answer is remembered."""

    query: CandidateQuery
    # The version that the answer has.
    version: Microversion
    order: CandidateOrder
    # `None`: the next answer to the same request may differ, so none is kept.
    question: Question | None
    # Whether an empty answer says why it is empty.
    explains: bool = False


def list_all(services: Services, request: Request) -> Response:
    """The candidates for a query, and the summaries of their providers."""
    text: str = request.environ.get("QUERY_STRING", "")
    parse = _parsed_before if len(text) <= _SHORT_QUERY else _parsed
    limits = services.settings.limits
    query = parse(text, request.version, limits.max_request_groups, limits.max_query_parameters)
    order = services.settings.candidate_order
    question = text, request.version
    explains = wants_reason(request, services.settings.watch.explain_empty)
    asked = AskedCandidates(query, request.version, order, question, explains)
    return answered(services, request, asked)


def answered(services: Services, request: Request, asked: AskedCandidates) -> Response:
    """The answer: an earlier one that still holds, or that of a search."""
    forest = services.forest()
    question = asked.question
    answer = None if question is None else services.answers.find(question, forest)
    if answer is None:
        limits = services.settings.limits
        began, times = perf_counter(), request.times
        with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
            request.search = SearchAsked(forest, asked.query, turn)
            found, *further = _search(services, forest, asked, turn.pause)
            if asked.explains:
                found = counted(found)
            times.end(Stage.SEARCH, began)
            times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
            _count(found)
            count = sum(part.count or 0 for part in (found, *further))
            request.candidates = _SEARCHED, count
            headers = _headers((found, *further), count)
            if _is_large(found, count):
                chunks = streamed_body(found, asked.version, services.summaries, further=further)
                stream = turn.pieces(chunks)
                response = Response(200, headers=[_CONTENT_TYPE, *headers], stream=stream)
                return with_cache_headers(response, request, now())
            began = perf_counter()
            earlier = None if question is None else services.answers.earlier_body(question)
            body = candidate_body(
                found, asked.version, services.summaries, turn.pause, earlier, further=further
            )
            answer = CachedAnswer(body, headers, count)
            times.end(Stage.RENDER, began)
        # A search in random order has no footprint: the next one finds other candidates.
        if found.footprint is not None and question is not None and not found.choices:
            services.answers.keep(question, forest, answer, found.footprint)
    else:
        request.candidates = _KEPT, answer.count
    response = Response(200, answer.body.text, [_CONTENT_TYPE, *answer.headers])
    if asked.explains and not answer.count:
        response.headers.append(
            _reason(services, request, forest, asked, is_exact=not answer.headers)
        )
    return with_cache_headers(response, request, now())


def _search(
    services: Services, forest: Forest, asked: AskedCandidates, pause: Callable[[], None]
) -> list[FoundCandidates]:
    """What the search finds; several results for a query with alternatives."""
    kept_work = None if asked.question is None else _kept_work(services, asked.question)
    return list_candidates(forest, asked.query, asked.order, pause, kept_work)


def _kept_work(services: Services, question: Question) -> KeptWork | None:
    """What earlier searches for a question left; `None` if the question is long."""
    return services.answers.work(question) if len(question[0]) <= _SHORT_QUERY else None


def _reason(
    services: Services,
    request: Request,
    forest: Forest,
    asked: AskedCandidates,
    *,
    is_exact: bool,
) -> tuple[str, str]:
    """The header that says why an answer is empty."""
    assert asked.question is not None, "only the routes of Placement tell a reason"
    limits = services.settings.limits
    work = _kept_work(services, asked.question) or KeptWork()
    empty = EmptyQuestion(asked.question, forest, asked.query, work, is_exact)
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        return tell_reason(request, empty, services.answers, turn.pause)


def _count(found: FoundCandidates) -> None:
    """Add a search to the metrics."""
    if found.footprint is not None:
        SEARCHED_BLOCKS.count(amount=len(found.footprint.tokens))
    if found.truncated:
        TRUNCATED.count()


def _parsed(
    text: str, version: Microversion, groups_max: int, parameters_max: int
) -> CandidateQuery:
    return parse_candidate_query(parse_query_string(text, parameters_max), version, groups_max)


# Clients ask the same few questions again and again.
_parsed_before = lru_cache(maxsize=1024)(_parsed)


def _is_large(found: FoundCandidates, count: int) -> bool:
    """Whether the answer is too large for memory, or of unknown size."""
    return (
        found.count is None
        or count > _CANDIDATES_AT_ONCE_MAX
        or count * len(found.slots) > _FILLED_SLOTS_AT_ONCE_MAX
    )


def _headers(parts: Sequence[FoundCandidates], count: int) -> tuple[tuple[str, str], ...]:
    truncated = any(found.truncated for found in parts)
    return ((TRUNCATED_HEADER, str(count)),) if truncated else ()
