"""Answers that can be given again as long as nothing has changed."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass

from roost.search.forest import Forest

BYTES_MAX = 32 * 1024 * 1024
_ANSWER_BYTES_MAX = BYTES_MAX // 4
# What an answer takes besides its body and its question.
_OVERHEAD_BYTES = 1000


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A body, and the headers that belong to it."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class AnswerCache:
    """Answers by question, as long as the forest is the same, and bounded by their bytes."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, Hashable], CachedAnswer] = {}
        self._bytes = 0
        # That of the forest of which all answers here are true.
        self._token: object = None
        self._lock = threading.Lock()

    def find(self, question: str, version: Hashable, forest: Forest) -> CachedAnswer | None:
        """The answer to this question in this forest, if it was given before."""
        with self._lock:
            if self._token is not forest.token:
                return None
            return self._answers.get((question, version))

    def keep(self, question: str, version: Hashable, forest: Forest, answer: CachedAnswer) -> None:
        """Remember an answer, and nothing that is true of another forest only."""
        size = len(answer.body) + len(question) + _OVERHEAD_BYTES
        if size > _ANSWER_BYTES_MAX:
            return
        with self._lock:
            if self._token is not forest.token or self._bytes + size > BYTES_MAX:
                self._answers.clear()
                self._bytes = 0
                self._token = forest.token
            if (question, version) not in self._answers:
                self._answers[question, version] = answer
                self._bytes += size
