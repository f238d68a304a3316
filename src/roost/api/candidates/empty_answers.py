"""Empty answers: the dominant reason in a header and in the log, if an operator asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from roost.api.candidates.answer_cache import AnswerCache, Question
from roost.api.requests import Request
from roost.metrics.catalogue import EMPTY_ANSWERS
from roost.model.candidates import CandidateQuery
from roost.model.text import printable
from roost.search.candidates import FoundCandidates
from roost.search.forest import Forest
from roost.search.kept_work import KeptWork
from roost.service.explain import find_reason

EXPLAIN_HEADER = "X-Roost-Explain"
REASON_HEADER = "X-Roost-Reason"
_LENGTH_MAX = 300
_CUT = "..."


class EmptyQuestion(NamedTuple):
    """A question whose answer is empty, and what its search left."""

    question: Question
    forest: Forest
    query: CandidateQuery
    kept_work: KeptWork


def wants_reason(request: Request, always: bool) -> bool:
    """Whether an empty answer tells its reason: always, or because the client asks for it."""
    return always or request.header(EXPLAIN_HEADER) == "1"


def counted(found: FoundCandidates) -> FoundCandidates:
    """What a search found, with the count 0 if it found nothing, even if no bound made it count."""
    if found.count is not None:
        return found
    batches = iter(found.batches)
    first = next(batches, None)
    if first is None:
        return replace(found, batches=(), count=0)
    return replace(found, batches=chain((first,), batches))


def tell_reason(
    request: Request,
    asked: EmptyQuestion,
    answers: AnswerCache,
    pause: Callable[[], None],
) -> tuple[str, str]:
    """The header of an empty answer. The request keeps the reason for its line in the log."""
    reason = answers.reason(asked.question, asked.forest)
    if reason is None:
        reason = find_reason(asked.forest, asked.query, asked.kept_work, pause)
        answers.keep_reason(asked.question, asked.forest, reason)
    EMPTY_ANSWERS.count((reason.stage,))
    request.reason = reason.text
    return REASON_HEADER, header_text(reason.text)


def header_text(text: str) -> str:
    """A sentence as the value of a header: in ASCII, and not too long.

    >>> header_text("No provider has inventory of PCPU.")
    'No provider has inventory of PCPU.'
    """
    plain = printable(text).encode("ascii", "replace").decode("ascii")
    return plain if len(plain) <= _LENGTH_MAX else plain[: _LENGTH_MAX - len(_CUT)] + _CUT
