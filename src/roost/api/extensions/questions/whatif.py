"""`POST /roost/whatif`: questions before and after changes that are made nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import orjson

from roost.api.candidates.body import streamed_body
from roost.api.candidates.schemas import FIRST, newest_candidates
from roost.api.candidates.summaries import SummaryCache
from roost.api.extensions.parameters import QUESTIONS, read_query_text
from roost.api.extensions.questions.capacity import CAPACITY, capacity_content
from roost.api.extensions.questions.explain import EXPLANATION, explanation_content
from roost.api.extensions.questions.question_turn import (
    enter_if_large,
    forest_aside,
    look_up_names,
    question_turn,
)
from roost.api.extensions.questions.whatif_body import (
    BODY,
    AskedQuestion,
    WhatIf,
    naming,
    parse_whatif,
)
from roost.api.http.errors import HttpError, OverLimit, bad_value
from roost.api.http.json_schemas import (
    PROVIDER_REFERENCE,
    SENTENCE,
    STRING,
    AnswerSchema,
    described,
    flag,
    list_of,
    members,
)
from roost.api.http.microversions import MAX_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_bytes
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services
from roost.model.imagined_changes import ClaimCandidate, ImaginedChange
from roost.search.candidates.ranking import CandidateOrder, Ranking, RankingKind
from roost.search.candidates.variants import ChosenCandidate, choose_candidate
from roost.search.forest.forest import Forest
from roost.service.errors import ErrorCode, naming_place
from roost.service.questions.candidates import list_candidates
from roost.service.questions.capacity_answers import capacity_of
from roost.service.questions.explain import Explanation, explain, uuids_in
from roost.service.questions.whatif import (
    NO_FACTS,
    ChangedForest,
    ChangeFacts,
    ChangeOutcome,
    apply_changes,
    read_facts,
)
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
        changes=list_of(_OUTCOME),
        answers=list_of(members({"before": _SIDE, "after": _SIDE})),
    ),
)

# The candidates of a question that names no limit, and the highest limit.
_LIMIT_DEFAULT = 1000
_LIMIT_MAX = 10_000
# All answers of a request together.
ANSWER_BYTES_MAX = 32 * 1024 * 1024

# JSON, or an explanation, which becomes JSON when the names of its providers are known.
Side: TypeAlias = bytes | Explanation


@Route(
    "POST",
    "/roost/whatif",
    rule="roost:whatif:ask",
    only_asks=True,
    summary="Ask before and after changes",
    successes={200: Success("The answers.", _WHATIF)},
    refusals={
        400: "The body does not fit the schema, or a change or question makes no sense.",
        404: "A change or a question names an unknown provider or consumer.",
        409: "The providers or consumers of the changes change all the time.",
    },
    body=BODY,
)
def ask_whatif(services: Services, request: Request) -> Response:
    """Answer each question in the present state and after all changes, in their order.

    The service writes nothing.
    """
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
    services: Services, turn: Turn, changes: Sequence[ImaginedChange]
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


def _read_facts(services: Services, turn: Turn, changes: Sequence[ImaginedChange]) -> ChangeFacts:
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


ROUTES = routes_of(QUESTIONS, ask_whatif)


# The answers to the questions of a what-if, each as the direct route gives it.
#
# They keep nothing in the caches of the service: those know no changes that are made nowhere.


class WhatIfAnswers:
    """The answers to all questions of one request, up to a number of bytes."""

    def __init__(self, order: CandidateOrder, pause: Callable[[], None]) -> None:
        self._order = order
        self._pause = pause
        self._bytes = 0

    def answer(self, question: AskedQuestion, forest: Forest) -> Side:
        """The answer to a question from this forest."""
        if question.kind == "candidates":
            return self._candidates(question, forest)
        if question.kind == "explain":
            return explain(forest, question.query, pause=self._pause)
        found = capacity_of(forest, question.query, self._pause)
        return json_bytes(capacity_content(found))

    def _candidates(self, question: AskedQuestion, forest: Forest) -> bytes:
        limit = question.query.limit or _LIMIT_DEFAULT
        if limit > _LIMIT_MAX:
            raise bad_value(
                f"a limit of {limit} is too high here. Send a limit of at most {_LIMIT_MAX}."
            )
        query = replace(question.query, limit=limit)
        found, *further = list_candidates(forest, query, self._order, self._pause)
        count = sum(part.count or 0 for part in (found, *further))
        may_be_cut = question.query.limit is None and count == limit
        chunks: list[bytes] = []
        for chunk in streamed_body([found, *further], MAX_VERSION, SummaryCache()):
            self._count(len(chunk))
            chunks.append(chunk)
            self._pause()
        is_cut = may_be_cut or any(part.truncated for part in (found, *further))
        truncated = b"true" if is_cut else b"false"
        return b'%b,"truncated":%b}' % (b"".join(chunks).removesuffix(b"}"), truncated)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > ANSWER_BYTES_MAX:
            raise OverLimit(
                400,
                f"the answers have more than {ANSWER_BYTES_MAX} bytes. Ask fewer questions at a "
                "time, or send each with a limit.",
                "whatif_answer",
            )


def side_text(side: Side, names: Mapping[str, str]) -> bytes:
    """An answer in JSON. `names` has the names of all providers that explanations name."""
    if isinstance(side, Explanation):
        return json_bytes(explanation_content(side, names))
    return side
