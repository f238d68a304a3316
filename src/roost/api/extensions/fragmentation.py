"""`GET /roost/fragmentation`: what is free, and what of it requests can use."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter

from roost.api.extensions.parameters import bad_parameter, parse_query_text
from roost.api.extensions.whatif_body import naming
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.metrics.stages import Stage
from roost.model.candidates import CandidateQuery
from roost.model.limits import Limits
from roost.search.turns import TURNS
from roost.service.capacity_answers import fragmentation_of

_ASKS_MAX = 20


def show(services: Services, request: Request) -> Response:
    """The free amount of each resource class, and what of it each question can use."""
    limits = services.settings.limits
    queries = _queries(request, limits)
    forest = services.forest()
    began, times = perf_counter(), request.times
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        found = fragmentation_of(forest, queries, turn.pause)
        times.end(Stage.SEARCH, began)
        times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
    return json_response(
        {
            "resource_classes": {name: asdict(its) for name, its in found.classes.items()},
            "empty_roots": found.empty_trees,
        }
    )


def _queries(request: Request, limits: Limits) -> list[CandidateQuery]:
    """The questions, in their order. An error names the question that it is about."""
    queries: list[CandidateQuery] = []
    for name, value in request.query():
        if name != "ask":
            raise bad_parameter(
                f"{name[:40]!r} is no parameter of this route. Send each question as `ask`, with "
                "`&` and `=` in it percent-encoded."
            )
        if len(queries) == _ASKS_MAX:
            raise bad_parameter(f"A request takes {_ASKS_MAX} questions. Send the rest later.")
        with naming(f"ask[{len(queries)}]"):
            queries.append(parse_query_text(value, limits))
    return queries
