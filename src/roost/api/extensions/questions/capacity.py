"""`GET /roost/capacity`: how many more consumers with a request fit."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from roost.api.candidates.schemas import EXTENDED_QUERY
from roost.api.extensions.pages import NEXT, PAGE_PARAMETERS, AskedPage, parse_page
from roost.api.extensions.parameters import QUESTIONS, read_query, split_parameters
from roost.api.extensions.questions.question_turn import (
    enter_if_large,
    look_up_names,
    question_turn,
)
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    COUNT,
    PROVIDER_REFERENCE,
    SENTENCE,
    STRING,
    AnswerSchema,
    choice,
    described,
    flag,
    list_of,
    members,
    or_null,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.search.capacity.capacity import Capacity, Method, RootCapacity
from roost.search.capacity.limiting_classes import Limit
from roost.service.questions.capacity_answers import capacity_of
from roost.turns import Turn

_OWN = QueryString.of(
    RequestParameter("by", "`root`: also how many fit on each root alone.", "root", choice("root")),
    *PAGE_PARAMETERS,
)
_FITS = described(COUNT, "The largest number of consumers that fit; a lower bound if not exact.")
_AT_MOST = {"at_most": described(COUNT, "An upper bound; absent if `fits` is exact.")}

CAPACITY = AnswerSchema.of(
    "Capacity",
    "How many more consumers with exactly this request fit.",
    members(
        {
            "fits": _FITS,
            "exact": flag("Whether no more can fit."),
            "method": choice(*Method),
            "limited_by": or_null(
                members(
                    resource_class=described(STRING, "The first of the classes."),
                    resource_classes=described(
                        list_of(STRING), "The classes of which more lets more in."
                    ),
                    together={
                        "type": "boolean",
                        "description": "Whether it takes more of all classes, as far as "
                        "is known; otherwise more of each one lets more in by itself.",
                    },
                    text=SENTENCE,
                ),
                "What more is needed of; null if nothing fits.",
            ),
            "roots": described(
                list_of(members({"root": PROVIDER_REFERENCE, "fits": COUNT}, _AT_MOST)),
                "With `by=root`: how many fit on each root alone. Roots may share a pool.",
            ),
            "next": NEXT,
        },
        _AT_MOST,
    ),
)


@Route(
    "GET",
    "/roost/capacity",
    rule="roost:capacity:show",
    summary="Count how many more consumers fit",
    successes={200: Success("The capacity.", CAPACITY)},
    queries=(_OWN, EXTENDED_QUERY),
)
def show_capacity(services: Services, request: Request) -> Response:
    """The largest number of consumers with exactly this request that fit.

    A sequence of claims reaches it from the present state, and none reaches more.
    """
    parameters = split_parameters(request, _OWN.names)
    by = parameters.own.get("by")
    if by not in (None, "root"):
        raise bad_value(f"by is {by[:40]!r}. Send `by=root`, or leave it out.")
    asked_page = parse_page(parameters)
    query = read_query(services, parameters.rest)
    forest = services.forest()
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = capacity_of(forest, query, turn.pause)
        content = capacity_content(found)
        if by is not None:
            content |= _roots(services, turn, asked_page, found)
        return json_response(content)


def capacity_content(found: Capacity) -> dict[str, Any]:
    """The JSON of a capacity, without its roots."""
    return {
        "fits": found.fits,
        "exact": found.exact,
        **({} if found.exact else {"at_most": found.at_most}),
        "method": found.method,
        "limited_by": found.limited_by and _limit_content(found.limited_by),
        "roots": [],
        "next": None,
    }


def _limit_content(limit: Limit) -> dict[str, Any]:
    return {
        "resource_class": limit.resource_classes[0],
        "resource_classes": limit.resource_classes,
        "together": limit.together,
        "text": limit.text,
    }


def _roots(
    services: Services, turn: Turn, asked_page: AskedPage, found: Capacity
) -> dict[str, Any]:
    """The page of roots that hold a consumer, and the marker of the next page."""
    page = asked_page.cut(found.roots(), attrgetter("uuid"))
    turn.pause()
    names = look_up_names(services, turn, [root.uuid for root in page.members])

    def show(root: RootCapacity) -> dict[str, Any]:
        return {
            # A provider that another request has just deleted has no name any more.
            "root": {"uuid": root.uuid, "name": names.get(root.uuid, root.uuid)},
            "fits": root.fits,
            **({} if root.fits == root.at_most else {"at_most": root.at_most}),
        }

    return {"roots": page.json(show, turn.pause), "next": page.next}


ROUTES = routes_of(QUESTIONS, show_capacity)
