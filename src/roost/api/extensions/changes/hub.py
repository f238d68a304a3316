"""The hub: one thread of a process reads the journal for all clients that follow it.

It looks about once a second while there are followers, and keeps batches of what it read last.
A follower that has a batch takes the next ones from here. A follower that is further behind reads
the database by itself, as far as the hub has read, and goes on here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakSet

import orjson

from roost.metrics.catalogue import FOLLOWERS
from roost.replica.replica import Replica
from roost.service.ledger.changes import (
    ALL_CHANGES,
    Change,
    ChangeFilter,
    changes_of,
    needs_new_names,
)
from roost.store.connections.errors import reason_of
from roost.store.database import Database
from roost.store.journal.changes import (
    ChangeCursor,
    ReadPage,
    WrittenTogether,
    look_for_changes,
    read_changes,
)
from roost.store.journal.position import JournalLost, Position

_LOG = logging.getLogger(__name__)

# How often the hub looks, while there are followers: a little more than once a second, so that a
# follower hears of a write within a second.
LOOK_SECONDS = 0.8
_TIDY_SECONDS = 5.0
# How many changes a page of the hub has, unless one transaction has more.
_PAGE_ROWS = 1000
# What the hub keeps for followers that were busy. A follower further behind reads by itself.
_KEPT_BATCHES = 64
KEPT_CHANGES = 8192
# How many followers may each want something of their own, before texts are made again.
_TEXTS_MAX = 64
# The thread ends after so many looks without a follower.
_IDLE_LOOKS = 10


class WaitingClient(Protocol):
    """What the hub knows of a follower. The thread of the hub calls both."""

    def wants(self, now: float, batch: ChangeBatch | None) -> bool:
        """Whether there is something to do, now or with this new batch."""

    def wake(self) -> None:
        """Let the follower go on; returns at once."""


@dataclass(slots=True)
class ChangePage:
    """Changes for a client, and the cursor after them."""

    changes: tuple[Change, ...]
    cursor: ChangeCursor
    _text: str | None = None

    @property
    def next(self) -> str:
        """The text of the cursor."""
        if self._text is None:
            self._text = self.cursor.to_text()
        return self._text

    def empty(self) -> ChangePage:
        """The same cursor, without changes."""
        return ChangePage((), self.cursor, self.next)

    def only(self, wanted: ChangeFilter) -> ChangePage:
        """The page without changes that a client does not want."""
        if wanted == ALL_CHANGES:
            return self
        return ChangePage(tuple(filter(wanted.takes, self.changes)), self.cursor, self._text)

    def shown(self) -> list[dict[str, object]]:
        """The changes as a client gets them."""
        return [_shown(change) for change in self.changes]

    def json(self, **others: object) -> bytes:
        """The page as a client gets it, with further members."""
        return orjson.dumps(
            {
                **others,
                "changes": self.shown(),
                "next": self.next,
                "more": self.cursor.target is not None,
            }
        )


@dataclass(slots=True)
class ChangeBatch:
    """What one reading of the hub found."""

    number: int
    page: ChangePage
    _texts: dict[ChangeFilter, bytes] = field(default_factory=dict)

    def text(self, wanted: ChangeFilter) -> bytes:
        """The event with the changes that a client wants; empty if it wants none of them."""
        found = self._texts.get(wanted)
        if found is None:
            if len(self._texts) >= _TEXTS_MAX:
                self._texts.clear()
            page = self.page.only(wanted)
            found = self._texts[wanted] = event(page) if page.changes else b""
        return found


class HubPlace:
    """How far the hub has read: after which batch, at which cursor, and since when it is true."""

    __slots__ = ("began", "number", "page")

    def __init__(self, number: int, page: ChangePage, began: float) -> None:
        self.number = number
        self.page = page
        # A client whose cursor is older than this has seen nothing that the hub has not.
        self.began = began

    @property
    def position(self) -> Position:
        """The position of the hub in the journal."""
        return self.page.cursor.position


class ChangeHub:
    """The followers of a process, and the thread that reads for them."""

    def __init__(self, database: Database, replica: Replica) -> None:
        self._database = database
        self._replica = replica
        # Guards the attributes below.
        self._lock = threading.Lock()
        # An answer that a server never begins is forgotten with its follower.
        self._followers: WeakSet[WaitingClient] = WeakSet()
        self._batches: deque[ChangeBatch] = deque()
        self._kept_changes = 0
        self._number = 0
        self._place: HubPlace | None = None
        self._thread: threading.Thread | None = None
        # The first of many followers lets the hub look at once, so later followers find a place.
        self._called = threading.Event()
        # Of the thread of the hub alone. The cursor is where the next look begins: after the last
        # batch, also if reading failed before the place of the hub was reached.
        self._cursor: ChangeCursor | None = None
        self._began = self._tidy_at = 0.0
        self._failure: str | None = None

    def join(self, follower: WaitingClient, followers_max: int) -> bool:
        """Take a follower in; return whether there was room."""
        with self._lock:
            if len(self._followers) >= followers_max:
                return False
            self._followers.add(follower)
            # A fork does not copy the thread.
            if self._thread is None or not self._thread.is_alive():
                self._forget()
                self._thread = threading.Thread(target=self._run, name="roost-changes", daemon=True)
                self._thread.start()
            elif self._place is None:
                self._called.set()
        return True

    def leave(self, follower: WaitingClient) -> None:
        """Forget a follower. It may have left before."""
        with self._lock:
            self._followers.discard(follower)

    @property
    def count(self) -> int:
        """How many followers there are."""
        return len(self._followers)

    def sample(self) -> None:
        """Set the gauge of followers."""
        FOLLOWERS.set(self.count)

    def place(self) -> HubPlace | None:
        """How far the hub has read; `None` before its first look, and after a failure."""
        return self._place

    def after(self, number: int) -> list[ChangeBatch] | None:
        """All batches after the one with this number; `None` if some are no longer kept."""
        with self._lock:
            if number > self._number or number < self._number - len(self._batches):
                return None
            return [batch for batch in self._batches if batch.number > number]

    def soon_forgets(self, number: int) -> bool:
        """Whether a follower after this batch should take the next ones, wanted or not."""
        return 2 * (self._number - number) > len(self._batches)

    def read(
        self, cursor: ChangeCursor, rows_max: int = _PAGE_ROWS, until: Position | None = None
    ) -> ChangePage:
        """A page of changes for one client; `JournalLost` if its cursor is no longer valid.

        The pages end at `until`: a position of the replica, or of a place.
        """
        read = self._database.snapshot(read_changes, cursor, rows_max, until)
        return ChangePage(self._changes(read.transactions, is_new=until is None), read.cursor)

    def _changes(
        self, transactions: tuple[WrittenTogether, ...], *, is_new: bool
    ) -> tuple[Change, ...]:
        if not transactions:
            return ()
        forest = self._replica.latest
        # A reader of a name that changed has the forest brought up to date.
        if is_new or forest is None or needs_new_names(transactions):
            forest = self._replica.current()
        return changes_of(transactions, forest)

    # The thread of the hub.

    def _run(self) -> None:
        idle = 0
        while True:
            due = time.monotonic() + LOOK_SECONDS
            self._look_safely()
            self._wake(None)
            with self._lock:
                idle = 0 if self._followers else idle + 1
                if idle > _IDLE_LOOKS:
                    self._thread = None
                    self._forget()
                    return
            self._called.wait(max(0.0, due - time.monotonic()))
            self._called.clear()

    def _look_safely(self) -> None:
        try:
            self._look()
            reason = None
        except JournalLost as error:
            # Followers find out with their own cursors, and are told to begin anew.
            with self._lock:
                self._forget()
            reason = str(error)
        except Exception as error:
            reason = reason_of(error)
        if reason is not None and reason != self._failure:
            _LOG.warning("Changes for followers cannot be read, trying again: %s", reason)
        self._failure = reason

    def _forget(self) -> None:
        """Let the next look begin anew, and followers read by themselves. The lock is held."""
        self._number += 1
        self._place = self._cursor = None
        self._batches.clear()
        self._kept_changes = 0

    def _look(self) -> None:
        if not self._followers:
            # The next followers need nothing of what is written until they come.
            with self._lock:
                self._forget()
            return
        cursor = self._cursor
        if cursor is None or cursor.target is None:
            # Else the hub goes on to a target that an earlier look has chosen.
            self._began = time.monotonic()
        if cursor is None:
            _, position = self._replica.current_with_position()
            self._reach(ChangePage((), ChangeCursor(position)))
            return
        for page in self._pages(cursor):
            self._reach(page)

    def _reach(self, page: ChangePage) -> None:
        """Go on to the end of a page, and tell the followers what it has."""
        batch = None
        with self._lock:
            self._cursor = page.cursor
            if page.changes:
                self._number += 1
                batch = ChangeBatch(self._number, page)
                self._keep(batch)
            if page.cursor.target is None:
                self._place = HubPlace(self._number, page, self._began)
        if batch is not None:
            self._wake(batch)

    def _pages(self, cursor: ChangeCursor) -> Iterator[ChangePage]:
        """What is new; the last page ends at a position."""
        read: ReadPage | None = None
        if cursor.target is None:
            position = cursor.position
            if time.monotonic() >= self._tidy_at:
                position = self._database.read(position.forget_gaps)
                self._tidy_at = time.monotonic() + _TIDY_SECONDS
            cursor = ChangeCursor(position)
            read = self._database.read(look_for_changes, position)
        while True:
            if read is None:
                read = self._database.snapshot(read_changes, cursor, _PAGE_ROWS)
            yield ChangePage(self._changes(read.transactions, is_new=False), read.cursor)
            if read.is_last:
                return
            cursor, read = read.cursor, None

    def _keep(self, batch: ChangeBatch) -> None:
        self._batches.append(batch)
        self._kept_changes += len(batch.page.changes)
        while len(self._batches) > _KEPT_BATCHES or (
            len(self._batches) > 1 and self._kept_changes > KEPT_CHANGES
        ):
            self._kept_changes -= len(self._batches.popleft().page.changes)

    def _wake(self, batch: ChangeBatch | None) -> None:
        now = time.monotonic()
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            if follower.wants(now, batch):
                follower.wake()


def event(page: ChangePage, kind: str | None = None) -> bytes:
    """A page as a server-sent event, whose id is the cursor after it."""
    data = page.json() if kind is None else page.json(kind=kind, cursor=page.next)
    return b"id: %b\ndata: %b\n\n" % (page.next.encode(), data)


def _shown(change: Change) -> dict[str, object]:
    return {
        "at": f"{change.at.isoformat(timespec='seconds')}Z",
        "kind": change.kind,
        "provider": change.provider,
        "root": change.root,
        "resource_classes": change.resource_classes,
        "request_id": change.request_id,
        "user_id": change.user_id,
        "project_id": change.project_id,
    }
