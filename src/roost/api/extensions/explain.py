"""`GET /roost/explain`: why a query has candidates, or why it has none."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import Any

from roost.api.extensions.parameters import parse_query_pairs, split_parameters
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.metrics.stages import Stage
from roost.search.forest import Forest, TreeRef
from roost.search.turns import TURNS
from roost.service.explain import explain
from roost.service.explanation import Explanation
from roost.service.provider_references import no_such_provider, resolve_provider

_MISSES_DEFAULT = 5
_MISSES_MAX = 100


def show(services: Services, request: Request) -> Response:
    """What each stage leaves of a query, the dominant reason, the nearest misses and hints."""
    parameters = split_parameters(request, ("provider", "misses"))
    misses = parameters.integer("misses", _MISSES_DEFAULT, least=0, most=_MISSES_MAX)
    limits = services.settings.limits
    query = parse_query_pairs(parameters.rest, limits)
    reference = parameters.own.get("provider")
    uuid = None if reference is None else services.read(resolve_provider, reference).uuid
    forest = services.forest()
    provider_tree = None if uuid is None else _tree_of(forest, uuid)
    began, times = perf_counter(), request.times
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        found = explain(forest, query, provider_tree=provider_tree, misses=misses, pause=turn.pause)
        times.end(Stage.SEARCH, began)
        times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
    return json_response(explanation_content(found))


def explanation_content(found: Explanation) -> dict[str, Any]:
    """The JSON of an explanation."""
    return asdict(found)


def _tree_of(forest: Forest, uuid: str) -> TreeRef:
    found = forest.find_tree(uuid)
    if found is None:
        # Another request deleted the provider since its row was read.
        raise no_such_provider(uuid)
    return found
