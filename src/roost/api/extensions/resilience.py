"""`GET /roost/resilience`: which roots may be lost, one at a time."""

from __future__ import annotations

from typing import Any

import orjson

from roost.api.extensions.paging import PAGE_PARAMETERS, cut_page
from roost.api.extensions.parameters import bad_parameter, refuse_rest, split_parameters
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.services import Services
from roost.search.evacuation import Outcome
from roost.search.resilience import LostRoot, find_resilience
from roost.search.turns import TURNS
from roost.search.vocabulary import Vocabulary
from roost.service.provider_references import names_of_providers
from roost.store.forest.reading import read_allocations


def show(services: Services, request: Request) -> Response:
    """For each root, whether what it holds would fit on the rest; those that would not."""
    parameters = split_parameters(request, ("lose", *PAGE_PARAMETERS))
    refuse_rest(parameters)
    lose = parameters.own.get("lose", "1")
    if lose != "1":
        raise bad_parameter(
            f"lose is {lose[:40]!r}. Only the loss of one root at a time is worked out: send 1."
        )
    limits = services.settings.limits
    allocations = services.read(read_allocations)
    forest = services.forest()
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        found = find_resilience(forest, allocations, turn.pause)
    page = cut_page(parameters, found.roots, [root.root_uuid for root in found.roots])
    names = services.read(names_of_providers, [root.root_uuid for root in page.members])
    body = {
        "survives": found.survives,
        "of": found.survives + len(found.roots),
        "exact": found.exact,
        "roots": [_shown(root, names, forest.vocabulary) for root in page.members],
        "next": page.next,
    }
    return Response(200, orjson.dumps(body), [("content-type", "application/json")])


def _shown(root: LostRoot, names: dict[str, str], vocabulary: Vocabulary) -> dict[str, Any]:
    name = names.get(root.root_uuid, root.root_uuid)
    return {
        "root": {"uuid": root.root_uuid, "name": name},
        "fits": False,
        "exact": root.verdict.outcome is not Outcome.UNKNOWN,
        "consumers": root.consumers,
        "text": f"What {root.consumers} consumers hold from {name} {_reason(root, vocabulary)}.",
    }


def _reason(root: LostRoot, vocabulary: Vocabulary) -> str:
    verdict = root.verdict
    match verdict.outcome:
        case Outcome.TOO_LITTLE:
            name = vocabulary.class_names.get(verdict.class_id or 0, "a resource class")
            return f"does not fit elsewhere: all other roots together have too little {name} left"
        case Outcome.NO_PLACE:
            amounts = {} if verdict.kind is None else verdict.kind.amounts
            wanted = ", ".join(
                f"{amount} {vocabulary.class_names.get(class_id, class_id)}"
                for class_id, amount in amounts.items()
            )
            return f"does not fit elsewhere: too few other roots have room for {wanted} at once"
        case Outcome.NO_ARRANGEMENT:
            return "does not fit elsewhere: each consumer has a place, but not all of them at once"
        case _:
            return "may not fit elsewhere: the search found no arrangement before it had to end"
