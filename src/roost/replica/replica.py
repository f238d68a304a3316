"""The replica: a forest that is brought up to date whenever somebody asks for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from roost.replica.reading import read_forest, read_trees, read_usages, read_vocabulary
from roost.search.forest import Forest
from roost.store.clock import utc_now
from roost.store.database import Database
from roost.store.errors import Busy, Contention
from roost.store.following import ConnectionReplaced, Following
from roost.store.journal import ChangeKind
from roost.store.journal_pruning import prune_changes
from roost.store.journal_reading import (
    Change,
    JournalLost,
    Position,
    forget_gaps,
    read_changes,
    start_position,
)

_LOG = logging.getLogger(__name__)

# Above this share of all providers, reading everything anew is cheaper than tree by tree.
_REBUILD_SHARE = 0.25
_REBUILD_PROVIDERS_MIN = 1000
# Sets of traits that nobody has any more stay in their table, up to so many for a provider.
_SETS_PER_PROVIDER_MAX = 4
_SETS_MIN = 10_000

# A process that asked nothing for longer than this reads everything anew.
_JOURNAL_KEPT = timedelta(hours=1)
_PRUNE_SECONDS = 60
# In one transaction, and in one go.
_PRUNED_ROWS_MAX = 2_000
_PRUNINGS_MAX = 20
_FORGET_SECONDS = 5

_VOCABULARY = {ChangeKind.RESOURCE_CLASSES, ChangeKind.TRAIT_NAMES}


class Replica:
    """Keeps a forest equal to the tables by reading the journal. For any number of threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._following = Following(database)
        self._lock = threading.Lock()
        self._state: tuple[Forest, Position] | None = None
        self._check_began = 0.0
        self._forget_at = 0.0
        self._pruning = threading.Lock()
        self._prune_at = time.monotonic() + _PRUNE_SECONDS

    def current(self) -> Forest:
        """A forest that holds everything that was committed before this call.

        Whoever waits while another looks for changes need not look again, provided that the
        other began after he came, and succeeded.
        """
        came = time.monotonic()
        with self._lock:
            if self._state is None or self._check_began <= came:
                began = time.monotonic()
                self._state = self._refreshed(self._state)
                self._check_began = began
            forest, _ = self._state
        if time.monotonic() >= self._prune_at:
            self._prune()
        return forest

    def _refreshed(self, state: tuple[Forest, Position] | None) -> tuple[Forest, Position]:
        if state is not None:
            try:
                return self._read_on(*state)
            except (JournalLost, ConnectionReplaced) as reason:
                _LOG.info("Reading all providers anew: %s", reason)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                _LOG.info("Reading all providers anew, the journal's connection broke: %s", error)
            # What was read over a connection that is lost is good for nothing, whatever follows.
            self._state = None
        return self._following.begin(_read_everything)

    def _read_on(self, forest: Forest, position: Position) -> tuple[Forest, Position]:
        changes, now = self._following.read(read_changes, position)
        if changes:
            # The first look is cheap, and usually the only one. What is new is read in one
            # snapshot with the journal itself, so that no transaction is seen by half.
            forest, now = self._following.snapshot(_apply_changes, forest, position)
        if time.monotonic() >= self._forget_at:
            now = self._following.read(forget_gaps, now)
            self._forget_at = time.monotonic() + _FORGET_SECONDS
        return forest, now

    def _prune(self) -> None:
        """Delete changes that all have seen. Others go on meanwhile; one who does it is enough."""
        if not self._pruning.acquire(blocking=False):
            return
        try:
            self._prune_at = time.monotonic() + _PRUNE_SECONDS
            edge = utc_now() - _JOURNAL_KEPT
            for _ in range(_PRUNINGS_MAX):
                if self._database.write(prune_changes, edge, _PRUNED_ROWS_MAX) < _PRUNED_ROWS_MAX:
                    break
        except (DBAPIError, PoolTimeout, Busy, Contention) as error:
            # Whoever comes next will do it.
            _LOG.warning("The journal could not be pruned: %s", error)
        finally:
            self._pruning.release()


def _read_everything(connection: Connection) -> tuple[Forest, Position]:
    position = start_position(connection)
    began = time.monotonic()
    forest = Forest.of(read_forest(connection), read_vocabulary(connection))
    _LOG.info("Read %d providers in %.1f seconds", forest.provider_count, time.monotonic() - began)
    return forest, position


def _apply_changes(
    connection: Connection, forest: Forest, position: Position
) -> tuple[Forest, Position]:
    changes, position = read_changes(connection, position)
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


def _is_worth_rebuilding(forest: Forest, changed: int) -> bool:
    count = forest.provider_count
    sets = max(len(forest.trait_sets), len(forest.aggregate_sets))
    return changed > max(_REBUILD_PROVIDERS_MIN, count * _REBUILD_SHARE) or sets > max(
        _SETS_MIN, count * _SETS_PER_PROVIDER_MAX
    )
