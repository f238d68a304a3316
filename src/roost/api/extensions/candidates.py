"""`/roost/candidates`: questions beyond those of the Placement API, and the order of the answer.

The answer has the shape of `GET /allocation_candidates` at the newest microversion.
"""

from __future__ import annotations

from dataclasses import replace
from random import getrandbits

from roost.api.candidates.handler import AskedCandidates, answered
from roost.api.extensions.parameters import (
    Parameters,
    bad_parameter,
    places_of,
    read_query,
    split_parameters,
)
from roost.api.microversions import MAX_VERSION
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.services import Services
from roost.search.candidate_order import CandidateOrder
from roost.search.ranking import Ranking, RankingKind

_SEED_MAX = 2**32 - 1
# As the search finds them, whatever the operator configures.
_FIRST = "first"
ORDERS = (_FIRST, *RankingKind)


def list_all(services: Services, request: Request) -> Response:
    """The candidates for a query in the extended grammar."""
    parameters = split_parameters(request, ("order", "seed"))
    order = parse_order(parameters, services.settings.candidate_order)
    query = read_query(services, parameters.rest)
    is_repeatable = not (_is_random(order) and "seed" not in parameters.own)
    # A provider may get the name of another one, so a question has the providers that are meant.
    question = request.environ.get("QUERY_STRING", ""), (request.route, *places_of(query))
    return answered(
        services,
        request,
        AskedCandidates(query, MAX_VERSION, order, question if is_repeatable else None),
    )


def parse_order(parameters: Parameters, configured: CandidateOrder) -> CandidateOrder:
    """The order that a client asks for; without `order`, the one that the operator configures."""
    name = parameters.own.get("order")
    if name is not None and name not in ORDERS:
        names = ", ".join(ORDERS)
        raise bad_parameter(f"order is {name[:40]!r}. Send one of these: {names}.")
    if "seed" in parameters.own and name != RankingKind.RANDOM:
        raise bad_parameter("seed belongs to order=random. Leave seed out, or send this order.")
    if name is None:
        return configured
    if name == _FIRST:
        return replace(configured, shuffled=False)
    seed = parameters.integer("seed", getrandbits(32), least=0, most=_SEED_MAX)
    return replace(configured, shuffled=False, ranking=Ranking(RankingKind(name), seed))


def _is_random(order: CandidateOrder) -> bool:
    return order.ranking is not None and order.ranking.kind is RankingKind.RANDOM
