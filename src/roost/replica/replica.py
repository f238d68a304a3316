"""The replica: a forest, brought up to date for each request that searches it.

Requests for candidates and for filtered lists of providers search it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from roost.metrics.catalogue import (
    JOURNAL_ROWS,
    LAST_LOOK,
    LOOK_FAILURES,
    REBUILD_SECONDS,
    REBUILDS,
    REFRESHES,
)
from roost.search.forest import Forest
from roost.search.rows import ForestRows
from roost.search.vocabulary import Vocabulary
from roost.store.database import Database
from roost.store.errors import ConnectionLost, DatabaseAway, DatabaseSilent
from roost.store.forest.reading import read_forest, read_trees, read_usages, read_vocabulary
from roost.store.journal.following import ConnectionReplaced, Following
from roost.store.journal.position import JournalEntry, JournalLost, Position
from roost.store.journal.reading import start_position
from roost.store.journal.writing import ChangeKind

_LOG = logging.getLogger(__name__)

# With more changed providers than this share, reading all tables is cheaper than reading trees.
_REBUILD_SHARE = 0.25
REBUILD_PROVIDERS_MIN = 1000
# Reading a change takes 7 to 15 microseconds, reading a provider with all its rows 6 to 30. So with
# more changes for each provider than this, reading all tables is cheaper as well.
_CHANGES_PER_PROVIDER = 0.5
CHANGES_MIN = 10_000
# Tables keep sets that no provider has any more. With more sets of traits or of aggregates for each
# provider than this, the replica reads everything.
_SETS_PER_PROVIDER_MAX = 4
_SETS_MIN = 10_000

# Labels of metrics.
_USAGES, _TREES = ("usages",), ("trees",)

_VOCABULARY = {ChangeKind.RESOURCE_CLASSES, ChangeKind.TRAIT_NAMES}


class Replica:
    """Keeps a forest equal to the tables by reading the journal. For any number of threads.

    One thread at a time looks into the journal, and all other threads wait for its look. When the
    look fails or takes too long, these threads fail as well. So a database that is away does not
    occupy all threads of a process.
    """

    def __init__(self, database: Database) -> None:
        self._following = Following(database)
        self._wait_seconds = database.options.wait_seconds
        self._state: tuple[Forest, Position] | None = None
        # Guards the attributes below. Threads wait here until the look of another thread ends.
        self._look_ended = threading.Condition(threading.Lock())
        self._is_looking = False
        self._look_began = 0.0
        # When the last successful look began.
        self._seen_at = 0.0
        # The error of the last look, if the database was away; and how many looks failed so.
        self._failure: DatabaseAway | None = None
        self._failures = 0

    def current(self) -> Forest:
        """A forest that contains everything that was committed before this call.

        A thread takes the result of another thread's look if that look began after this call.
        """
        called = time.monotonic()
        with self._look_ended:
            if self._is_looking:
                forest = self._shared(called)
                if forest is not None:
                    return forest
            self._is_looking = True
            self._look_began = time.monotonic()
        return self._look()

    @property
    def latest(self) -> Forest | None:
        """The forest of the last look, however old; `None` before the first."""
        state = self._state
        return None if state is None else state[0]

    def sample(self) -> None:
        """Set the gauge of the last look."""
        if self._seen_at:
            LAST_LOOK.set(time.time() - (time.monotonic() - self._seen_at))

    def tidy(self) -> None:
        """Look into the journal, and forget what makes further looks slower."""
        with self._look_ended:
            if not self._look_ended.wait_for(lambda: not self._is_looking, self._wait_seconds):
                return
            self._is_looking = True
            self._look_began = time.monotonic()
        self._look(tidies=True)

    def _shared(self, called: float) -> Forest | None:
        """The forest of another thread's look; `None` if this thread has to look itself."""
        if self._failure is not None:
            # One thread that waits for the database is enough.
            raise DatabaseAway(f"the last look into the journal failed: {self._failure}")
        failures = self._failures
        while self._is_looking:
            rest = min(called, self._look_began) + self._wait_seconds - time.monotonic()
            if rest <= 0:
                raise DatabaseSilent(
                    f"a look into the journal takes longer than {self._wait_seconds} seconds"
                )
            self._look_ended.wait(rest)
            if self._state is not None and self._seen_at > called:
                return self._state[0]
            if self._failures != failures:
                raise DatabaseAway(f"the look into the journal failed: {self._failure}")
        return None

    def _look(self, *, tidies: bool = False) -> Forest:
        failure: DatabaseAway | None = None
        seen_at = self._seen_at
        try:
            forest, position = self._refreshed(self._state)
            if tidies:
                position = self._following.read(position.forget_gaps)
            self._state = forest, position
            seen_at = self._look_began
            return forest
        except DatabaseAway as error:
            failure = error
            raise
        finally:
            if seen_at != self._look_began:
                LOOK_FAILURES.count()
            with self._look_ended:
                self._seen_at = seen_at
                self._failure = failure
                self._failures += failure is not None
                self._is_looking = False
                self._look_ended.notify_all()

    def _refreshed(self, state: tuple[Forest, Position] | None) -> tuple[Forest, Position]:
        if state is not None:
            try:
                return self._read_on(*state)
            except JournalLost as reason:
                _LOG.info("Reading all providers again: %s", reason)
            except (ConnectionReplaced, ConnectionLost) as reason:
                # The server may have crashed and lost changes that were read over the connection.
                self._state = None
                _LOG.info("Reading all providers again: %s", reason)
            except DatabaseAway:
                self._state = None
                raise
        began = time.monotonic()
        (rows, vocabulary), position = self._following.begin(_read_everything)
        # Outside the transaction, because it takes seconds for a large cloud.
        forest = Forest.of(rows, vocabulary)
        seconds = time.monotonic() - began
        REBUILDS.count()
        REBUILD_SECONDS.count(amount=seconds)
        _LOG.info("Read %d providers in %.1f seconds", forest.provider_count, seconds)
        return forest, position

    def _read_on(self, forest: Forest, position: Position) -> tuple[Forest, Position]:
        looked = self._following.read(position.look)
        if looked is not None:
            entries, now = looked
            if all(entry.usages is not None for entry in entries):
                if entries:
                    JOURNAL_ROWS.count(amount=len(entries))
                    REFRESHES.count(_USAGES)
                # Usually nothing is new, or only claims, whose entries say all.
                return _with_new_usages(forest, entries), now
        # One snapshot has the journal and what the journal does not say, so that the forest has a
        # transaction whole or not at all.
        changed, now, rows = self._following.snapshot(_apply_changes, forest, position)
        JOURNAL_ROWS.count(amount=rows)
        REFRESHES.count(_TREES)
        return changed, now


