"""Answers that are sent again until the blocks change from which they come."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from roost.api.candidates.kept_body import KeptBody
from roost.search.footprint import Footprint
from roost.search.forest import Forest
from roost.search.kept_work import KeptWork
from roost.service.explanation import Reason

BYTES_MAX = 32 * 1024 * 1024
_ANSWER_BYTES_MAX = BYTES_MAX // 4
# What an answer takes beside its body and its question.
_OVERHEAD_BYTES = 1000
# How many questions have kept work, which takes less than a megabyte each.
_QUESTIONS_MAX = 32

# A query string and a version.
Question: TypeAlias = tuple[str, Hashable]


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A body, and the headers that belong to it."""

    body: KeptBody
    headers: tuple[tuple[str, str], ...] = ()
    # How many candidates the body has.
    count: int = 0


@dataclass(slots=True)
class _KeptAnswer:
    """An answer with the footprint of its search."""

    answer: CachedAnswer
    footprint: Footprint
    size: int
    # The token of the latest forest of which the cache knows that it has this answer.
    token: object


class AnswerCache:
    """Answers by question, up to a number of bytes, and the work that the next ones can use.

    For any number of threads.
    """

    def __init__(self) -> None:
        # Those that were used last come last.
        self._answers: dict[Question, _KeptAnswer] = {}
        self._bytes = 0
        self._work: dict[Question, KeptWork] = {}
        # Why an answer is empty, with the token of the forest.
        self._reasons: dict[Question, tuple[object, Reason]] = {}
        self._lock = threading.Lock()

    def find(self, question: Question, forest: Forest) -> CachedAnswer | None:
        """The answer to this question from this forest, if the cache has it."""
        kept = self._answers.get(question)
        if kept is None:
            return None
        if kept.token is not forest.token:
            if not kept.footprint.is_unchanged_in(forest):
                return None
            kept.token = forest.token
        with self._lock:
            if self._answers.get(question) is kept:
                self._answers[question] = self._answers.pop(question)
        return kept.answer

    def earlier_body(self, question: Question) -> KeptBody | None:
        """The body of the last answer to this question, from whatever forest."""
        kept = self._answers.get(question)
        return None if kept is None else kept.answer.body

    def keep(
        self, question: Question, forest: Forest, answer: CachedAnswer, footprint: Footprint
    ) -> None:
        """Remember an answer from this forest. Answers that were not used for long may go."""
        size = answer.body.size + len(question[0]) + _OVERHEAD_BYTES + 8 * len(footprint.tokens)
        with self._lock:
            self._drop(question)
            if size > _ANSWER_BYTES_MAX:
                return
            while self._bytes + size > BYTES_MAX:
                self._drop(next(iter(self._answers)))
            self._answers[question] = _KeptAnswer(answer, footprint, size, forest.token)
            self._bytes += size
            self._forget_outdated(forest)

    def work(self, question: Question) -> KeptWork:
        """What earlier searches for this question left."""
        with self._lock:
            work = self._work.pop(question, None)
            if work is None:
                work = KeptWork()
                if len(self._work) >= _QUESTIONS_MAX:
                    del self._work[next(iter(self._work))]
            self._work[question] = work
        return work

    def reason(self, question: Question, forest: Forest) -> Reason | None:
        """Why the answer to this question from this forest is empty, if the cache knows it."""
        token, reason = self._reasons.get(question, (None, None))
        return reason if token is forest.token else None

    def keep_reason(self, question: Question, forest: Forest, reason: Reason) -> None:
        """Remember why the answer from this forest is empty."""
        with self._lock:
            self._reasons.pop(question, None)
            if len(self._reasons) >= _QUESTIONS_MAX:
                del self._reasons[next(iter(self._reasons))]
            self._reasons[question] = forest.token, reason

    def _forget_outdated(self, forest: Forest) -> None:
        """Drop answers that no longer hold and whose question was not asked for long.

        Their parts help only a question that is asked again soon. Without this, a client that
        never repeats a question would fill the cache with them.
        """
        while len(self._answers) > _QUESTIONS_MAX:
            question, kept = next(iter(self._answers.items()))
            if kept.token is not forest.token:
                if not kept.footprint.is_unchanged_in(forest):
                    self._drop(question)
                    continue
                kept.token = forest.token
            return

    def _drop(self, question: Question) -> None:
        kept = self._answers.pop(question, None)
        if kept is not None:
            self._bytes -= kept.size
