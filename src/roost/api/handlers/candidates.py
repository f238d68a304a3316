"""`/allocation_candidates`."""

from __future__ import annotations

from functools import lru_cache

from roost.api.answer_cache import CachedAnswer
from roost.api.candidate_body import candidate_body, streamed_body
from roost.api.candidate_query import parse_candidate_query
from roost.api.microversions import Microversion
from roost.api.requests import Request, parse_query_string
from roost.api.responses import Response, now, with_cache_headers
from roost.model.candidates import CandidateQuery
from roost.search.candidates import Found
from roost.search.turns import TURNS
from roost.service.candidates import list_candidates

# Larger answers are sent piece by piece: some megabytes.
_CANDIDATES_AT_ONCE_MAX = 4000
# The same for candidates times the parts of which each consists.
_CHOICES_AT_ONCE_MAX = 32_000

# Longer ones are not worth being remembered.
_SHORT_QUERY = 2000

_CONTENT_TYPE = ("content-type", "application/json")
TRUNCATED_HEADER = "X-Roost-Truncated"


def list_all(request: Request) -> Response:
    """The candidates for a query, and the providers that they take from."""
    text: str = request.environ.get("QUERY_STRING", "")
    parse = _parsed_before if len(text) <= _SHORT_QUERY else _parsed
    query = parse(text, request.version, request.settings.limits.max_request_groups)
    forest = request.replica.current()
    order = request.settings.candidate_order
    answer = None if order.shuffled else request.answers.find(text, request.version, forest)
    if answer is None:
        with TURNS.turn() as turn:
            found = list_candidates(forest, query, order, turn.pause)
            headers = _headers(found)
            if _is_large(found):
                stream = turn.pieces(streamed_body(found, request.version))
                response = Response(200, headers=[_CONTENT_TYPE, *headers], stream=stream)
                return with_cache_headers(response, request, now())
            answer = CachedAnswer(candidate_body(found, request.version, turn.pause), headers)
        request.answers.keep(text, request.version, forest, answer)
    response = Response(200, answer.body, [_CONTENT_TYPE, *answer.headers])
    return with_cache_headers(response, request, now())


def _parsed(text: str, version: Microversion, groups_max: int) -> CandidateQuery:
    return parse_candidate_query(parse_query_string(text), version, groups_max)


# Clients ask the same few questions again and again.
_parsed_before = lru_cache(maxsize=1024)(_parsed)


def _is_large(found: Found) -> bool:
    """Whether an answer is too large to be held; its size may not even be known."""
    return (
        found.count is None
        or found.count > _CANDIDATES_AT_ONCE_MAX
        or found.count * len(found.parts) > _CHOICES_AT_ONCE_MAX
    )


def _headers(found: Found) -> tuple[tuple[str, str], ...]:
    return ((TRUNCATED_HEADER, str(found.count)),) if found.truncated else ()
