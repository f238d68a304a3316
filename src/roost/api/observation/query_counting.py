"""Counts how many more consumers with each named query fit, for `/metrics`.

One process of a server counts, in a thread of its own. A query is counted again after the forest
has changed, and never otherwise. After each count the thread rests for a multiple of its CPU time.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from roost.api.candidates.query import parse_query_text
from roost.api.extensions.parameters import resolve_places
from roost.api.extensions.questions.question_turn import enter_if_large
from roost.api.http.errors import HttpError
from roost.api.services import Services
from roost.configuration.settings import ConfigurationError, Settings
from roost.metrics.catalogue import QUERY_FIGURES
from roost.metrics.counting import TALLY
from roost.model.candidate_query.query import CandidateQuery
from roost.replica.housekeeping import Chore, ChoreThread
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.variants import choose_candidate
from roost.search.forest.forest import Forest
from roost.service.errors import DomainError
from roost.service.questions.capacity_answers import capacity_of
from roost.turns import TURNS, SearchTooLong, TooManySearches

_LOG = logging.getLogger(__name__)

# The thread looks for changes this often.
ROUND_SECONDS = 2.0
# All counts of a server together take a twentieth of a CPU at most.
_REST_TIMES = 19.0
# A round that takes longer goes on with a newer forest.
_FOREST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query, its name in `/metrics`, and the line that it comes from."""

    name: str
    query: CandidateQuery
    place: str


def named_queries(settings: Settings) -> tuple[NamedQuery, ...]:
    """The queries of the settings; `ConfigurationError` with the line of one that is none.

    A class, trait or provider that does not exist is no mistake here: a host may bring it later.
    """
    if not settings.watch.metrics:
        return ()
    found = []
    for line in settings.watch.queries:
        try:
            query = parse_query_text(line.query, settings.limits)
        except HttpError as error:
            raise ConfigurationError(
                f"{line.place}: the query {line.name} cannot be used. {error.text}"
            ) from None
        found.append(NamedQuery(line.name, query, line.place))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """How many more consumers with a query fit: bounds, which are equal if the count is exact."""

    fits: int
    at_most: int
    feasible: bool


_NOTHING = QueryFigures(0, 0, feasible=False)


class _Stopped(Exception):
    """The process ends, so the count under way is of no use."""


@dataclass(slots=True)
class _CountedQuery:
    """What is known of a query. A forest is named by its number among those of the thread."""

    named: NamedQuery
    figures: QueryFigures = _NOTHING
    # The forest for which the figures hold; 0 for none.
    holds_for: int = 0
    # The last forest that was counted, or will never be.
    settled_for: int = 0
    # Why the figures are zero, or hold for an older forest.
    problem: str | None = None

    def tell(self, problem: str | None) -> None:
        """Log a problem when it comes, and when it has gone."""
        if problem is not None and problem != self.problem:
            _LOG.warning("%s: the query %s %s", self.named.place, self.named.name, problem)
        elif problem is None and self.problem is not None:
            _LOG.info("%s: the query %s is counted again", self.named.place, self.named.name)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _SeenForest:
    """A forest, its number, and the moment at which it was up to date, by two clocks."""

    forest: Forest
    number: int
    clock: float
    time: float


class QueryCounting(ChoreThread):
    """The thread that counts the named queries."""

    def __init__(self, services: Services, queries: tuple[NamedQuery, ...]) -> None:
        super().__init__(
            "roost-query-counting", (Chore("Counting queries", self.count_round, ROUND_SECONDS),)
        )
        self._services = services
        self._wanted = queries
        self._queries: dict[str, _CountedQuery] = {}
        self._seen: _SeenForest | None = None

    def replace(self, queries: tuple[NamedQuery, ...]) -> None:
        """Count these queries from the next round on."""
        self._wanted = queries

    def ensure(self) -> None:
        """Start the thread as soon as there is a query."""
        if self._wanted:
            super().ensure()

    def count_round(self) -> None:
        """Bring the figures of all queries up to date, unless another process does that."""
        wanted = self._wanted
        if not (wanted or self._queries) or not _leads():
            return
        self._take_over(wanted)
        for query in self._queries.values():
            if self._stopping.is_set():
                return
            began = time.thread_time()
            seen = self._look()
            if query.settled_for != seen.number:
                self._count(query, seen)
                self._stopping.wait(_REST_TIMES * (time.thread_time() - began))
            if query.holds_for == seen.number:
                found = query.figures
                values = (seen.time, found.fits, found.at_most, found.feasible)
                QUERY_FIGURES.write(values, (query.named.name,))

    def _take_over(self, wanted: tuple[NamedQuery, ...]) -> None:
        """Forget the figures of queries that are wanted no longer, or have become others."""
        kept = {}
        for named in wanted:
            known = self._queries.get(named.name)
            if known is None or known.named.query != named.query:
                known = _CountedQuery(named)
            known.named = named
            kept[named.name] = known
        for name, known in self._queries.items():
            if kept.get(name) is not known:
                QUERY_FIGURES.forget((name,))
        self._queries = kept

    def _look(self) -> _SeenForest:
        """The forest of now, or of a moment ago."""
        last = self._seen
        if last is not None and time.monotonic() - last.clock < _FOREST_SECONDS:
            return last
        clock, now = time.monotonic(), time.time()
        forest = self._services.replica.current()
        number = 1 if last is None else last.number + (forest is not last.forest)
        self._seen = seen = _SeenForest(forest, number, clock, now)
        return seen

    def _count(self, query: _CountedQuery, seen: _SeenForest) -> None:
        """Count one query, or say why that is impossible."""
        problem: str | None = None
        try:
            query.figures = self._figures(query.named, seen.forest)
        except DomainError as error:
            query.figures = _NOTHING
            problem = f"counts as 0 while a name in it does not exist: {error.message}"
        except SearchTooLong as error:
            # The same forest would take as long again.
            query.settled_for = seen.number
            query.tell(f"is not counted: that takes {error} ([roost]max_search_seconds)")
            return
        except TooManySearches as error:
            query.tell(f"is counted later: {error}")
            return
        except _Stopped:
            return
        query.holds_for = query.settled_for = seen.number
        query.tell(problem)

    def _figures(self, named: NamedQuery, forest: Forest) -> QueryFigures:
        limits = self._services.settings.limits
        query = resolve_places(self._services, named.query)
        with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:

            def pause() -> None:
                if self._stopping.is_set():
                    raise _Stopped
                turn.pause()

            enter_if_large(turn, forest)
            found = capacity_of(forest, query, pause)
            feasible = found.fits > 0
            if not feasible and found.at_most > 0:
                # The bounds do not tell.
                feasible = choose_candidate(forest, query, CandidateOrder(), pause) is not None
            return QueryFigures(found.fits, found.at_most, feasible)


def _leads() -> bool:
    """Whether this process counts for all processes of the server."""
    with TALLY.lock:
        return TALLY.memory.may_lead()
