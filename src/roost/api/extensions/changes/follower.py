"""A follower: one client that waits for changes, and how far it has come.

The hub wakes it, and a thread of the server then asks it for its next piece. One thread at a time
does that. A follower keeps a cursor and no pages, so a client that reads slowly costs no memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from roost.api.extensions.changes.hub import ChangeBatch, ChangeHub, ChangePage, HubPlace, event
from roost.service.ledger.changes import ChangeFilter
from roost.store.journal.changes import ChangeCursor
from roost.store.journal.position import JournalLost

# An idle stream sends its cursor so often; the contract says every 15 seconds at most.
PROGRESS_SECONDS = 10.0
PROGRESS = "progress"
# After a stream has ended, a browser waits two seconds before it asks again.
_RETRY = b"retry: 2000\n\n"
# How many batches one piece has at most.
_BATCHES_OF_PIECE = 8


class Follower:
    """One client. The body of its answer is `stream` or `one_page`."""

    def __init__(
        self,
        hub: ChangeHub,
        wanted: ChangeFilter,
        cursor: ChangeCursor,
        rows_max: int,
        is_stopping: Callable[[], bool],
        *,
        place: HubPlace | None = None,
    ) -> None:
        """A client that has everything up to the cursor.

        `place` is one that the hub had before the cursor was read: the cursor has seen all of it.
        """
        self._hub = hub
        self._wanted = wanted
        self._cursor = cursor
        self._rows_max = rows_max
        self._is_stopping = is_stopping
        self._ends = self._progress = math.inf
        # A place of the hub that began later has seen everything that the cursor has seen.
        self._read_at = time.monotonic()
        # The batch of the hub after which the client is; `None` while it reads by itself.
        self._number: int | None = None
        # The batch after which all changes are that the cursor has not seen, and some that it has.
        self._start = None if place is None or cursor.target is not None else place.number
        # The server sets it.
        self.wake: Callable[[], None] = _do_nothing

    # What the thread of the hub asks.

    def wants(self, now: float, batch: ChangeBatch | None) -> bool:
        """Whether there is something to do, now or with this new batch."""
        if self._number is None:
            return True
        if batch is not None:
            return bool(batch.text(self._wanted)) or self._hub.soon_forgets(self._number)
        return now >= self._progress or now >= self._ends or self._is_stopping()

    # What threads of the server ask.

    def stream(self, first: ChangePage, seconds: float) -> Iterator[bytes]:
        """Server-sent events; an empty piece means that nothing is to be sent now."""
        try:
            self._ends = time.monotonic() + seconds
            yield _RETRY + self._event(first)
            while not self._is_over:
                yield self._next_event()
        except JournalLost:
            # The client asks again from its cursor, and learns that the cursor has expired.
            return
        finally:
            self._hub.leave(self)

    def one_page(self, seconds: float) -> Iterator[bytes]:
        """The next page with changes; an empty piece means that there are none yet.

        After the time, or between two pages of other changes, the page is empty.
        """
        try:
            self._ends = time.monotonic() + seconds
            page = self._next_page()
            while page is None and not self._is_over:
                yield b""
                page = self._next_page()
            yield (page or ChangePage((), self._cursor)).json()
        except JournalLost:
            yield ChangePage((), self._cursor).json()
        finally:
            self._hub.leave(self)

    @property
    def _is_over(self) -> bool:
        return time.monotonic() >= self._ends or self._is_stopping()

    def _event(self, page: ChangePage) -> bytes:
        self._progress = time.monotonic() + PROGRESS_SECONDS
        return event(page, None if page.changes else PROGRESS)

    def _next_event(self) -> bytes:
        batches = self._next_batches()
        if batches is None:
            page = self._page_by_itself()
            if page is not None:
                return self._event(page)
        elif texts := b"".join(batch.text(self._wanted) for batch in batches):
            self._progress = time.monotonic() + PROGRESS_SECONDS
            return texts
        if time.monotonic() < self._progress:
            return b""
        return self._event(self._place_page())

    def _next_page(self) -> ChangePage | None:
        """The next page for a client that waits for one; `None` if there is none yet."""
        before = self._cursor
        batches = self._next_batches(most=1)
        if batches is None:
            return self._page_by_itself()
        for batch in batches:
            page = batch.page.only(self._wanted)
            if len(page.changes) > self._rows_max:
                page = self._hub.read(before, self._rows_max).only(self._wanted)
            if page.changes:
                return page
        return None

    def _next_batches(self, most: int = _BATCHES_OF_PIECE) -> list[ChangeBatch] | None:
        """The next batches of the hub; `None` if the client has to read by itself."""
        if self._number is None:
            return None
        batches = self._hub.after(self._number)
        if batches is None:
            # The client was too slow. Its cursor may be ahead of the place of the hub, which is
            # in the middle of many pages then: only a later place has seen all that it has.
            self._number, self._read_at = None, time.monotonic()
            return None
        batches = batches[:most]
        if batches:
            self._number, self._cursor = batches[-1].number, batches[-1].page.cursor
        return batches

    def _page_by_itself(self) -> ChangePage | None:
        """A page from the database or from the hub, up to where the hub is.

        `None` if the client then is where the hub is and wants no change of the page. Also `None`
        as long as the hub may not have seen what the client has seen.
        """
        place = self._hub.place()
        if place is None or place.began <= self._read_at:
            return None
        page = self._kept_page(place)
        if page is None:
            page = self._hub.read(self._cursor, self._rows_max, until=place.position)
        self._cursor = page.cursor
        if page.cursor.position is place.position and page.cursor.target is None:
            self._number = place.number
        page = page.only(self._wanted)
        return None if self._number is not None and not page.changes else page

    def _kept_page(self, place: HubPlace) -> ChangePage | None:
        """The page up to a place out of batches of the hub, for a client that has just come.

        `None` if they do not have it all, or too much. Of a thousand clients that come under
        load, each would read the changes of a second, which takes milliseconds.
        """
        start, self._start = self._start, None
        batches = None if start is None else self._hub.after(start)
        if batches is None:
            return None
        has_seen = self._cursor.position.has_seen
        changes = tuple(
            change
            for batch in batches
            if batch.number <= place.number
            for change in batch.page.changes
            if not has_seen(change.row_id, change.transaction_id)
        )
        return ChangePage(changes, place.page.cursor) if len(changes) <= self._rows_max else None

    def _place_page(self) -> ChangePage:
        """An empty page with the newest cursor that the client may have."""
        place = self._hub.place()
        if place is not None and place.number == self._number:
            self._cursor = place.page.cursor
            return place.page.empty()
        return ChangePage((), self._cursor)


def _do_nothing() -> None:
    """What waking means before the server has taken the answer."""
