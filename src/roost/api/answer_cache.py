"""Answers that can be given again as long as nothing has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from roost.search.forest import Forest

BYTES_MAX = 32 * 1024 * 1024
_ANSWER_BYTES_MAX = BYTES_MAX // 4


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A body, the headers that belong to it, and the token of the forest of which it is true."""

    forest: object
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class AnswerCache:
    """The latest answers by question, bounded by their bytes.

    A forest never changes, so an answer is true as long as the forest is the same.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, CachedAnswer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, question: Hashable, forest: Forest) -> CachedAnswer | None:
        """The answer to this question in this forest, if it was given before."""
        found = self._answers.get(question)
        return found if found is not None and found.forest is forest.token else None

    def keep(self, question: Hashable, answer: CachedAnswer) -> None:
        """Remember an answer instead of older ones."""
        if len(answer.body) > _ANSWER_BYTES_MAX:
            return
        with self._lock:
            self._remove(question)
            self._answers[question] = answer
            self._bytes += len(answer.body)
            while self._bytes > BYTES_MAX:
                self._remove(next(iter(self._answers)))

    def _remove(self, question: Hashable) -> None:
        old = self._answers.pop(question, None)
        if old is not None:
            self._bytes -= len(old.body)
