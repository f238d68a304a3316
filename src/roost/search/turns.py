"""Turns: large searches wait for one another, so that small requests need not wait for them.

All threads of a process share one interpreter. If sixteen searches worked at once, every small
request would wait for sixteen threads again and again. So a search that has worked for some
milliseconds enters a line. Two searches of the line work at a time, and go to the end of the line
after every slice. Very large searches hold much memory, so only a few of them take part.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# The time that a search works before it enters the line. Nearly all searches are shorter.
_FREE_SECONDS = 0.01
# The time that a search works before it goes to the end of the line.
_SLICE_SECONDS = 0.02
# The number of searches that work at once. To wake a thread takes long on a busy machine: meanwhile
# a second thread has the interpreter.
_WORKING_MAX = 2
# The number of searches that work or wait, each in a thread. The server has more threads for small
# requests.
_SEARCHES_MAX = 96
# While a large search works, a small request waits this long for the interpreter, several times.
# With Python's own five milliseconds it would wait five times as long. Without a large search the
# five milliseconds are better: claims cost a tenth more CPU if threads change every millisecond.
_SWITCH_SECONDS = 0.001
# A search compares the clock with the end of its slice no more often than this.
_LOOK_SECONDS = 0.002
# A search that has worked this long is very large. The second number says how many of these work at
# once.
_VERY_LARGE_SECONDS = 0.2
_VERY_LARGE_MAX = 4


class TooManySearches(Exception):
    """The large searches under way are so many that one more would wait too long."""


class Line:
    """A line of threads of which a few may work, first come, first served."""

    def __init__(self, working_max: int) -> None:
        self._free = working_max
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Wait until the thread may work: after all threads that entered before."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Lock()
            called.acquire()
            self._waiting.append(called)
        # A thread that leaves releases this lock.
        called.acquire()

    def leave(self) -> None:
        """Let the thread that waits longest work instead of this thread."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def let_pass(self) -> None:
        """Go to the end of the line, if threads wait."""
        if self._waiting:
            self.leave()
            self.enter()


class Turns:
    """The turns of all large searches of a process."""

    def __init__(self) -> None:
        self.working = Line(_WORKING_MAX)
        self.very_large = Line(_VERY_LARGE_MAX)
        self._lock = threading.Lock()
        self._count = 0
        self._working_count = 0
        self._usual_switch_seconds = 0.0

    def begin_work(self) -> None:
        """Count a search that works. While there is one, threads change more often."""
        with self._lock:
            self._working_count += 1
            if self._working_count == 1:
                self._usual_switch_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(_SWITCH_SECONDS, self._usual_switch_seconds))

    def end_work(self) -> None:
        """Count a search no longer as working. After the last one, threads change as usual."""
        with self._lock:
            self._working_count -= 1
            if not self._working_count:
                sys.setswitchinterval(self._usual_switch_seconds)

    def join(self) -> None:
        """Count a large search; raise `TooManySearches` if there are too many."""
        with self._lock:
            if self._count >= _SEARCHES_MAX:
                raise TooManySearches(f"{_SEARCHES_MAX} large searches are under way")
            self._count += 1

    def leave(self) -> None:
        """Count a large search no longer."""
        with self._lock:
            self._count -= 1

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """The turn of one search, which enters the line as soon as it is large."""
        turn = Turn(self)
        try:
            yield turn
        finally:
            turn.end()


class Turn:
    """One search among all searches of the process. For one thread at a time."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._works = False
        self.is_very_large = False
        self._is_counted = False
        # The CPU time of the searching thread at the start. `None` while pieces are made: another
        # thread may make them.
        self._began: float | None = time.thread_time()
        self._pause_at = time.perf_counter() + _FREE_SECONDS
        self._slice_ends = 0.0

    def pause(self) -> None:
        """Wait for other searches, if the slice is over. Called between two pieces of work."""
        now = time.perf_counter()
        if now < self._pause_at:
            return
        if not self._works:
            if self._has_worked(_FREE_SECONDS):
                self._join()
        elif now >= self._slice_ends:
            self._wait_in_line()
        self._pause_at = time.perf_counter() + _LOOK_SECONDS

    def end(self) -> None:
        """Leave the line, because the search is done."""
        if self._works:
            self._stop()
        if self.is_very_large:
            self.is_very_large = False
            self._turns.very_large.leave()
        if self._is_counted:
            self._is_counted = False
            self._turns.leave()

    def pieces(self, pieces: Iterator[T]) -> Iterator[T]:
        """The pieces of a large answer. The caller that takes a piece waits in line for it."""
        self._began = None
        while True:
            self._start()
            try:
                piece = next(pieces)
            except StopIteration:
                return
            finally:
                self._stop()
            yield piece

    def _wait_in_line(self) -> None:
        if not self.is_very_large and self._has_worked(_VERY_LARGE_SECONDS):
            self._stop()
            self._turns.very_large.enter()
            self.is_very_large = True
            self._start()
        else:
            self._turns.working.let_pass()
            self._slice_ends = time.perf_counter() + _SLICE_SECONDS

    def _has_worked(self, seconds: float) -> bool:
        """Whether the search has used so much CPU time."""
        return self._began is not None and time.thread_time() - self._began >= seconds

    def _join(self) -> None:
        """Enter the line for the first time."""
        self._turns.join()
        self._is_counted = True
        self._start()

    def _start(self) -> None:
        self._turns.working.enter()
        self._turns.begin_work()
        self._works = True
        self._slice_ends = time.perf_counter() + _SLICE_SECONDS

    def _stop(self) -> None:
        self._works = False
        self._turns.end_work()
        self._turns.working.leave()


# A process has one interpreter, so all its searches share one line.
TURNS = Turns()
