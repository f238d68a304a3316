"""Housekeeping: a thread of each process does regular work, so that no request waits for it."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from roost.metrics.catalogue import HOUSEKEEPING_FAILURES, PRUNED_ROWS
from roost.replica.replica import Replica
from roost.store.connections.errors import reason_of
from roost.store.database import Database
from roost.store.journal.pruning import prune_changes
from roost.store.tables import utc_now

_LOG = logging.getLogger(__name__)

# A reader that was inactive for longer than this reads all tables again.
_JOURNAL_KEPT = timedelta(hours=1)
PRUNE_SECONDS = 10
# One transaction prunes this many rows in a few dozen milliseconds. Meanwhile SQLite has no other
# writer.
_PRUNED_ROWS_MAX = 2_000
TIDY_SECONDS = 5
# How old the gauges of a process are at most when another process is scraped.
SAMPLE_SECONDS = 1
# How long a stopping process waits for a chore that has begun.
_STOP_SECONDS = 5


@dataclass(slots=True)
class Chore:
    """Work that runs every few seconds. A failure is logged and counted; the work runs again."""

    name: str
    work: Callable[[], None]
    seconds: float
    due: float = field(init=False)
    failures: int = 0
    reason: str | None = None

    def __post_init__(self) -> None:
        self.put_off()

    def put_off(self) -> None:
        """Set the next time, partly at random: workers of a host must not begin together."""
        self.due = time.monotonic() + self.seconds * random.uniform(0.5, 1)

    def run(self) -> None:
        """Run the chore. The log gets a line when it begins to fail, and when it succeeds again."""
        try:
            self.work()
            reason = None
        except Exception as error:
            self.failures += 1
            HOUSEKEEPING_FAILURES.count((self.name,))
            reason = reason_of(error)
        if reason is None and self.reason is not None:
            _LOG.info("%s succeeds again", self.name)
        elif reason is not None and reason != self.reason:
            _LOG.warning(
                "%s fails and will run again (%d failures so far): %s",
                self.name,
                self.failures,
                reason,
            )
        self.reason = reason
        self.put_off()


class ChoreThread:
    """A thread of this process that does chores, one at a time."""

    def __init__(self, name: str, chores: Sequence[Chore]) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._process_id: int | None = None
        self.chores = chores

    @property
    def failures(self) -> int:
        """How often the chores failed."""
        return sum(chore.failures for chore in self.chores)

    def ensure(self) -> None:
        """Start the thread unless it runs. After a fork, the child starts its own thread."""
        if self._process_id == os.getpid():
            return
        with self._starting:
            if self._process_id == os.getpid():
                return
            self._process_id = os.getpid()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop for good, after the chore that runs."""
        self._stopping.set()
        if self._thread is not None and self._process_id == os.getpid():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(min(chore.due for chore in self.chores) - time.monotonic()):
            for chore in self.chores:
                if chore.due <= time.monotonic() and not self._stopping.is_set():
                    chore.run()


class Housekeeping(ChoreThread):
    """Keeps the replica fresh and the journal short, also without requests."""

    def __init__(
        self, database: Database, replica: Replica, sample: Callable[[], None] | None = None
    ) -> None:
        self._database = database
        chores = (
            Chore("Reading the journal", replica.tidy, TIDY_SECONDS),
            Chore("Pruning the journal", self._prune, PRUNE_SECONDS),
            *([Chore("Sampling", sample, SAMPLE_SECONDS)] if sample is not None else []),
        )
        super().__init__("roost-housekeeping", chores)

    def _prune(self) -> None:
        """Delete all rows of the journal that are old enough.

        Other processes may prune at the same time: the processes delete batches in turn.
        """
        older_than = utc_now() - _JOURNAL_KEPT
        while not self._stopping.is_set():
            began = time.monotonic()
            pruned = self._database.write_at_once(prune_changes, older_than, _PRUNED_ROWS_MAX)
            PRUNED_ROWS.count(amount=pruned)
            if pruned < _PRUNED_ROWS_MAX:
                return
            # Other writers get their turn between two batches.
            self._stopping.wait((time.monotonic() - began) / 4)
