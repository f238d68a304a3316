"""`POST /roost/whatif`: questions before and after changes that are made nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from roost.api.candidates.body import streamed_body
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.errors import HttpError, OverLimit
from roost.api.extensions.capacity import capacity_content
from roost.api.extensions.explain import explanation_content
from roost.api.extensions.whatif_body import AskedQuestion, WhatIf, naming, parse_whatif
from roost.api.microversions import MAX_VERSION
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.schemas.whatif import FIRST
from roost.api.services import Services
from roost.model.changes import Change, ClaimCandidate
from roost.search.chosen_candidate import ChosenCandidate, choose_candidate
from roost.search.forest import Forest
from roost.search.ranking import Ranking, RankingKind
from roost.search.turns import TURNS
from roost.service.candidates import list_candidates
from roost.service.capacity_answers import capacity_of
from roost.service.errors import ErrorCode
from roost.service.explain import explain
from roost.service.miss_sentences import uuids_in
from roost.service.provider_references import names_of_providers
from roost.service.whatif import ChangedForest, apply_changes
from roost.service.whatif_facts import ChangeFacts, read_facts

# The candidates of a question that names no limit, and the highest limit.
_LIMIT_DEFAULT = 1000
_LIMIT_MAX = 10_000
# All answers of a request together.
ANSWER_BYTES_MAX = 64 * 1024 * 1024
# How often the facts may change while the replica looks. Each attempt takes milliseconds.
_ATTEMPTS = 5


def ask(services: Services, request: Request) -> Response:
    """The answers to some questions, before and after some changes."""
    limits = services.settings.limits
    asked = parse_whatif(request.body(), limits)
    forest, facts = _consistent(services, asked.changes)
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:

        def choose(changed: Forest, claim: ClaimCandidate) -> ChosenCandidate | None:
            return _choose(services, changed, claim, turn.pause)

        changed = apply_changes(forest, facts, asked.changes, choose)
        answering = _Answering(services, changed.made_up, turn.pause)
        answers = b",".join(
            b'{"before":%b,"after":%b}' % (before, after)
            for before, after in _sides(answering, asked, forest, changed)
        )
    outcomes = orjson.dumps(_shown_outcomes(services, changed))
    body = b'{"changes":%b,"answers":[%b]}' % (outcomes, answers)
    return Response(200, body, [("content-type", "application/json")])


def _consistent(services: Services, changes: Sequence[Change]) -> tuple[Forest, ChangeFacts]:
    """A forest, and facts that were true when the replica read it.

    The facts are read before and after. If they are equal, nothing changed them meanwhile.
    """
    database = services.database
    facts = database.snapshot(read_facts, changes)
    for _ in range(_ATTEMPTS):
        forest = services.forest()
        after = database.snapshot(read_facts, changes)
        if after == facts:
            return forest, facts
        facts = after
    raise HttpError(
        409,
        "The providers or consumers of these changes change all the time. Try again.",
        ErrorCode.CONCURRENT_UPDATE,
    )


def _choose(
    services: Services, forest: Forest, claim: ClaimCandidate, pause: Callable[[], None]
) -> ChosenCandidate | None:
    """The candidate that a claim takes: by its own order, or the first that the search finds."""
    ranking = None if claim.order == FIRST else Ranking(RankingKind(claim.order), claim.seed)
    order = replace(services.settings.candidate_order, shuffled=False, ranking=ranking)
    return choose_candidate(forest, claim.query, order, pause)


def _sides(
    answering: _Answering, asked: WhatIf, forest: Forest, changed: ChangedForest
) -> Iterator[tuple[bytes, bytes]]:
    for position, question in enumerate(asked.questions):
        with naming(f"ask[{position}]"):
            before = answering.answer(question, forest)
            yield before, answering.answer(question, changed.forest)


class _Answering:
    """The answers to the questions of one request, up to a number of bytes.

    It keeps nothing in the caches of the service: those know no changes that are made nowhere.
    """

    def __init__(
        self, services: Services, made_up: Mapping[str, str], pause: Callable[[], None]
    ) -> None:
        self._services = services
        # The names of providers that no table has, by uuid.
        self._made_up = made_up
        self._pause = pause
        self._bytes = 0

    def answer(self, question: AskedQuestion, forest: Forest) -> bytes:
        """The answer to a question from this forest, in JSON."""
        if question.kind == "candidates":
            return self._candidates(question, forest)
        if question.kind == "capacity":
            content = capacity_content(capacity_of(forest, question.query, self._pause))
        else:
            content = self._explanation(question, forest)
        body = orjson.dumps(content)
        self._count(body)
        return body

    def _explanation(self, question: AskedQuestion, forest: Forest) -> dict[str, Any]:
        found = explain(forest, question.query, pause=self._pause)
        names = self._services.read(names_of_providers, uuids_in(found.misses))
        return explanation_content(found, {**names, **self._made_up})

    def _candidates(self, question: AskedQuestion, forest: Forest) -> bytes:
        limit = question.query.limit or _LIMIT_DEFAULT
        if limit > _LIMIT_MAX:
            raise HttpError(
                400,
                f"a limit of {limit} is too high here. Send a limit of at most {_LIMIT_MAX}.",
                ErrorCode.QUERY_BAD_VALUE,
            )
        order = self._services.settings.candidate_order
        query = replace(question.query, limit=limit)
        found = list_candidates(forest, query, order, self._pause)
        cut = question.query.limit is None and found.count == limit
        chunks: list[bytes] = []
        for chunk in streamed_body(found, MAX_VERSION, SummaryCache()):
            self._count(chunk)
            chunks.append(chunk)
            self._pause()
        truncated = b"true" if found.truncated or cut else b"false"
        return b'%b,"truncated":%b}' % (b"".join(chunks).removesuffix(b"}"), truncated)

    def _count(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > ANSWER_BYTES_MAX:
            raise OverLimit(
                400,
                f"the answers have more than {ANSWER_BYTES_MAX} bytes. Ask fewer questions at a "
                "time, or send each with a limit.",
                "whatif_answer",
            )


def _shown_outcomes(services: Services, changed: ChangedForest) -> list[Mapping[str, Any]]:
    """What became of each change, with the names of all providers in it."""
    roots = [outcome.details["root"]["uuid"] for outcome in _claimed(changed)]
    names = {**services.read(names_of_providers, roots), **changed.made_up}
    shown: list[Mapping[str, Any]] = []
    for outcome in changed.outcomes:
        details = dict(outcome.details)
        if "root" in details:
            uuid = details["root"]["uuid"]
            details["root"] = {"uuid": uuid, "name": names.get(uuid, uuid)}
        shown.append(
            {"change": outcome.change, "applied": outcome.applied, "text": outcome.text, **details}
        )
    return shown


def _claimed(changed: ChangedForest) -> list[Any]:
    return [outcome for outcome in changed.outcomes if "root" in outcome.details]
