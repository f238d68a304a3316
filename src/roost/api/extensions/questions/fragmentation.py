"""`GET /roost/fragmentation`: what is free, and what of it requests can use."""

from __future__ import annotations

from dataclasses import asdict

from roost.api.candidates.schemas import BAD_QUERY, NO_SUCH_PROVIDER
from roost.api.extensions.parameters import QUESTIONS, read_query_text
from roost.api.extensions.questions.question_turn import enter_if_large, question_turn
from roost.api.extensions.questions.whatif_body import naming
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import COUNT, AnswerSchema, described, list_of, members
from roost.api.http.microversions import MIN_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.model.candidate_query.query import CandidateQuery
from roost.service.questions.capacity_answers import fragmentation_of

_ASKS_MAX = 20

_OWN = QueryString.of(
    RequestParameter(
        "ask",
        "A question: a query string of `GET /roost/candidates`, percent-encoded. At most "
        f"{_ASKS_MAX} of them.",
        "resources=VCPU:4",
        repeated_since=MIN_VERSION,
    )
)
_FRAGMENTATION = AnswerSchema.of(
    "Fragmentation",
    "What is free, and what of it requests can use.",
    members(
        resource_classes={
            "type": "object",
            "additionalProperties": members(
                free=described(COUNT, "What is free in all trees."),
                usable=described(
                    list_of(COUNT),
                    "For each question: what is free in trees where it fits.",
                ),
            ),
        },
        empty_roots=described(COUNT, "How many roots hold nothing."),
    ),
)


@Route(
    "GET",
    "/roost/fragmentation",
    rule="roost:fragmentation:show",
    summary="Show what is free and what of it is usable",
    successes={200: Success("What is free.", _FRAGMENTATION)},
    refusals={400: BAD_QUERY, 404: NO_SUCH_PROVIDER},
    queries=(_OWN,),
)
def show_fragmentation(services: Services, request: Request) -> Response:
    """The free amount of each resource class, and how much of it questions can use.

    A question can use what is free in trees where it has a candidate.
    """
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
            raise bad_value(
                f"{name[:40]!r} is no parameter of this route. Send each question as `ask`, with "
                "`&` and `=` in it percent-encoded."
            )
        if len(queries) == _ASKS_MAX:
            raise bad_value(f"A request takes {_ASKS_MAX} questions. Send the rest later.")
        with naming(f"ask[{len(queries)}]"):
            queries.append(read_query_text(services, value))
    return queries


ROUTES = routes_of(QUESTIONS, show_fragmentation)
