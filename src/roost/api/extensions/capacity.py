"""`GET /roost/capacity`: how many more consumers with a request fit."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from roost.api.extensions.paging import PAGE_PARAMETERS, AskedPage, parse_page
from roost.api.extensions.parameters import (
    bad_parameter,
    parse_query_pairs,
    split_parameters,
)
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.metrics.stages import Stage
from roost.search.packing.capacity import Capacity
from roost.search.turns import TURNS
from roost.service.capacity_answers import capacity_of, limit_text
from roost.service.provider_references import names_of_providers


def show(services: Services, request: Request) -> Response:
    """How many more consumers fit, what limits them, and on request how many fit on each root."""
    parameters = split_parameters(request, ("by", *PAGE_PARAMETERS))
    by = parameters.own.get("by")
    if by not in (None, "root"):
        raise bad_parameter(f"by is {by[:40]!r}. Send `by=root`, or leave it out.")
    asked_page = parse_page(parameters)
    limits = services.settings.limits
    query = parse_query_pairs(parameters.rest, limits)
    forest = services.forest()
    began, times = perf_counter(), request.times
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        found = capacity_of(forest, query, turn.pause)
        times.end(Stage.SEARCH, began)
        times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
    content = capacity_content(found)
    if by is not None:
        content |= _roots(services, asked_page, found)
    return json_response(content)


def capacity_content(found: Capacity) -> dict[str, Any]:
    """The JSON of a capacity, without its roots."""
    limit = found.limited_by
    return {
        "fits": found.fits,
        "exact": found.exact,
        **({} if found.exact else {"at_most": found.at_most}),
        "method": found.method,
        "limited_by": limit and {"resource_class": limit.resource_class, "text": limit_text(limit)},
        "roots": [],
        "next": None,
    }


def _roots(services: Services, asked_page: AskedPage, found: Capacity) -> dict[str, Any]:
    """The page of roots that hold a consumer, and the marker of the next page."""
    roots = found.roots()
    page = asked_page.cut(roots, [root.uuid for root in roots])
    names = services.read(names_of_providers, [root.uuid for root in page.members])
    return {
        "roots": [
            {
                # A provider that another request has just deleted has no name any more.
                "root": {"uuid": root.uuid, "name": names.get(root.uuid, root.uuid)},
                "fits": root.fits,
                **({} if root.fits == root.at_most else {"at_most": root.at_most}),
            }
            for root in page.members
        ],
        "next": page.next,
    }
