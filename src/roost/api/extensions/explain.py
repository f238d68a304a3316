"""`GET /roost/explain`: why a query has candidates, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from roost.api.extensions.parameters import read_query, split_parameters
from roost.api.extensions.question_turn import (
    enter_if_large,
    look_up_names,
    question_turn,
)
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.search.forest import Forest, TreeRef
from roost.search.lack import Lack, Miss
from roost.service.explain import explain
from roost.service.explanation import Explanation, GroupFunnel, Reason
from roost.service.miss_sentences import lack_sentence, uuids_in
from roost.service.provider_references import no_such_provider, resolve_provider

_MISSES_DEFAULT = 5
_MISSES_MAX = 100


def show(services: Services, request: Request) -> Response:
    """What each stage leaves of a query, the dominant reason, the nearest misses and hints."""
    parameters = split_parameters(request, ("provider", "misses"))
    misses = parameters.integer("misses", _MISSES_DEFAULT, least=0, most=_MISSES_MAX)
    query = read_query(services, parameters.rest)
    reference = parameters.own.get("provider")
    uuid = None if reference is None else services.read(resolve_provider, reference).uuid
    forest = services.forest()
    provider_tree = None if uuid is None else _tree_of(forest, uuid)
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = explain(forest, query, provider_tree=provider_tree, misses=misses, pause=turn.pause)
        names = look_up_names(services, turn, uuids_in(found.misses))
        return json_response(explanation_content(found, names))


def explanation_content(found: Explanation, names: Mapping[str, str]) -> dict[str, Any]:
    """The JSON of an explanation. `names` has the names of the providers that its misses name."""
    return {
        "feasible": found.feasible,
        "exact": found.exact,
        "reason": None if found.reason is None else _reason_content(found.reason),
        "groups": [_funnel_content(group) for group in found.groups],
        "trees": [asdict(row) for row in found.trees],
        "misses": [_miss_content(miss, names) for miss in found.misses],
        "hints": [asdict(hint) for hint in found.hints],
    }


def _with_alternatives(content: dict[str, Any], alternatives: Mapping[str, int]) -> dict[str, Any]:
    """The content; a query without alternatives does not mention them."""
    return {**content, "alternatives": alternatives} if alternatives else content


def _reason_content(reason: Reason) -> dict[str, Any]:
    content = {
        "stage": reason.stage,
        "group": reason.group,
        "resource_class": reason.resource_class,
        "text": reason.text,
    }
    return _with_alternatives(content, reason.alternatives)


def _funnel_content(funnel: GroupFunnel) -> dict[str, Any]:
    rows = [asdict(row) for row in funnel.funnel]
    if funnel.alternative is None:
        return {"group": funnel.group, "funnel": rows}
    return {"group": funnel.group, "alternative": funnel.alternative, "funnel": rows}


def _miss_content(miss: Miss, names: Mapping[str, str]) -> dict[str, Any]:
    content = {
        "root": _provider_content(miss.root, names),
        "failed": miss.failed,
        "lacks": [_lack_content(lack, miss.root, names) for lack in miss.lacks],
    }
    return _with_alternatives(content, miss.choices)


def _lack_content(lack: Lack, root: str, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "group": lack.group,
        "provider": None if lack.provider is None else _provider_content(lack.provider, names),
        "stage": lack.stage,
        "resource_class": lack.resource_class,
        "wanted": lack.wanted,
        "free": lack.free,
        "rule": lack.rule,
        "traits": lack.traits,
        "aggregates": lack.aggregates,
        "groups": lack.groups,
        "text": lack_sentence(lack, root, names),
    }


def _provider_content(uuid: str, names: Mapping[str, str]) -> dict[str, str]:
    # A provider that was deleted since the search has no name any more.
    return {"uuid": uuid, "name": names.get(uuid, uuid)}


def _tree_of(forest: Forest, uuid: str) -> TreeRef:
    found = forest.find_tree(uuid)
    if found is None:
        # Another request deleted the provider since its row was read.
        raise no_such_provider(uuid)
    return found
