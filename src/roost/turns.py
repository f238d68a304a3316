"""Turns: large searches wait for one another, so that small requests need not wait for them.

All threads of a process share one interpreter. If sixteen searches worked at once, every small
request would wait for sixteen threads again and again. So a search that has worked for some
milliseconds enters a line. Two searches of the line work at a time, and go to the end of the line
after every slice. Very large searches hold much memory, so only a few of them take part.

A search that reads everything takes seconds. `Rounds` do its work once for all clients that wait:
a client that comes during a round waits for the next one. So what a round reads is not older than
the requests that it answers.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Generic, TypeVar

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


class SearchTooLong(Exception):
    """A search has worked for as long as a search may."""


class Line:
    """A line of threads of which a few may work, first come, first served."""

    def __init__(self, working_max: int) -> None:
        self._free = working_max
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def enter(self, seconds: float = inf) -> bool:
        """Wait until the thread may work: after all threads that entered before.

        After so many seconds the thread leaves the line, and the answer is false.
        """
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            called = threading.Lock()
            called.acquire()
            self._waiting.append(called)
        # A thread that leaves releases this lock.
        if called.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX))):
            return True
        with self._lock:
            if called in self._waiting:
                self._waiting.remove(called)
                return False
        # Meanwhile another thread has left.
        return True

    def leave(self) -> None:
        """Let the thread that waits longest work instead of this thread."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def let_pass(self, seconds: float = inf) -> bool:
        """Go to the end of the line, if threads wait; false as `enter` is."""
        if not self._waiting:
            return True
        self.leave()
        return self.enter(seconds)


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
    def turn(self, work_seconds: float = inf, wait_seconds: float = inf) -> Iterator[Turn]:
        """The turn of one search, which enters the line as soon as it is large.

        It may work for so many seconds of CPU time, and wait for so many in line.
        """
        turn = Turn(self, work_seconds, wait_seconds)
        try:
            yield turn
        finally:
            turn.end()


