"""Kept answers: for each question its last answer, and the work that the next answer can use."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TypeAlias

from roost.search.candidates.kept_work import KeptWork
from roost.search.forest.forest import Forest
from roost.service.questions.explain import Reason

BYTES_MAX = 32 * 1024 * 1024
_QUESTION_BYTES_MAX = BYTES_MAX // 4
# What a question takes beside its text, its work and its answer.
_OVERHEAD_BYTES = 2000
_WORD_BYTES = 8
# How many questions stay although their answers no longer hold.
_OUTDATED_MAX = 32

# A query string, and what else tells its answers apart: the version, or the route.
AnswerKey: TypeAlias = tuple[str, Hashable]


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A body, and the headers that belong to it."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    # How many candidates the body has.
    count: int = 0
    # Whether the client may miss candidates.
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class KeptQuestion:
    """All that is kept for a question. Its work says in which forests it holds."""

    work: KeptWork
    # `None` if the next search may find something else, or if the answer is too large.
    answer: WholeAnswer | None
    # The latest forest of which it is known that the work finds the same there.
    forest_token: object
    # Why the answer is empty. A reason looks at the whole forest, so it holds in that forest only.
    reason: Reason | None = None
    size: int = 0

    def known_in(self, forest: Forest) -> KeptQuestion | None:
        """The same after a look at this forest; `None` if the work finds something else there."""
        if self.forest_token is forest.token:
            return self
        if not self.work.finds_the_same_in(forest):
            return None
        return replace(self, forest_token=forest.token, reason=None)


class KeptAnswers:
    """What is kept, by question, up to a number of bytes. For any number of threads."""

    def __init__(self) -> None:
        # Those that were used last come last.
        self._questions: dict[AnswerKey, KeptQuestion] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def answer(self, question: AnswerKey, forest: Forest) -> WholeAnswer | None:
        """The answer to this question from this forest, if it is known."""
        kept = self._questions.get(question)
        known = None if kept is None or kept.answer is None else kept.known_in(forest)
        if known is None:
            return None
        with self._lock:
            if self._questions.get(question) is kept:
                del self._questions[question]
                self._questions[question] = known
        return known.answer

    def work(self, question: AnswerKey) -> KeptWork | None:
        """What the last search for this question left, in whatever forest."""
        kept = self._questions.get(question)
        return None if kept is None else kept.work

    def reason(self, question: AnswerKey, forest: Forest) -> Reason | None:
        """Why the answer to this question from this forest is empty, if that is known."""
        kept = self._questions.get(question)
        return kept.reason if kept is not None and kept.forest_token is forest.token else None

    def keep(
        self, question: AnswerKey, forest: Forest, work: KeptWork, answer: WholeAnswer | None
    ) -> None:
        """Remember what a search in this forest left. What was not used for long may go."""
        size = len(question[0]) + _OVERHEAD_BYTES + _WORD_BYTES * work.words
        if answer is not None and size + len(answer.body) > _QUESTION_BYTES_MAX:
            answer = None
        size += 0 if answer is None else len(answer.body)
        reason = self.reason(question, forest)
        with self._lock:
            self._drop(question)
            if size > _QUESTION_BYTES_MAX:
                return
            while self._bytes + size > BYTES_MAX:
                self._drop(next(iter(self._questions)))
            self._questions[question] = KeptQuestion(work, answer, forest.token, reason, size)
            self._bytes += size
            self._drop_outdated(forest)

    def keep_reason(self, question: AnswerKey, forest: Forest, reason: Reason) -> None:
        """Remember why the answer from this forest is empty."""
        with self._lock:
            kept = self._questions.get(question)
            if kept is not None and kept.forest_token is forest.token:
                self._questions[question] = replace(kept, reason=reason)

    def _drop_outdated(self, forest: Forest) -> None:
        """Drop questions that were not asked for long, if their answers no longer hold.

        Their work helps only a question that is asked again soon. Without this, a client that
        never repeats a question would fill the memory with them.
        """
        while len(self._questions) > _OUTDATED_MAX:
            question, kept = next(iter(self._questions.items()))
            known = None if kept.answer is None else kept.known_in(forest)
            if known is not None:
                self._questions[question] = known
                return
            self._drop(question)

    def _drop(self, question: AnswerKey) -> None:
        kept = self._questions.pop(question, None)
        if kept is not None:
            self._bytes -= kept.size
