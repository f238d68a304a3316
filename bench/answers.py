"""Answers of `GET /allocation_candidates`, as sets that can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Candidate = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]


@dataclass(frozen=True)
class Answer:
    """The content of an answer, without its order."""

    candidates: frozenset[Candidate]
    entries: int
    summaries: dict[str, Any]

    def difference(self, other: Answer) -> str | None:
        """The difference from a second complete answer to the same question; `None` if equal."""
        if len(self.candidates) != self.entries:
            return f"{self.entries - len(self.candidates)} candidates are there twice"
        if self.candidates != other.candidates:
            missing = len(other.candidates - self.candidates)
            surplus = len(self.candidates - other.candidates)
            return f"{missing} candidates are missing, {surplus} should not be there"
        if self.summaries != other.summaries:
            uuids = self.summaries.keys() | other.summaries.keys()
            differing = sum(self.summaries.get(u) != other.summaries.get(u) for u in uuids)
            return f"{differing} of {len(uuids)} provider summaries differ"
        return None

    def defect(self, complete: Answer, limit: int) -> str | None:
        """The error of this answer to a question with a limit; `None` if it is right."""
        expected = min(limit, len(complete.candidates))
        if len(self.candidates) != expected or self.entries != expected:
            return f"{self.entries} candidates where {expected} are due"
        if not self.candidates <= complete.candidates:
            return f"{len(self.candidates - complete.candidates)} candidates that do not exist"
        wrong = sum(
            summary != complete.summaries.get(uuid) for uuid, summary in self.summaries.items()
        )
        return f"{wrong} provider summaries differ" if wrong else None


def read_answer(body: bytes) -> Answer:
    """The answer in a body of version 1.39."""
    document = json.loads(body)
    requests = document["allocation_requests"]
    summaries = document["provider_summaries"]
    for summary in summaries.values():
        summary["traits"].sort()
    return Answer(frozenset(map(_candidate, requests)), len(requests), summaries)


def count_candidates(body: bytes) -> int:
    """The number of candidates in a body, without parsing it."""
    return body.count(b'"mappings"')


def _candidate(request: dict[str, Any]) -> Candidate:
    amounts = frozenset(
        (provider, name, amount)
        for provider, allocation in request["allocations"].items()
        for name, amount in allocation["resources"].items()
    )
    mappings = frozenset(
        (suffix, frozenset(providers)) for suffix, providers in request["mappings"].items()
    )
    return amounts, mappings
