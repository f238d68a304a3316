"""Answers that are sent again as long as the forest is the same."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass

from roost.search.forest import Forest

BYTES_MAX = 32 * 1024 * 1024
_ANSWER_BYTES_MAX = BYTES_MAX // 4
# What an answer takes beside its body and its question.
_OVERHEAD_BYTES = 1000


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A body, and the headers that belong to it."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class AnswerCache:
    """The answers from one forest, by question, up to a number of bytes."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, Hashable], CachedAnswer] = {}
        self._bytes = 0
        # The token of the forest from which all these answers come.
        self._token: object = None
        self._lock = threading.Lock()

    def find(self, question: str, version: Hashable, forest: Forest) -> CachedAnswer | None:
        """The answer to this question from this forest, if the cache has it."""
        with self._lock:
            if self._token is not forest.token:
                return None
            return self._answers.get((question, version))

    def keep(self, question: str, version: Hashable, forest: Forest, answer: CachedAnswer) -> None:
        """Remember an answer from this forest, and forget the answers from any other."""
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
