"""`/roost/candidates`: questions beyond those of the Placement API, and the order of the answer.

The answer has the shape of `GET /allocation_candidates` at the newest microversion.
"""

from __future__ import annotations

from dataclasses import replace
from random import getrandbits

from roost.api.candidates.handler import EXPLAIN_PARAMETER, AskedCandidates, answer_candidates
from roost.api.candidates.schemas import EXTENDED_CANDIDATES, EXTENDED_QUERY, FIRST, ORDERS
from roost.api.extensions.parameters import (
    NUMBER,
    QUESTIONS,
    Parameters,
    places_of,
    read_query,
    split_parameters,
)
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import choice
from roost.api.http.microversions import MAX_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.search.candidates.ranking import CandidateOrder, Ranking, RankingKind

_SEED_MAX = 2**32 - 1
_OWN = QueryString.of(
    RequestParameter("order", "The order of the candidates.", FIRST, choice(*map(str, ORDERS))),
    RequestParameter("seed", "Repeats an order at random.", "1", NUMBER),
)


@Route(
    "GET",
    "/roost/candidates",
    rule="roost:candidates:list",
    summary="Ask for candidates beyond the Placement API",
    successes={
        200: Success(
            "The candidates, in the order asked for.",
            EXTENDED_CANDIDATES,
            ("cached", "truncated", "reason"),
        )
    },
    queries=(_OWN, EXTENDED_QUERY),
    headers=(EXPLAIN_PARAMETER,),
)
def list_extended_candidates(services: Services, request: Request) -> Response:
    """Like `GET /allocation_candidates` of the newest version, with more parameters and orders."""
    parameters = split_parameters(request, _OWN.names)
    order = parse_order(parameters, services.settings.candidate_order)
    query = read_query(services, parameters.rest)
    is_random = order.ranking is not None and order.ranking.kind is RankingKind.RANDOM
    is_repeatable = not order.shuffled and (not is_random or "seed" in parameters.own)
    # A provider may get the name of another one, so a question has the providers that are meant.
    question = request.environ.get("QUERY_STRING", ""), (request.route, *places_of(query))
    asked = AskedCandidates(query, MAX_VERSION, order, question, is_repeatable)
    return answer_candidates(services, request, asked)


def parse_order(parameters: Parameters, configured: CandidateOrder) -> CandidateOrder:
    """The order that a client asks for; without `order`, the one that the operator configures."""
    name = parameters.own.get("order")
    if name is not None and name not in ORDERS:
        names = ", ".join(ORDERS)
        raise bad_value(f"order is {name[:40]!r}. Send one of these: {names}.")
    if "seed" in parameters.own and name != RankingKind.RANDOM:
        raise bad_value("seed belongs to order=random. Leave seed out, or send this order.")
    if name is None:
        return configured
    if name == FIRST:
        return replace(configured, shuffled=False)
    seed = parameters.integer("seed", getrandbits(32), least=0, most=_SEED_MAX)
    return replace(configured, shuffled=False, ranking=Ranking(RankingKind(name), seed))


ROUTES = routes_of(QUESTIONS, list_extended_candidates)
