"""The replica: a forest that every question for candidates brings up to date."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from roost.replica.reading import read_forest, read_trees, read_usages, read_vocabulary
from roost.search.forest import Forest
from roost.search.rows import ForestRows, Vocabulary
from roost.store.database import Database
from roost.store.errors import ConnectionLost, DatabaseAway, DatabaseSilent
from roost.store.following import ConnectionReplaced, Following
from roost.store.journal import ChangeKind
from roost.store.journal_reading import (
    Change,
    JournalLost,
    Position,
    forget_gaps,
    look_for_changes,
    read_changes,
    start_position,
)

_LOG = logging.getLogger(__name__)

# Above this share of all providers, reading everything anew is cheaper than tree by tree.
_REBUILD_SHARE = 0.25
_REBUILD_PROVIDERS_MIN = 1000
# A change takes 7 to 15 microseconds to be read, a provider with all that it has 6 to 30. So above
# this many changes for each provider there is, reading everything anew is cheaper as well.
_CHANGES_PER_PROVIDER = 0.5
_CHANGES_MIN = 10_000
# Sets of traits that nobody has any more stay in their table, up to so many for a provider.
_SETS_PER_PROVIDER_MAX = 4
_SETS_MIN = 10_000

_VOCABULARY = {ChangeKind.RESOURCE_CLASSES, ChangeKind.TRAIT_NAMES}


class Replica:
    """Keeps a forest equal to the tables by reading the journal. For any number of threads.

    One thread at a time looks into the journal, and the others wait for it. They fail with it,
    or when it takes too long: a database that is away must not keep all threads of a process.
    """

    def __init__(self, database: Database) -> None:
        self._following = Following(database)
        self._wait_seconds = database.options.wait_seconds
        self._state: tuple[Forest, Position] | None = None
        # Guards what follows; threads that wait for a look wait here.
        self._turn = threading.Condition(threading.Lock())
        self._is_looked_at = False
        self._look_began = 0.0
        # When the last look began that succeeded.
        self._seen_at = 0.0
        # Why the last look failed, if it was the database, and how many did.
        self._failure: DatabaseAway | None = None
        self._failures = 0

    def current(self) -> Forest:
        """A forest that holds everything that was committed before this call.

        A thread that waits while another looks for changes need not look again, provided that
        the look began after the thread came, and succeeded.
        """
        came = time.monotonic()
        with self._turn:
            if self._is_looked_at:
                forest = self._shared(came)
                if forest is not None:
                    return forest
            self._is_looked_at = True
            self._look_began = time.monotonic()
        return self._look()

    def tidy(self) -> None:
        """Look into the journal, and forget what makes further looks slower."""
        with self._turn:
            if not self._turn.wait_for(lambda: not self._is_looked_at, self._wait_seconds):
                return
            self._is_looked_at = True
            self._look_began = time.monotonic()
        self._look(tidies=True)

    def _shared(self, came: float) -> Forest | None:
        """The forest of a look of another thread; `None` if this thread has to look itself."""
        if self._failure is not None:
            # One thread that waits for the database to come back is enough.
            raise DatabaseAway(f"the last look into the journal failed: {self._failure}")
        failures = self._failures
        while self._is_looked_at:
            rest = min(came, self._look_began) + self._wait_seconds - time.monotonic()
            if rest <= 0:
                raise DatabaseSilent(
                    f"a look into the journal takes longer than {self._wait_seconds} seconds"
                )
            self._turn.wait(rest)
            if self._state is not None and self._seen_at > came:
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
                position = self._following.read(forget_gaps, position)
            self._state = forest, position
            seen_at = self._look_began
            return forest
        except DatabaseAway as error:
            failure = error
            raise
        finally:
            with self._turn:
                self._seen_at = seen_at
                self._failure = failure
                self._failures += failure is not None
                self._is_looked_at = False
                self._turn.notify_all()

    def _refreshed(self, state: tuple[Forest, Position] | None) -> tuple[Forest, Position]:
        if state is not None:
            try:
                return self._read_on(*state)
            except JournalLost as reason:
                _LOG.info("Reading all providers anew: %s", reason)
            except (ConnectionReplaced, ConnectionLost) as reason:
                # The server may have crashed, and have lost what was read over that connection.
                self._state = None
                _LOG.info("Reading all providers anew: %s", reason)
            except DatabaseAway:
                self._state = None
                raise
        began = time.monotonic()
        (rows, vocabulary), position = self._following.begin(_read_everything)
        # Out of the transaction, because it takes a while for a large cloud.
        forest = Forest.of(rows, vocabulary)
        seconds = time.monotonic() - began
        _LOG.info("Read %d providers in %.1f seconds", forest.provider_count, seconds)
        return forest, position

    def _read_on(self, forest: Forest, position: Position) -> tuple[Forest, Position]:
        now = self._following.read(look_for_changes, position)
        if now is None:
            # The first look is cheap, and usually the only one. What is new is read in one
            # snapshot with the journal itself, so that no transaction is seen by half.
            forest, now = self._following.snapshot(_apply_changes, forest, position)
        return forest, now


def _read_everything(connection: Connection) -> tuple[tuple[ForestRows, Vocabulary], Position]:
    position = start_position(connection)
    return (read_forest(connection), read_vocabulary(connection)), position


def _apply_changes(
    connection: Connection, forest: Forest, position: Position
) -> tuple[Forest, Position]:
    changes, position = read_changes(connection, position, _worth_reading(forest))
    if any(change.kind in _VOCABULARY for change in changes):
        forest = forest.with_vocabulary(read_vocabulary(connection))
    changed = _providers(changes, frozenset(ChangeKind) - _VOCABULARY - {ChangeKind.USAGE})
    used = _providers(changes, {ChangeKind.USAGE}) - changed
    if _is_worth_rebuilding(forest, len(changed) + len(used)):
        return Forest.of(read_forest(connection), forest.vocabulary), position
    if changed:
        old_roots = forest.root_ids_of(changed)
        forest = forest.with_trees(read_trees(connection, changed, old_roots), old_roots)
    if used:
        forest = forest.with_usages(read_usages(connection, used), used)
    return forest, position


def _providers(changes: Sequence[Change], kinds: Collection[ChangeKind]) -> set[int]:
    return {
        change.provider_id
        for change in changes
        if change.kind in kinds and change.provider_id is not None
    }


def _worth_reading(forest: Forest) -> int:
    """How many changes to read, at most, instead of everything anew."""
    return max(_CHANGES_MIN, int(forest.provider_count * _CHANGES_PER_PROVIDER))


def _is_worth_rebuilding(forest: Forest, changed: int) -> bool:
    count = forest.provider_count
    sets = max(len(forest.trait_sets), len(forest.aggregate_sets))
    return changed > max(_REBUILD_PROVIDERS_MIN, count * _REBUILD_SHARE) or sets > max(
        _SETS_MIN, count * _SETS_PER_PROVIDER_MAX
    )