class Turn:
    """One search among all searches of the process. For one thread at a time."""

    def __init__(self, turns: Turns, work_seconds: float, wait_seconds: float) -> None:
        self._turns = turns
        self._work_seconds = work_seconds
        self._wait_seconds = wait_seconds
        self._wait_seconds_left = wait_seconds
        self._works = False
        self.is_very_large = False
        self._is_counted = False
        # The CPU time of the searching thread at the start. `None` after the search: another thread
        # may make the pieces of its answer.
        self._began: float | None = time.thread_time()
        # The same, and for a piece of an answer its start.
        self._work_began = self._began
        self._pause_at = time.perf_counter() + _FREE_SECONDS
        self._slice_ends = 0.0
        # How long the search has waited for others.
        self.waited_seconds = 0.0
        # The CPU time of the search, after its end, and of all pieces of its answer so far.
        self.worked_seconds = 0.0

    def count(self) -> None:
        """Take part as a large search; `TooManySearches` if there are too many."""
        if not self._is_counted:
            self._turns.join()
            self._is_counted = True

    def enter(self) -> None:
        """Wait in line before the work begins, because it is known to be large."""
        if not self._works:
            self.count()
            self._start()

    def enter_as_very_large(self) -> None:
        """The same for a search that is known to be very large."""
        if not self.is_very_large:
            self.count()
            self._become_very_large()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the line for a wait that is none of its own, and enter it again afterwards."""
        works = self._works
        if works:
            self._stop()
        yield
        if works:
            self._start()

    def wait(self, wait: Callable[[float], bool]) -> None:
        """Wait for anything else before the work begins; the time counts as time in line.

        `wait` gets the seconds that are left, and returns whether these were enough.
        """
        assert not self._works, "a search that waits works on nothing"
        self.count()
        self._wait_for(wait)

    def pause(self) -> None:
        """Wait for other searches, if the slice is over. Called between two pieces of work.

        `SearchTooLong` after all its time of work, `TooManySearches` after all its time in line.
        """
        now = time.perf_counter()
        if now < self._pause_at:
            return
        if not self._works:
            if self._has_worked(_FREE_SECONDS):
                self.enter()
        elif now >= self._slice_ends:
            self._wait_in_line()
        self._pause_at = time.perf_counter() + _LOOK_SECONDS

    def pause_reading(self) -> None:
        """The same between two reads: what a search reads is none of its work."""
        self._work_began = time.thread_time()
        self.pause()

    def end(self) -> None:
        """Leave the line, because the search is done."""
        self._note_work()
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
        self._note_work()
        # The client has the first bytes of the answer, so the pieces wait as long as it takes.
        self._wait_seconds_left = inf
        while True:
            self._start()
            self._work_began = time.thread_time()
            try:
                piece = next(pieces)
            except StopIteration:
                return
            finally:
                self.worked_seconds += time.thread_time() - self._work_began
                # A piece that fails aside has left the line.
                if self._works:
                    self._stop()
            yield piece

    def _note_work(self) -> None:
        """The search is done, unless that is known."""
        if self._began is not None:
            self.worked_seconds += time.thread_time() - self._began
            self._began = None

    def _wait_in_line(self) -> None:
        if time.thread_time() - self._work_began >= self._work_seconds:
            raise SearchTooLong(f"more than {self._work_seconds} seconds of work")
        if not self.is_very_large and self._has_worked(_VERY_LARGE_SECONDS):
            self._become_very_large()
        else:
            try:
                self._wait_for(self._turns.working.let_pass)
            except TooManySearches:
                # The thread has left the line.
                self._works = False
                self._turns.end_work()
                raise
            self._slice_ends = time.perf_counter() + _SLICE_SECONDS

    def _wait_for(self, wait: Callable[[float], bool]) -> None:
        """Wait in a line; `TooManySearches` if that takes too long."""
        began = time.perf_counter()
        may_work = wait(self._wait_seconds_left)
        waited = time.perf_counter() - began
        self.waited_seconds += waited
        self._wait_seconds_left -= waited
        if not may_work:
            raise TooManySearches(f"a large search waited {self._wait_seconds} seconds for others")

    def _has_worked(self, seconds: float) -> bool:
        """Whether the search has used so much CPU time."""
        return self._began is not None and time.thread_time() - self._began >= seconds

    def _become_very_large(self) -> None:
        if self._works:
            self._stop()
        self._wait_for(self._turns.very_large.enter)
        self.is_very_large = True
        self._start()

    def _start(self) -> None:
        self._wait_for(self._turns.working.enter)
        self._turns.begin_work()
        self._works = True
        self._slice_ends = time.perf_counter() + _SLICE_SECONDS

    def _stop(self) -> None:
        self._works = False
        self._turns.end_work()
        self._turns.working.leave()


# A process has one interpreter, so all its searches share one line.
TURNS = Turns()


class _RoundMember(Generic[T]):
    """A search that waits for a round."""

    def __init__(self) -> None:
        # What the round found. It lives as long as its members do.
        self.found: list[T] = []
        self.failure: str | None = None

    @property
    def is_served(self) -> bool:
        return bool(self.found) or self.failure is not None


class Rounds(Generic[T]):
    """The rounds of one kind of work. For any number of threads."""

    def __init__(self) -> None:
        # Guards the attributes below. Members wait here until a round ends.
        self._ended = threading.Condition(threading.Lock())
        self._is_under_way = False
        # The members of the next round.
        self._waiting: list[_RoundMember[T]] = []

    def share(self, turn: Turn, work: Callable[[], T]) -> T:
        """What `work` returns, in this thread or in that of another member of the same round.

        Work that takes too long fails for all members of its round. After any other failure, the
        next member tries it again.
        """
        member: _RoundMember[T] = _RoundMember()
        with self._ended:
            self._waiting.append(member)
        try:
            turn.wait(partial(self._may_go_on, member))
        except BaseException:
            self._forget(member)
            raise
        if not member.is_served:
            return self._lead(member, work)
        if member.failure is not None:
            raise SearchTooLong(member.failure)
        return member.found[0]

    def _may_go_on(self, member: _RoundMember[T], seconds: float) -> bool:
        """Wait until the member is served, or has to lead a round; false after so many seconds."""

        def is_called() -> bool:
            return member.is_served or not self._is_under_way

        with self._ended:
            if not self._ended.wait_for(is_called, min(seconds, threading.TIMEOUT_MAX)):
                return False
            if not member.is_served:
                self._is_under_way = True
            return True

    def _forget(self, member: _RoundMember[T]) -> None:
        with self._ended:
            if member in self._waiting:
                self._waiting.remove(member)

    def _lead(self, leader: _RoundMember[T], work: Callable[[], T]) -> T:
        """Do the work for all members that have come until now."""
        with self._ended:
            self._waiting.remove(leader)
            members, self._waiting = self._waiting, []
        try:
            leader.found.append(work())
        except SearchTooLong as error:
            leader.failure = str(error)
            raise
        finally:
            with self._ended:
                self._is_under_way = False
                if leader.is_served:
                    for member in members:
                        member.found, member.failure = leader.found, leader.failure
                else:
                    self._waiting = members + self._waiting
                self._ended.notify_all()
        return leader.found[0]
