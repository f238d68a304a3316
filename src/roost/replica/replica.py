"""The replica: a forest, brought up to date for each request that searches it.

Candidates, filtered lists of providers, metrics and all questions under `/roost/` search it.
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
from roost.model.limits import Limits
from roost.replica.rebuild import Rebuild
from roost.search.forest.forest import Forest
from roost.store.connections.errors import ConnectionLost, DatabaseAway, DatabaseSilent
from roost.store.database import Database
from roost.store.forest.reading import read_trees, read_usages, read_vocabulary
from roost.store.journal.following import Following, ServerReplaced
from roost.store.journal.position import JournalEntry, JournalLost, Position
from roost.store.journal.writing import ChangeKind
from roost.turns import TURNS

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

# A rebuild begins anew if the journal cannot complete it. Usually it does not happen twice.
_BEGINNINGS_MAX = 4
# How often a waiting thread judges the progress of a look.
_PAUSE_SECONDS = 1.0

# Labels of metrics.
_USAGES, _TREES = ("usages",), ("trees",)

_VOCABULARY = {ChangeKind.RESOURCE_CLASSES, ChangeKind.TRAIT_NAMES}


class ForestLate(Exception):
    """The forest was not brought up to date in the time that a request waits for it."""


class Replica:
    """Keeps a forest equal to the tables by reading the journal. For any number of threads.

    One thread at a time looks into the journal, and all other threads wait for its look. When the
    look fails, or hears nothing from the database for `wait_seconds`, these threads fail as well.
    So a database that is away does not occupy all threads of a process. A look may take longer if
    the database answers, most of all if the forest is rebuilt: threads wait for `patience_seconds`.
    """

    def __init__(
        self, database: Database, patience_seconds: float = Limits().search_wait_seconds
    ) -> None:
        self._following = Following(database)
        self._wait_seconds = database.options.wait_seconds
        self._patience_seconds = patience_seconds
        self._state: tuple[Forest, Position] | None = None
        # A forest in the making. It replaces the state, which is of no use any more.
        self._rebuild: Rebuild | None = None
        # Guards the attributes below. Threads wait here until the look of another thread ends.
        self._look_ended = threading.Condition(threading.Lock())
        self._is_looking = False
        self._look_began = 0.0
        # When the last successful look began.
        self._seen_at = 0.0
        # The error of the last look, if the database was away; and how many looks failed so.
        self._failure: DatabaseAway | None = None
        self._failures = 0

    def current(self, patience_seconds: float | None = None) -> Forest:
        """A forest that contains everything that was committed before this call.

        A thread takes the result of another thread's look if that look began after this call.
        """
        called = time.monotonic()
        with self._look_ended:
            if self._is_looking:
                patience = self._patience_seconds if patience_seconds is None else patience_seconds
                forest = self._shared(called, patience)
                if forest is not None:
                    return forest
            self._is_looking = True
            self._look_began = time.monotonic()
        return self._look()

    @property
    def look_seconds(self) -> float:
        """How long the look under way has taken so far; 0 if none is under way."""
        return time.monotonic() - self._look_began if self._is_looking else 0.0

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

    def _shared(self, called: float, patience: float) -> Forest | None:
        """The forest of another thread's look; `None` if this thread has to look itself."""
        if self._failure is not None and self._following.answered_at < self._look_began:
            # One thread that waits for the database is enough.
            raise DatabaseAway(f"the last look into the journal failed: {self._failure}")
        failures = self._failures
        is_counted = False
        try:
            while self._is_looking:
                self._look_ended.wait(self._pause(called, patience))
                if self._state is not None and self._seen_at > called:
                    return self._state[0]
                if self._failures != failures:
                    raise DatabaseAway(f"the look into the journal failed: {self._failure}")
                if not is_counted and time.monotonic() - called >= _PAUSE_SECONDS:
                    # As a large search, so that threads are left for small requests.
                    TURNS.join()
                    is_counted = True
            return None
        finally:
            if is_counted:
                TURNS.leave()

    def _pause(self, called: float, patience: float) -> float:
        """How long to wait for another thread's look, before its progress is judged again."""
        now = time.monotonic()
        heard_rest = self._following.silent_since + self._wait_seconds - now
        if heard_rest <= 0:
            raise DatabaseSilent(
                f"a look into the journal takes longer than {self._wait_seconds} seconds"
            )
        rest = called + patience - now
        if rest <= 0:
            raise ForestLate(
                "the forest is still being brought up to date after "
                f"{self.look_seconds:.0f} seconds"
            )
        return min(heard_rest, rest, _PAUSE_SECONDS)

    def _look(self, *, tidies: bool = False) -> Forest:
        failure: DatabaseAway | None = None
        seen_at = self._seen_at
        try:
            self._state = forest, position = self._refreshed()
            if tidies:
                self._state = forest, self._following.read(position.forget_gaps)
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

    def _refreshed(self) -> tuple[Forest, Position]:
        """What the tables have now. A rebuild that failed earlier goes on."""
        for _ in range(_BEGINNINGS_MAX):
            try:
                if self._rebuild is None and self._state is not None:
                    return self._read_on(*self._state)
                return self._rebuilt(self._rebuild or self._begin_rebuild())
            except DatabaseAway:
                # A later look goes on with the rebuild.
                raise
            except (JournalLost, ServerReplaced) as reason:
                self._begin_rebuild()
                _LOG.info("Reading all providers again: %s", reason)
            except Exception:
                if self._rebuild is not None:
                    # What it has read may be the cause.
                    self._begin_rebuild()
                raise
        raise DatabaseAway("the journal changed too fast while all providers were read")

    def _begin_rebuild(self) -> Rebuild:
        self._rebuild = rebuild = Rebuild()
        return rebuild

    def _rebuilt(self, rebuild: Rebuild) -> tuple[Forest, Position]:
        forest, position = rebuild.finish(self._following)
        if not rebuild.is_complete:
            forest, position = self._read_on(forest, position)
        self._rebuild = None
        REBUILDS.count()
        REBUILD_SECONDS.count(amount=rebuild.seconds)
        _LOG.info("Read %d providers in %.1f seconds", forest.provider_count, rebuild.seconds)
        return forest, position

    def _read_on(self, forest: Forest, position: Position) -> tuple[Forest, Position]:
        """The forest with what is new."""
        try:
            return self._read_once(forest, position)
        except ConnectionLost:
            # The session was ended between two looks: another one works.
            return self._read_once(forest, position)

    def _read_once(self, forest: Forest, position: Position) -> tuple[Forest, Position]:
        looked = self._following.read(position.look)
        if looked is not None:
            entries, now = looked
            if not entries:
                return forest, now
            if all(entry.usages is not None for entry in entries):
                JOURNAL_ROWS.count(amount=len(entries))
                REFRESHES.count(_USAGES)
                # Usually only claims are new, whose entries say all.
                return _with_new_usages(forest, entries), now
        # One snapshot has the journal and what the journal does not say, so that the forest has a
        # transaction whole or not at all.
        changed, now, rows = self._following.snapshot(_apply_changes, forest, position)
        JOURNAL_ROWS.count(amount=rows)
        REFRESHES.count(_TREES)
        return changed, now


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
        raise JournalLost("so much has changed that this is faster")
    if changed:
        old_roots = forest.root_ids_of(changed)
        forest = forest.with_trees(read_trees(connection, changed, old_roots), old_roots)
    without_usages = [entry for entry in entries if entry.usages is None]
    unknown = used & _providers(without_usages, {ChangeKind.USAGE})
    if unknown:
        forest = forest.with_all_usages(read_usages(connection, unknown), unknown)
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
    return forest.with_some_usages(usages) if usages else forest


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
