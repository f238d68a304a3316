"""`/allocation_candidates`."""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter

from roost.api.candidates.answer_cache import CachedAnswer
from roost.api.candidates.body import candidate_body, streamed_body
from roost.api.candidates.query import parse_candidate_query
from roost.api.microversions import Microversion
from roost.api.requests import Request, parse_query_string
from roost.api.responses import Response, now, with_cache_headers
from roost.api.services import Services
from roost.api.slow_requests import SearchAsked
from roost.metrics.catalogue import SEARCHED_BLOCKS, TRUNCATED
from roost.metrics.stages import Stage
from roost.model.candidates import CandidateQuery
from roost.search.candidates import FoundCandidates
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


def list_all(services: Services, request: Request) -> Response:
    """The candidates for a query, and the summaries of their providers."""
    text: str = request.environ.get("QUERY_STRING", "")
    parse = _parsed_before if len(text) <= _SHORT_QUERY else _parsed
    limits = services.settings.limits
    query = parse(text, request.version, limits.max_request_groups, limits.max_query_parameters)
    forest = services.forest()
    question = text, request.version
    answer = services.answers.find(question, forest)
    if answer is None:
        request.search = SearchAsked(forest, query)
        began, times = perf_counter(), request.times
        with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
            found = list_candidates(
                forest,
                query,
                services.settings.candidate_order,
                turn.pause,
                services.answers.work(question) if len(text) <= _SHORT_QUERY else None,
            )
            times.end(Stage.SEARCH, began)
            times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
            _count(found)
            request.candidates = _SEARCHED, found.count or 0
            headers = _headers(found)
            if _is_large(found):
                stream = turn.pieces(streamed_body(found, request.version, services.summaries))
                response = Response(200, headers=[_CONTENT_TYPE, *headers], stream=stream)
                return with_cache_headers(response, request, now())
            began = perf_counter()
            earlier = services.answers.earlier_body(question)
            body = candidate_body(found, request.version, services.summaries, turn.pause, earlier)
            answer = CachedAnswer(body, headers, found.count or 0)
            times.end(Stage.RENDER, began)
        # A search in random order has no footprint: the next one finds other candidates.
        if found.footprint is not None:
            services.answers.keep(question, forest, answer, found.footprint)
    else:
        request.candidates = _KEPT, answer.count
    response = Response(200, answer.body.text, [_CONTENT_TYPE, *answer.headers])
    return with_cache_headers(response, request, now())


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


def _is_large(found: FoundCandidates) -> bool:
    """Whether the answer is too large for memory, or of unknown size."""
    return (
        found.count is None
        or found.count > _CANDIDATES_AT_ONCE_MAX
        or found.count * len(found.slots) > _FILLED_SLOTS_AT_ONCE_MAX
    )


def _headers(found: FoundCandidates) -> tuple[tuple[str, str], ...]:
    return ((TRUNCATED_HEADER, str(found.count)),) if found.truncated else ()
