"""`GET /roost/explain`: why a query has candidates, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from roost.api.candidates.schemas import EXTENDED_QUERY
from roost.api.extensions.parameters import NUMBER, QUESTIONS, read_query, split_parameters
from roost.api.extensions.questions.question_turn import (
    enter_if_large,
    look_up_names,
    question_turn,
)
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
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.stages import GroupStage, TreeStage
from roost.search.explain.misses import Miss
from roost.search.forest.forest import Forest, TreeRef
from roost.service.questions.explain import (
    Explanation,
    GroupFunnel,
    Reason,
    explain,
    lack_sentence,
    uuids_in,
)
from roost.service.questions.provider_list import no_such_provider, resolve_provider

_MISSES_DEFAULT = 5
_MISSES_MAX = 100

_OWN = QueryString.of(
    RequestParameter(
        "provider",
        "Explain the tree of this provider, by uuid or name, and no other tree.",
        "host-1",
    ),
    RequestParameter(
        "misses", f"How many of the nearest trees to name, at most {_MISSES_MAX}.", "5", NUMBER
    ),
)

_GROUP_STAGES = tuple(stage.value for stage in GroupStage)
_TREE_STAGES = tuple(stage.value for stage in TreeStage)
_STAGE = described(
    choice(*_GROUP_STAGES, *_TREE_STAGES), "The stage of the search that leaves too little."
)
_TREES = described(COUNT, "How many trees the stage leaves.")
_GROUP = described(STRING, "The suffix of the request group; empty for the group without one.")
_CLASS = or_null(STRING, "The resource class that alone is to blame, if one is.")
_CHOSEN = described(
    {"type": "object", "additionalProperties": COUNT},
    "Of a query with alternatives, those that come furthest, by the suffix of the group.",
)

REASON = AnswerSchema.of(
    "Reason",
    "The dominant reason: the first stage that leaves no tree.",
    members(
        {
            "stage": _STAGE,
            "group": or_null(STRING, "The request group; null for a stage of the request."),
            "resource_class": _CLASS,
            "text": SENTENCE,
        },
        {"alternatives": _CHOSEN},
    ),
)

_FUNNEL = members(
    {
        "group": _GROUP,
        "funnel": list_of(
            members(
                stage=choice(*_GROUP_STAGES),
                providers=described(COUNT, "How many providers the stage leaves."),
                trees=_TREES,
                text=SENTENCE,
            )
        ),
    },
    {"alternative": described(COUNT, "Which alternative of the group; 0 is `resources`.")},
)
_LACK = members(
    group=or_null(STRING, "The request group; null for the request as a whole."),
    provider=or_null(PROVIDER_REFERENCE, "The provider that comes nearest, if one does."),
    stage=_STAGE,
    resource_class=or_null(STRING),
    wanted=or_null({"type": "integer"}, "The amount that the request asks for."),
    free=or_null({"type": "integer"}, "The amount that the provider has left."),
    rule={
        "type": "string",
        "enum": [rule.value for rule in LackRule],
        "description": "What the failed check asks for.",
    },
    traits=described(list_of(STRING), "One of these is missing, or this one is forbidden."),
    aggregates=described(list_of(STRING), "One of these is missing, or this one is forbidden."),
    groups=described(list_of(STRING), "The groups that fail the check together."),
    text=SENTENCE,
)

EXPLANATION = AnswerSchema.of(
    "Explanation",
    "Why a query has candidates, or why it has none.",
    members(
        feasible=flag("Whether the query has candidates."),
        reason=or_null(REASON, "Null if the query has candidates."),
        groups=described(list_of(_FUNNEL), "What each stage leaves of each group, in fixed order."),
        trees=described(
            list_of(
                members(
                    stage=choice(*_TREE_STAGES),
                    trees=_TREES,
                    text=SENTENCE,
                )
            ),
            "What each stage of the request leaves.",
        ),
        misses=described(
            list_of(
                members(
                    {
                        "root": PROVIDER_REFERENCE,
                        "failed": described(COUNT, "How many checks the tree fails."),
                        "lacks": list_of(_LACK),
                    },
                    {"alternatives": _CHOSEN},
                )
            ),
            "The trees that fail the fewest checks, best first.",
        ),
        hints=described(
            list_of(members({"text": SENTENCE, "query": STRING})),
            "Queries that have candidates, near the one asked.",
        ),
        exact={
            "type": "boolean",
            "description": "False if the search ended before it saw every combination.",
        },
    ),
)


@Route(
    "GET",
    "/roost/explain",
    id="explain",
    rule="roost:explain:show",
    summary="Explain why a query has candidates or none",
    successes={200: Success("The explanation.", EXPLANATION)},
    queries=(_OWN, EXTENDED_QUERY),
)
def show_explanation(services: Services, request: Request) -> Response:
    """What each stage of the search leaves, the dominant reason, the nearest misses, and hints.

    The numbers are those of the search itself.
    """
    parameters = split_parameters(request, _OWN.names)
    misses = parameters.integer("misses", _MISSES_DEFAULT, least=0, most=_MISSES_MAX)
    query = read_query(services, parameters.rest)
    reference = parameters.own.get("provider")
    uuid = None if reference is None else services.read(resolve_provider, reference).uuid
    forest = services.forest()
    only_tree = None if uuid is None else _tree_of(forest, uuid)
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = explain(forest, query, only_tree=only_tree, misses=misses, pause=turn.pause)
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
    return _with_alternatives(content, miss.alternatives)


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


ROUTES = routes_of(QUESTIONS, show_explanation)
