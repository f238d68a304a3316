"""Large searches take turns, so that small requests do not wait for them.

All threads of a process share one interpreter: if sixteen searches worked at once, every small
request would wait for sixteen threads again and again. So a search that has worked for some
milliseconds stands in line. Two searches of the line work at a time, and go to the end of the
line after every slice. Of the very large ones few are in line at once, since each holds memory.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Piece = TypeVar("Piece")

# The work that a search does without standing in line: nearly all searches are shorter.
_FREE_SECONDS = 0.01
# How long a search works before the next one has its turn.
_SLICE_SECONDS = 0.02
# How many work at once: while one thread is being woken, which takes long on a busy machine, the
# other one has the interpreter.
_WORKING_MAX = 2
# So many work or wait, each in a thread; the server has some more for small requests.
_SEARCHES_MAX = 96
# While a large search works, a small request waits so long for the interpreter, several times.
# Python's own five milliseconds would make it five times slower; at other times they are better,
# because claims cost a tenth more CPU if threads change every millisecond.
_SWITCH_SECONDS = 0.001
# How often a search looks whether its slice is over.
_LOOK_SECONDS = 0.002
# A search that has worked for so long is very large, and how many of these there are at once.
_LARGE_SECONDS = 0.2
_LARGE_MAX = 4


class TooManySearches(Exception):
    """So many large searches are under way that one more would wait in vain."""


class Line:
    """Threads that wait for some places, first come, first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Take a place as soon as one is free and all threads that came before have theirs."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Lock()
            called.acquire()
            self._waiting.append(called)
        # The thread that leaves hands its place over.
        called.acquire()

    def leave(self) -> None:
        """Give the place to the thread that waits longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def let_pass(self) -> None:
        """Let all threads that wait now have the place first."""
        if self._waiting:
            self.leave()
            self.enter()


class Turns:
    """All searches of a process that are not small."""

    def __init__(self) -> None:
        self.working = Line(_WORKING_MAX)
        self.large = Line(_LARGE_MAX)
        self._lock = threading.Lock()
        self._count = 0
        self._working_count = 0
        self._usual_switch_seconds = 0.0

    def begin_work(self) -> None:
        """Let threads change more often while a large search works."""
        with self._lock:
            self._working_count += 1
            if self._working_count == 1:
                self._usual_switch_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(_SWITCH_SECONDS, self._usual_switch_seconds))

    def end_work(self) -> None:
        """Let threads change as usual after the last large search."""
        with self._lock:
            self._working_count -= 1
            if not self._working_count:
                sys.setswitchinterval(self._usual_switch_seconds)

    def join(self) -> None:
        """Count a search among those that are not small, if there are not too many."""
        with self._lock:
            if self._count >= _SEARCHES_MAX:
                raise TooManySearches(f"{_SEARCHES_MAX} large searches are under way")
            self._count += 1

    def part(self) -> None:
        """Count a search no longer."""
        with self._lock:
            self._count -= 1

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """A search that waits for others as soon as it is not small."""
        turn = Turn(self)
        try:
            yield turn
        finally:
            turn.end()


class Turn:
    """One search among all of the process; for one thread at a time."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._works = False
        self._is_large = False
        self._is_counted = False
        # The time of the thread that searches; other threads may send what was found.
        self._began: float | None = time.thread_time()
        self._pause_at = time.perf_counter() + _FREE_SECONDS
        self._slice_ends = 0.0

    def pause(self) -> None:
        """Let others have their turn, if it is time; called between two pieces of work."""
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
        """Leave the line; the search is done."""
        if self._works:
            self._stop()
        if self._is_large:
            self._is_large = False
            self._turns.large.leave()
        if self._is_counted:
            self._is_counted = False
            self._turns.part()

    def pieces(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """The pieces of a large answer: each is made in turn, and none before it is asked for."""
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
        if not self._is_large and self._has_worked(_LARGE_SECONDS):
            self._stop()
            self._turns.large.enter()
            self._is_large = True
            self._start()
        else:
            self._turns.working.let_pass()
            self._slice_ends = time.perf_counter() + _SLICE_SECONDS

    def _has_worked(self, seconds: float) -> bool:
        """Whether the search took so long; time that its thread only waited is not work."""
        return self._began is not None and time.thread_time() - self._began >= seconds

    def _join(self) -> None:
        """Stand in line for the first time."""
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


# A process has one interpreter, so it has one line for it.
TURNS = Turns()
