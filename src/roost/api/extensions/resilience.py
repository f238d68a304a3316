"""`GET /roost/resilience`: which roots may be lost, one at a time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from roost.api.extensions.paging import PAGE_PARAMETERS, parse_page
from roost.api.extensions.parameters import bad_parameter, refuse_rest, split_parameters
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.metrics.stages import Stage
from roost.search.evacuation import LossOutcome
from roost.search.resilience import LostRoot, find_resilience
from roost.search.turns import TURNS
from roost.search.vocabulary import Vocabulary
from roost.service.provider_references import names_of_providers
from roost.service.resilience import list_all_allocations, loss_sentence

_PARAMETERS = ("lose", *PAGE_PARAMETERS)


def show(services: Services, request: Request) -> Response:
    """For each root, whether what it holds would fit on the rest; those that would not."""
    parameters = split_parameters(request, _PARAMETERS)
    refuse_rest(parameters, _PARAMETERS)
    lose = parameters.own.get("lose", "1")
    if lose != "1":
        raise bad_parameter(
            f"lose is {lose[:40]!r}. Only the loss of one root at a time is worked out: send 1."
        )
    asked_page = parse_page(parameters)
    limits = services.settings.limits
    allocations = services.read(list_all_allocations)
    forest = services.forest()
    began, times = perf_counter(), request.times
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        found = find_resilience(forest, allocations, turn.pause)
        times.end(Stage.SEARCH, began)
        times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
    page = asked_page.cut(found.roots, [root.root_uuid for root in found.roots])
    names = services.read(names_of_providers, [root.root_uuid for root in page.members])
    body = {
        "survives": found.survives,
        "of": found.survives + len(found.roots),
        "exact": found.exact,
        "roots": [_shown(root, names, forest.vocabulary) for root in page.members],
        "next": page.next,
    }
    return json_response(body)


def _shown(root: LostRoot, names: dict[str, str], vocabulary: Vocabulary) -> dict[str, Any]:
    name = names.get(root.root_uuid, root.root_uuid)
    return {
        "root": {"uuid": root.root_uuid, "name": name},
        "fits": False,
        "exact": root.verdict.outcome is not LossOutcome.UNKNOWN,
        "consumers": root.consumers,
        "text": loss_sentence(root, name, vocabulary),
    }
