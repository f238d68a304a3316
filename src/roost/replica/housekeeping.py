"""Housekeeping: a thread of each process does what no request should have to wait for."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from roost.replica.replica import Replica
from roost.store.clock import utc_now
from roost.store.database import Database
from roost.store.errors import reason_of
from roost.store.journal_pruning import prune_changes

_LOG = logging.getLogger(__name__)

# A reader that was away for longer than this reads everything anew.
_JOURNAL_KEPT = timedelta(hours=1)
_PRUNE_SECONDS = 10
# In one transaction: it takes a few dozen milliseconds, in which SQLite lets no other write.
_PRUNED_ROWS_MAX = 2_000
_TIDY_SECONDS = 5
# How long a process that stops waits for a chore that has begun.
_STOP_SECONDS = 5


@dataclass(slots=True)
class Chore:
    """Something to do every few seconds; what fails is logged, counted, and tried again."""

    name: str
    work: Callable[[], None]
    seconds: float
    due: float = field(init=False)
    failures: int = 0
    reason: str | None = None

    def __post_init__(self) -> None:
        self.put_off()

    def put_off(self) -> None:
        """Make it due in a while, by chance: the workers of a host do not begin together."""
        self.due = time.monotonic() + self.seconds * random.uniform(0.5, 1)

    def run(self) -> None:
        """Do it. The log has a line when it begins to fail and another when that is over."""
        try:
            self.work()
            reason = None
        except Exception as error:
            self.failures += 1
            reason = reason_of(error)
        if reason is None and self.reason is not None:
            _LOG.info("%s succeeds again", self.name)
        elif reason is not None and reason != self.reason:
            _LOG.warning(
                "%s fails, and is tried again (%d failures so far): %s",
                self.name,
                self.failures,
                reason,
            )
        self.reason = reason
        self.put_off()


class Housekeeping:
    """Keeps the replica fresh and the journal short, whether or not clients ask for anything."""

    def __init__(self, database: Database, replica: Replica) -> None:
        self._database = database
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._process_id: int | None = None
        self.chores = (
            Chore("Reading the journal", replica.tidy, _TIDY_SECONDS),
            Chore("Pruning the journal", self._prune, _PRUNE_SECONDS),
        )

    @property
    def failures(self) -> int:
        """How often a chore failed."""
        return sum(chore.failures for chore in self.chores)

    def ensure(self) -> None:
        """Start the thread, unless it runs. Threads do not come along with a fork."""
        if self._process_id == os.getpid():
            return
        with self._starting:
            if self._process_id == os.getpid():
                return
            self._process_id = os.getpid()
            self._thread = threading.Thread(
                target=self._run, name="roost-housekeeping", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Stop for good, after the chore that is being done."""
        self._stopping.set()
        if self._thread is not None and self._process_id == os.getpid():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(min(chore.due for chore in self.chores) - time.monotonic()):
            for chore in self.chores:
                if chore.due <= time.monotonic() and not self._stopping.is_set():
                    chore.run()

    def _prune(self) -> None:
        """Delete changes that all readers have seen, as many as there are.

        Other processes may do the same at the same time: they delete one batch each in turn.
        """
        edge = utc_now() - _JOURNAL_KEPT
        while not self._stopping.is_set():
            began = time.monotonic()
            if self._database.write(prune_changes, edge, _PRUNED_ROWS_MAX) < _PRUNED_ROWS_MAX:
                return
            # Between two batches there is room for other writers.
            self._stopping.wait((time.monotonic() - began) / 4)
