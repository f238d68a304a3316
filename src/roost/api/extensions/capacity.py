"""`GET /roost/capacity`: how many more consumers with a request fit."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from roost.api.extensions.paging import PAGE_PARAMETERS, AskedPage, parse_page
from roost.api.extensions.parameters import (
    bad_parameter,
    parse_query_pairs,
    split_parameters,
)
from roost.api.extensions.question_turn import (
    enter_if_large,
    look_up_names,
    question_turn,
)
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.search.packing.capacity import Capacity, RootCapacity
from roost.search.packing.limits import Limit
from roost.service.capacity_answers import capacity_of, limit_text
from roost.turns import Turn


def show(services: Services, request: Request) -> Response:
    """How many more consumers fit, what limits them, and on request how many fit on each root."""
    parameters = split_parameters(request, ("by", *PAGE_PARAMETERS))
    by = parameters.own.get("by")
    if by not in (None, "root"):
        raise bad_parameter(f"by is {by[:40]!r}. Send `by=root`, or leave it out.")
    asked_page = parse_page(parameters)
    query = parse_query_pairs(parameters.rest, services.settings.limits)
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
        "text": limit_text(limit),
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
