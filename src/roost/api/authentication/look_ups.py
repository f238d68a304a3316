"""Look-ups at an identity server that may be slow, silent or away, without loss of threads.

Threads of this module talk to the server. A thread with a request waits for them, for a bounded
time. Requests with the same key share a look-up. After a silence or a refused connection, one
look-up at a time finds out whether the server is back. All further requests fail at once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from roost.api.authentication.refusals import IdentityUnavailable

_LOG = logging.getLogger(__name__)

# As many as the connections that the session of keystoneauth keeps.
LOOK_UPS_MAX = 10
# Half of the threads of a worker. The second half answers requests whose tokens are known.
WAITING_MAX = 64

Found = TypeVar("Found")


class LookUps(Generic[Found]):
    """Shares look-ups between requests, and bounds their number and the time for each request."""

    def __init__(self, server: str, wait_seconds: float) -> None:
        self._server = server
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._open: dict[Hashable, _LookUp[Found]] = {}
        self._queue: deque[_LookUp[Found]] = deque()
        self._threads = 0
        self._waiting = 0
        # Why the last look-up failed; `None` after one that did not.
        self._failure: IdentityUnavailable | None = None

    def find(self, key: Hashable, work: Callable[[], Found]) -> Found:
        """What the work finds; `IdentityUnavailable` if it cannot be found in time."""
        look_up = self._join(key, work)
        try:
            in_time = look_up.ended.wait(self._wait_seconds)
        finally:
            with self._lock:
                self._waiting -= 1
                look_up.waiting -= 1
        if not in_time:
            silence = IdentityUnavailable(
                f"{self._server} did not answer within {self._wait_seconds:g} seconds", away=True
            )
            self._note(silence)
            raise silence
        return look_up.outcome()

    def _join(self, key: Hashable, work: Callable[[], Found]) -> _LookUp[Found]:
        """The look-up of this key, with one more request that waits for it."""
        with self._lock:
            if self._failure is not None and self._failure.away and self._open:
                raise IdentityUnavailable(str(self._failure), away=True)
            if self._waiting >= WAITING_MAX:
                raise IdentityUnavailable(
                    f"{self._waiting} requests wait for {self._server} already"
                )
            look_up = self._open.get(key)
            if look_up is None:
                look_up = _LookUp(key, work)
                self._open[key] = look_up
                self._queue.append(look_up)
                self._ensure_thread()
            look_up.waiting += 1
            self._waiting += 1
            return look_up

    def _ensure_thread(self) -> None:
        if self._threads < LOOK_UPS_MAX:
            # A daemon, so that a silent server does not delay the end of the process.
            thread = threading.Thread(target=self._work, name="identity", daemon=True)
            self._threads += 1
            thread.start()

    def _work(self) -> None:
        """Carry out look-ups until none is left."""
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                look_up = self._queue.popleft()
                if not look_up.waiting:
                    del self._open[look_up.key]
                    continue
            look_up.carry_out()
            self._note(look_up.failure)
            with self._lock:
                del self._open[look_up.key]
            look_up.ended.set()

    def _note(self, failure: IdentityUnavailable | None) -> None:
        """Remember how the last look-up ended. Log only what is new."""
        with self._lock:
            before, self._failure = self._failure, failure
        if failure is not None and str(failure) != str(before):
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
        self.waiting = 0
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
