"""The services that handlers work with, beside the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from roost.api.candidates.answer_cache import AnswerCache
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.requests import Request
from roost.configuration.settings import Settings
from roost.replica.replica import Replica
from roost.store.database import Database, Work

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the application that all requests of a process share."""

    settings: Settings
    database: Database
    replica: Replica
    answers: AnswerCache
    summaries: SummaryCache

    def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case that only reads."""
        return self.database.read(work, *args, **kwargs)

    def write(
        self,
        request: Request,
        work: Work[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a use case that writes, in one transaction, and note in the request that it has.

        If a later step fails, the answer must not say that nothing was written.
        """
        result = self.database.write(work, *args, **kwargs)
        request.has_written = True
        return result
