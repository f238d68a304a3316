"""`POST /roost/whatif`: questions before and after changes that are made nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from roost.api.candidates.schemas import EXAMPLE, FIRST, newest_candidates
from roost.api.errors import HttpError
from roost.api.extensions.capacity import CAPACITY
from roost.api.extensions.explain import EXPLANATION
from roost.api.extensions.parameters import QUESTIONS, read_query_text
from roost.api.extensions.question_turn import (
    enter_if_large,
    forest_aside,
    look_up_names,
    question_turn,
)
from roost.api.extensions.whatif_answers import Side, WhatIfAnswers, side_text
from roost.api.extensions.whatif_body import BODY, WhatIf, naming, parse_whatif
from roost.api.json_schemas import (
    EXAMPLE_HOST,
    PROVIDER_REFERENCE,
    SENTENCE,
    STRING,
    AnswerSchema,
    described,
    flag,
    list_of,
    members,
)
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.routing import Route, Success
from roost.api.services import Services
from roost.model.changes import Change, ClaimCandidate
from roost.search.candidate_order import CandidateOrder
from roost.search.chosen_candidate import ChosenCandidate, choose_candidate
from roost.search.forest import Forest
from roost.search.ranking import Ranking, RankingKind
from roost.service.errors import ErrorCode, naming_place
from roost.service.explanation import Explanation
from roost.service.miss_sentences import uuids_in
from roost.service.whatif import ChangedForest, ChangeOutcome, apply_changes
from roost.service.whatif_facts import NO_FACTS, ChangeFacts, read_facts
from roost.turns import Turn

# More changes than these are read in line.
_FEW_CHANGES = 10
# How often the facts may change while the replica looks. Each attempt takes milliseconds.
_ATTEMPTS = 5

_TRUNCATED = {"truncated": flag("Whether there are more candidates.")}

_SIDE = AnswerSchema.of(
    "WhatIfSide",
    "The answer to one question: like that of the route which asks it directly.",
    {"anyOf": [newest_candidates(_TRUNCATED), CAPACITY, EXPLANATION]},
)

_OUTCOME = members(
    {
        "change": described(STRING, "The kind of the change."),
        "applied": flag("False if a claim found no candidate."),
        "text": SENTENCE,
    },
    {
        "provider": PROVIDER_REFERENCE,
        "root": PROVIDER_REFERENCE,
        "roots": list_of(PROVIDER_REFERENCE),
        "made_up": flag("Whether the roots exist in no database."),
        "consumer": STRING,
        "allocations": {"type": "object", "description": "What a claim takes, by provider."},
        "mappings": {"type": "object", "description": "The providers of each request group."},
    },
)

_WHATIF = AnswerSchema.of(
    "WhatIf",
    "What became of each change, and the answer to each question before and after all changes.",
    members(
        {
            "changes": list_of(_OUTCOME),
            "answers": list_of(members({"before": _SIDE, "after": _SIDE})),
        }
    ),
    example={
        "changes": [
            {
                "change": "drain",
                "applied": True,
                "text": "host-1 is drained: 3 inventories take no further allocation.",
                "provider": EXAMPLE_HOST,
            }
        ],
        "answers": [
            {
                "before": {**EXAMPLE, "truncated": False},
                "after": {
                    "allocation_requests": [],
                    "provider_summaries": {},
                    "truncated": False,
                },
            }
        ],
    },
)


def ask(services: Services, request: Request) -> Response:
    """The answers to some questions, before and after some changes."""
    order = services.settings.candidate_order
    asked = parse_whatif(request.body(), partial(read_query_text, services))
    with question_turn(services, request) as turn:
        forest, facts = _consistent(services, turn, asked.changes)
        enter_if_large(turn, forest)

        def choose(changed: Forest, claim: ClaimCandidate) -> ChosenCandidate | None:
            return choose_candidate(changed, claim.query, _order_of(claim, order), turn.pause)

        changed = apply_changes(forest, facts, asked.changes, choose, turn.pause)
        sides = _sides(asked, forest, changed, order, turn.pause)
        names = _names(services, turn, changed, sides)
        outcomes = orjson.dumps([_shown(outcome, names) for outcome in changed.outcomes])
        answers = b",".join(
            b'{"before":%b,"after":%b}' % (side_text(before, names), side_text(after, names))
            for before, after in sides
        )
        body = b'{"changes":%b,"answers":[%b]}' % (outcomes, answers)
        return Response(200, body, [("content-type", "application/json")])


def _consistent(
    services: Services, turn: Turn, changes: Sequence[Change]
) -> tuple[Forest, ChangeFacts]:
    """A forest, and facts that were true when the replica read it.

    The facts are read before and after. If they are equal, nothing changed them meanwhile.
    """
    if not changes:
        return services.forest(), NO_FACTS
    if len(changes) > _FEW_CHANGES:
        turn.enter()
    facts = _read_facts(services, turn, changes)
    for _ in range(_ATTEMPTS):
        forest = forest_aside(services, turn)
        after = _read_facts(services, turn, changes)
        if after == facts:
            return forest, facts
        facts = after
    raise HttpError(
        409,
        "The providers or consumers of these changes change all the time. Try again.",
        ErrorCode.CONCURRENT_UPDATE,
    )


def _read_facts(services: Services, turn: Turn, changes: Sequence[Change]) -> ChangeFacts:
    """The facts for all changes, change by change: a consumer may hold thousands of rows."""
    facts = NO_FACTS
    for position, change in enumerate(changes):
        with naming_place(f"changes[{position}]"):
            facts |= services.read(read_facts, change, facts)
        turn.pause()
    return facts


def _order_of(claim: ClaimCandidate, configured: CandidateOrder) -> CandidateOrder:
    """The order in which a claim takes the first candidate. Only a seed makes it random."""
    ranking = None if claim.order == FIRST else Ranking(RankingKind(claim.order), claim.seed)
    return replace(configured, shuffled=False, ranking=ranking)


def _sides(
    asked: WhatIf,
    forest: Forest,
    changed: ChangedForest,
    order: CandidateOrder,
    pause: Callable[[], None],
) -> list[tuple[Side, Side]]:
    """The answers to each question, before and after."""
    answers = WhatIfAnswers(order, pause)
    sides: list[tuple[Side, Side]] = []
    for position, question in enumerate(asked.questions):
        with naming(f"ask[{position}]"):
            before = answers.answer(question, forest)
            sides.append((before, answers.answer(question, changed.forest)))
    return sides


def _names(
    services: Services, turn: Turn, changed: ChangedForest, sides: Sequence[tuple[Side, Side]]
) -> dict[str, str]:
    """The names of all providers that the answer names, by uuid."""
    uuids = {
        outcome.details["root"]["uuid"] for outcome in changed.outcomes if "root" in outcome.details
    }
    for side in (side for both in sides for side in both):
        if isinstance(side, Explanation):
            uuids |= uuids_in(side.misses)
    return {**look_up_names(services, turn, uuids), **changed.made_up}


def _shown(outcome: ChangeOutcome, names: Mapping[str, str]) -> Mapping[str, Any]:
    """What became of a change."""
    details = dict(outcome.details)
    if "root" in details:
        uuid = details["root"]["uuid"]
        details["root"] = {"uuid": uuid, "name": names.get(uuid, uuid)}
    return {"change": outcome.change, "applied": outcome.applied, "text": outcome.text, **details}


ROUTES = (
    Route(
        "POST",
        "/roost/whatif",
        ask,
        rule="roost:whatif:ask",
        only_asks=True,
        id="ask_whatif",
        tag=QUESTIONS,
        summary="Ask before and after changes",
        text=(
            "Answers each question in the present state and after all changes, in their order. The "
            "service writes nothing."
        ),
        successes={200: Success("The answers.", _WHATIF)},
        refusals={
            400: "The body does not fit the schema, or a change or question makes no sense.",
            404: "A change or a question names an unknown provider or consumer.",
            409: "The providers or consumers of the changes change all the time.",
        },
        body=BODY,
    ),
)
