"""The services that handlers work with, beside the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from roost.api.candidates.kept_answers import KeptAnswers
from roost.api.candidates.summaries import SummaryCache
from roost.api.extensions.changes.hub import ChangeHub
from roost.api.http.requests import Request
from roost.api.observation.observation import Observation
from roost.api.observation.readiness import ReadinessCheck
from roost.api.observation.scrapes import SharedScrape
from roost.configuration.settings import Settings
from roost.metrics.catalogue import POOL_CONNECTIONS
from roost.metrics.sampling import sample_all
from roost.metrics.stage_times import CURRENT, Stage
from roost.replica.replica import Replica
from roost.search.forest.forest import Forest
from roost.search.forest.vocabulary import Vocabulary
from roost.search.resilience.resilience import Resilience
from roost.store.database import Database, Work, Write
from roost.store.journal.position import Position
from roost.store.journal.writing import Writer
from roost.store.transaction import Finished, Transaction
from roost.turns import Rounds, Turn

P = ParamSpec("P")
T = TypeVar("T")

# With the names of the classes that it is about.
FoundResilience: TypeAlias = tuple[Resilience, Vocabulary]


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the application that all requests of a process share."""

    settings: Settings
    database: Database
    replica: Replica
    answers: KeptAnswers
    summaries: SummaryCache
    readiness: ReadinessCheck
    observation: Observation
    scrapes: SharedScrape
    resilience: Rounds[FoundResilience]
    hub: ChangeHub

    @classmethod
    def on(cls, settings: Settings, database: Database) -> Services:
        """New services, with nothing remembered."""
        replica = Replica(database, settings.limits.search_wait_seconds)
        return cls(
            settings,
            database,
            replica,
            KeptAnswers(),
            SummaryCache(),
            ReadinessCheck(database, replica),
            Observation(settings.watch, settings.limits),
            SharedScrape(),
            Rounds(),
            ChangeHub(database, replica),
        )

    def forest(self) -> Forest:
        """A forest that contains everything that was committed before this call."""
        return self.forest_with_position()[0]

    def forest_with_position(self) -> tuple[Forest, Position]:
        """The same, and the position in the journal from which later changes follow."""
        began = perf_counter()
        try:
            return self.replica.current_with_position()
        finally:
            CURRENT.times.end(Stage.FRESHNESS, began)

    def sample(self) -> None:
        """Set the gauges of this process."""
        sample_all()
        self.observation.sample()
        self.replica.sample()
        self.hub.sample()
        for pool, source in self.database.sources().items():
            POOL_CONNECTIONS.set(source.opened, (pool, "open"))
            POOL_CONNECTIONS.set(source.kept, (pool, "idle"))

    def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case that only reads."""
        began = perf_counter()
        try:
            return self.database.read(work, *args, **kwargs)
        finally:
            CURRENT.times.end(Stage.DATABASE, began)

    def survey(
        self,
        turn: Turn,
        work: Work[Concatenate[Callable[[], None], P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a use case that reads very much, at one moment. It gets the pause of the turn."""
        began, waited = perf_counter(), turn.waited_seconds
        try:
            return self.database.survey(work, turn.pause_reading, *args, **kwargs)
        finally:
            times = CURRENT.times
            times.end(Stage.DATABASE, began)
            # The turn counts its waits itself.
            times.seconds[Stage.DATABASE] -= turn.waited_seconds - waited

    def rehearse(self, write: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case that writes, and undo it: what a request with `dry_run` does."""
        began = perf_counter()
        try:
            return self.database.rehearse(write, *args, **kwargs)
        finally:
            CURRENT.times.end(Stage.DATABASE, began)

    def write(
        self,
        request: Request,
        write: Write[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a use case that writes, in one transaction, and note in the request that it has.

        If a later step fails, the answer must not say that nothing was written. The journal names
        the request and its caller.
        """
        writer = Writer(request.id, request.caller.user, request.caller.project).text()

        def signed(transaction: Transaction) -> Finished[T]:
            # On SQLite, the thread of another request may run it.
            transaction.writer = writer
            return write(transaction, *args, **kwargs)

        began = perf_counter()
        try:
            result = self.database.write(signed)
        finally:
            request.times.end(Stage.DATABASE, began)
        request.has_written = True
        return result