def _read_everything(connection: Connection) -> tuple[tuple[ForestRows, Vocabulary], Position]:
    position = start_position(connection)
    return (read_forest(connection), read_vocabulary(connection)), position


def _apply_changes(
    connection: Connection, forest: Forest, position: Position
) -> tuple[Forest, Position, int]:
    """The forest with what is new, the position after it, and how many rows were new."""
    entries, position = position.read(connection, _worth_reading(forest))
    if any(entry.kind in _VOCABULARY for entry in entries):
        forest = forest.with_vocabulary(read_vocabulary(connection))
    changed = _providers(entries, frozenset(ChangeKind) - _VOCABULARY - {ChangeKind.USAGE})
    used = _providers(entries, {ChangeKind.USAGE}) - changed
    if _is_worth_rebuilding(forest, len(changed) + len(used)):
        return Forest.of(read_forest(connection), forest.vocabulary), position, len(entries)
    if changed:
        old_roots = forest.root_ids_of(changed)
        forest = forest.with_trees(read_trees(connection, changed, old_roots), old_roots)
    untold = [entry for entry in entries if entry.usages is None]
    unknown = used & _providers(untold, {ChangeKind.USAGE})
    if unknown:
        forest = forest.with_usages(read_usages(connection, unknown), unknown)
    known = used - unknown
    told = [entry for entry in entries if entry.provider_id in known]
    return _with_new_usages(forest, told), position, len(entries)


def _with_new_usages(forest: Forest, entries: Sequence[JournalEntry]) -> Forest:
    """The forest with the usages of these entries, which all have some."""
    usages: dict[int, dict[int, int]] = {}
    # By id: the last entry of a provider has its newest usages.
    for entry in entries:
        if entry.provider_id is not None and entry.usages is not None:
            usages.setdefault(entry.provider_id, {}).update(entry.usages)
    return forest.with_changed_usages(usages) if usages else forest


def _providers(entries: Sequence[JournalEntry], kinds: Collection[ChangeKind]) -> set[int]:
    return {
        entry.provider_id
        for entry in entries
        if entry.kind in kinds and entry.provider_id is not None
    }


def _worth_reading(forest: Forest) -> int:
    """How many changes to read at most, instead of all tables."""
    return max(CHANGES_MIN, int(forest.provider_count * _CHANGES_PER_PROVIDER))


def _is_worth_rebuilding(forest: Forest, changed: int) -> bool:
    count = forest.provider_count
    sets = max(len(forest.trait_sets), len(forest.aggregate_sets))
    return changed > max(REBUILD_PROVIDERS_MIN, count * _REBUILD_SHARE) or sets > max(
        _SETS_MIN, count * _SETS_PER_PROVIDER_MAX
    )
