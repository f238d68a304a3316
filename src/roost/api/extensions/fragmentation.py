"""`GET /roost/fragmentation`: what is free, and what of it requests can use."""

from __future__ import annotations

from dataclasses import asdict

from roost.api.extensions.parameters import bad_parameter, read_query_text
from roost.api.extensions.question_turn import enter_if_large, question_turn
from roost.api.extensions.whatif_body import naming
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.model.candidates import CandidateQuery
from roost.service.capacity_answers import fragmentation_of

_ASKS_MAX = 20


def show(services: Services, request: Request) -> Response:
    """The free amount of each resource class, and what of it each question can use."""
    queries = _queries(services, request)
    forest = services.forest()
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = fragmentation_of(forest, queries, turn.pause)
    return json_response(
        {
            "resource_classes": {name: asdict(its) for name, its in found.classes.items()},
            "empty_roots": found.empty_trees,
        }
    )


def _queries(services: Services, request: Request) -> list[CandidateQuery]:
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
            queries.append(read_query_text(services, value))
    return queries
