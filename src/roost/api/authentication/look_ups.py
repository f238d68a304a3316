"""Look-ups at an identity server that may be slow, silent or away, without loss of threads.

Threads of this module talk to the server. A thread with a request waits for them, for a bounded
time. Requests with the same key share a look-up, and
clients get their turns one after another. After a silence or a refused connection, one
look-up at a time finds out whether the server is back. All further requests fail at once.

A look-up is overdue when its request has stopped waiting for it. It no longer counts among the
look-ups at work, although its thread may still run. So a connection that never ends blocks neither
the search for an answer nor other tokens.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from roost.api.authentication.refusals import IdentityUnavailable
from roost.configuration.limit_log import LIMIT_LOG
from roost.model.text import plain_number

_LOG = logging.getLogger(__name__)

Entry = TypeVar("Entry")
Found = TypeVar("Found")

# As many as the connections that the session of keystoneauth keeps.
LOOK_UPS_MAX = 10
# With the threads of overdue look-ups.
THREADS_MAX = 40
# Half of the threads of a worker. The second half answers requests whose tokens are known.
WAITING_MAX = 64


class ClientQueue(Generic[Entry]):
    """Entries by client. Each client with entries gets a turn before one gets its second.

    >>> queue = ClientQueue()
    >>> for client, entry in [("a", 1), ("a", 2), ("a", 3), ("b", 4)]:
    ...     queue.append(client, entry)
    >>> [queue.popleft() for _ in range(4)], bool(queue)
    ([1, 4, 2, 3], False)
    """

    def __init__(self) -> None:
        # The client whose turn is next comes first.
        self._entries: dict[str, deque[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def append(self, client: str, entry: Entry) -> None:
        """Add an entry behind those of the same client."""
        self._entries.setdefault(client, deque()).append(entry)

    def popleft(self) -> Entry:
        """Take the first entry of the client whose turn it is."""
        client = next(iter(self._entries))
        entries = self._entries.pop(client)
        entry = entries.popleft()
        if entries:
            self._entries[client] = entries
        return entry

    def remove(self, client: str, entry: Entry) -> None:
        """Take an entry out of the queue."""
        self._entries[client].remove(entry)
        if not self._entries[client]:
            del self._entries[client]


class LookUps(Generic[Found]):
    """Shares look-ups between requests, and bounds their number and the time for each request."""

    def __init__(self, server: str, wait_seconds: float) -> None:
        self._server = server
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        # All look-ups by key that are not overdue.
        self._open: dict[Hashable, _LookUp[Found]] = {}
        self._queue: ClientQueue[_LookUp[Found]] = ClientQueue()
        # Threads without and with an overdue look-up.
        self._threads = 0
        self._lingering = 0
        self._waiting: Counter[str] = Counter()
        # Why the last look-up failed; `None` after one that did not.
        self._failure: IdentityUnavailable | None = None
        # The look-up that finds out whether the server is back.
        self._probe: _LookUp[Found] | None = None
        self._answered = 0.0

    def find(self, key: Hashable, work: Callable[[], Found], client: str = "") -> Found:
        """What the work finds; `IdentityUnavailable` if it cannot be found in time.

        `client` is the address of the request. Addresses share the places and take turns.
        """
        look_up = self._join(key, work, client)
        try:
            in_time = look_up.ended.wait(self._wait_seconds)
        finally:
            with self._lock:
                look_up.waiting -= 1
                self._waiting[client] -= 1
                if not self._waiting[client]:
                    del self._waiting[client]
        if not in_time:
            seconds = plain_number(self._wait_seconds)
            silence = IdentityUnavailable(
                f"{self._server} did not answer within {seconds} seconds", away=True
            )
            self._give_up(look_up)
            self._note(look_up, silence)
            raise silence
        return look_up.outcome()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        with self._lock:
            return self._waiting.total()

    def _join(self, key: Hashable, work: Callable[[], Found], client: str) -> _LookUp[Found]:
        """The look-up of this key, with one more request that waits for it."""
        with self._lock:
            is_away = self._failure is not None and self._failure.away
            if is_away and self._probe is not None and not self._probe.is_over:
                raise IdentityUnavailable(str(self._failure), away=True)
            self._check_places(client)
            look_up = self._open.get(key)
            if look_up is None:
                look_up = self._begin(key, work, client)
            if is_away:
                self._probe = look_up
            look_up.waiting += 1
            self._waiting[client] += 1
            return look_up

    def _check_places(self, client: str) -> None:
        """An address gets no more places than are left, so some are left for every other one."""
        waiting = self._waiting.total()
        if self._waiting[client] >= WAITING_MAX - waiting:
            raise IdentityUnavailable(
                f"{waiting} requests wait for {self._server} already, "
                f"{self._waiting[client]} of them from the same address"
            )

    def _begin(self, key: Hashable, work: Callable[[], Found], client: str) -> _LookUp[Found]:
        look_up = _LookUp(key, work)
        self._queue.append(client, look_up)
        self._ensure_thread()
        if not self._threads:
            self._queue.remove(client, look_up)
            raise IdentityUnavailable(
                f"no thread is free to ask {self._server}, and {self._lingering} threads wait for "
                "overdue answers"
            )
        self._open[key] = look_up
        return look_up

    def _ensure_thread(self) -> None:
        if self._threads >= LOOK_UPS_MAX or self._threads + self._lingering >= THREADS_MAX:
            return
        # A daemon, so that a silent server does not delay the end of the process.
        thread = threading.Thread(target=self._work, name="identity", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            LIMIT_LOG.warn("threads", f"No thread for {self._server} can be started: {error}.")
        else:
            self._threads += 1

    def _work(self) -> None:
        """Carry out look-ups until none is left."""
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                look_up = self._queue.popleft()
                if not look_up.waiting:
                    self._close(look_up)
                    continue
                look_up.has_thread = True
            look_up.carry_out()
            self._note(look_up, look_up.failure)
            with self._lock:
                self._close(look_up)
                look_up.has_thread = False
                goes_on = not look_up.is_lingering or self._return()
            look_up.ended.set()
            if not goes_on:
                return

    def _close(self, look_up: _LookUp[Found]) -> None:
        look_up.is_over = True
        if self._open.get(look_up.key) is look_up:
            del self._open[look_up.key]

    def _give_up(self, look_up: _LookUp[Found]) -> None:
        """Count an overdue look-up no more, and let another thread do what its thread would do."""
        with self._lock:
            self._close(look_up)
            if look_up.has_thread and not look_up.is_lingering:
                look_up.is_lingering = True
                self._threads -= 1
                self._lingering += 1
                if self._queue:
                    self._ensure_thread()

    def _return(self) -> bool:
        """The thread of an overdue look-up is free. Whether it goes on with other look-ups."""
        self._lingering -= 1
        if self._threads >= LOOK_UPS_MAX:
            return False
        self._threads += 1
        return True

    def _note(self, look_up: _LookUp[Found], failure: IdentityUnavailable | None) -> None:
        """Remember how the last look-up ended. Log only what is new."""
        with self._lock:
            before = self._failure
            if failure is None:
                self._answered = time.monotonic()
            # If the server answered a look-up meanwhile, only this one is stuck.
            is_stuck = failure is not None and failure.away and self._answered > look_up.began
            if not is_stuck:
                self._failure = failure
        if is_stuck:
            LIMIT_LOG.warn("keystone_wait_seconds", f"A token cannot be checked: {failure}.")
        elif failure is not None and str(failure) != str(before):
            _LOG.error(
                "Tokens cannot be checked: %s. Requests with unknown tokens are answered with 503.",
                failure,
            )
        elif failure is None and before is not None:
            _LOG.info("Tokens can be checked again: %s answers", self._server)


class _LookUp(Generic[Found]):
    """One look-up: its work, the number of requests that wait, and how it ended."""

    def __init__(self, key: Hashable, work: Callable[[], Found]) -> None:
        self.key = key
        self.began = time.monotonic()
        self.waiting = 0
        self.has_thread = False
        # Ended or overdue.
        self.is_over = False
        self.is_lingering = False
        self.ended = threading.Event()
        self.failure: IdentityUnavailable | None = None
        self._work = work
        self._found: list[Found] = []

    def carry_out(self) -> None:
        """Do the work, and keep what it finds or why it fails."""
        try:
            self._found.append(self._work())
        except IdentityUnavailable as failure:
            self.failure = failure
        except Exception as error:
            _LOG.exception("The check of a token failed")
            self.failure = IdentityUnavailable(f"the check failed with {type(error).__name__}")

    def outcome(self) -> Found:
        """What was found; raises the failure otherwise."""
        if self.failure is not None:
            # Each request gets an exception of its own, because a raised one grows a traceback.
            raise IdentityUnavailable(str(self.failure), away=self.failure.away)
        return self._found[0]
