"""The answers to the questions of a what-if, each as the direct route gives it.

They keep nothing in the caches of the service: those know no changes that are made nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from roost.api.candidates.body import streamed_body
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.errors import HttpError, OverLimit
from roost.api.extensions.capacity import capacity_content
from roost.api.extensions.explain import explanation_content
from roost.api.extensions.whatif_body import AskedQuestion
from roost.api.microversions import MAX_VERSION
from roost.api.responses import json_bytes
from roost.search.candidate_order import CandidateOrder
from roost.search.forest import Forest
from roost.service.candidates import list_candidates
from roost.service.capacity_answers import capacity_of
from roost.service.errors import ErrorCode
from roost.service.explain import explain
from roost.service.explanation import Explanation

# The candidates of a question that names no limit, and the highest limit.
_LIMIT_DEFAULT = 1000
_LIMIT_MAX = 10_000
# All answers of a request together.
ANSWER_BYTES_MAX = 32 * 1024 * 1024

# JSON, or an explanation, which becomes JSON when the names of its providers are known.
Side: TypeAlias = bytes | Explanation


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
            raise HttpError(
                400,
                f"a limit of {limit} is too high here. Send a limit of at most {_LIMIT_MAX}.",
                ErrorCode.QUERY_BAD_VALUE,
            )
        query = replace(question.query, limit=limit)
        found, *further = list_candidates(forest, query, self._order, self._pause)
        count = sum(part.count or 0 for part in (found, *further))
        may_be_cut = question.query.limit is None and count == limit
        chunks: list[bytes] = []
        for chunk in streamed_body(found, MAX_VERSION, SummaryCache(), further=further):
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
