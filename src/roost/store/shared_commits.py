"""Writers of one process that wait for each other share a transaction and its COMMIT, on SQLite.

SQLite has one writer at a time, and most of the time of a small write is its COMMIT, which waits
for the disk. So one thread leads: it does its own work, then the works of all threads that wait,
each in a savepoint, and commits once for all. No thread hears of its result before that COMMIT.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from roost.store.connections.errors import Busy, OutcomeUnknown
from roost.store.transaction import Finished, Transaction

T = TypeVar("T")

# How many works share a COMMIT at most: the first of them waits for all.
WORKS_MAX = 32


class AttemptAlone(Protocol):
    """Does a work in a transaction of its own, which further works may join before its COMMIT."""

    def __call__(
        self,
        deadline: float,
        work: Callable[[Transaction], Finished[T]],
        join: Callable[[Connection], None] | None = None,
    ) -> T:
        """The result of the work, after its writes are durable."""


class _NextAction(Enum):
    """What a thread that has waited does next."""

    LEAD = auto()
    TAKE_RESULT = auto()
    WRITE_ALONE = auto()


class _Writer:
    """A thread with its work, and the result of the work."""

    __slots__ = ("error", "next_action", "result", "woken", "work")

    def __init__(self, work: Callable[[Transaction], Finished[Any]]) -> None:
        self.work = work
        self.woken = threading.Event()
        self.next_action = _NextAction.WRITE_ALONE
        self.result: Any = None
        self.error: Exception | None = None

    def wake(self, next_action: _NextAction) -> None:
        self.next_action = next_action
        self.woken.set()

    def do_in_savepoint(self, connection: Connection) -> None:
        """Do the work, without COMMIT; if it fails, undo it and nothing else."""
        raw: Any = connection.connection.dbapi_connection
        connection.exec_driver_sql("SAVEPOINT work")
        try:
            self.result = Transaction(connection).run(self.work)
        except Exception as error:
            if not raw.in_transaction:
                # SQLite has ended the whole transaction, as it does when the disk is full.
                raise
            self.error = error
            connection.exec_driver_sql("ROLLBACK TO work")
        connection.exec_driver_sql("RELEASE work")

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class SharedCommits:
    """The threads of one process that write to one SQLite file."""

    def __init__(self, attempt: AttemptAlone) -> None:
        self._attempt = attempt
        # Protects the attributes below.
        self._lock = threading.Lock()
        self._writers: deque[_Writer] = deque()
        self._is_led = False

    def run(self, deadline: float, work: Callable[[Transaction], Finished[T]]) -> T:
        """The result of the work, after its writes are durable; or none of them is.

        `Busy` if no thread has begun the work by the deadline, a value of `time.monotonic`.
        """
        writer: _Writer | None = None
        with self._lock:
            if self._is_led:
                writer = _Writer(work)
                self._writers.append(writer)
            self._is_led = True
        next_action = _NextAction.LEAD if writer is None else self._wait(writer, deadline)
        if writer is None or next_action is _NextAction.LEAD:
            return self._lead(work, deadline)
        if next_action is _NextAction.WRITE_ALONE:
            return self._attempt(deadline, work)
        result: T = writer.outcome()
        return result

    def _wait(self, writer: _Writer, deadline: float) -> _NextAction:
        began = time.monotonic()
        if not writer.woken.wait(max(0.0, deadline - began)):
            with self._lock:
                if writer in self._writers:
                    self._writers.remove(writer)
                    waited = time.monotonic() - began
                    raise Busy(f"other writers have kept this one waiting for {waited:.1f} seconds")
            # A leader has begun the work, which takes a bounded time.
            writer.woken.wait()
        return writer.next_action

    def _lead(self, work: Callable[[Transaction], Finished[T]], deadline: float) -> T:
        """Do the work, and before its COMMIT those of the threads that wait."""
        followers: list[_Writer] = []
        try:
            result = self._attempt(
                deadline, work, lambda connection: self._join(connection, followers)
            )
        except OutcomeUnknown as error:
            _leave_open(followers, error)
            raise
        except Exception:
            for writer in followers:
                # The refusals as well: they may rest on works that are undone now.
                writer.wake(_NextAction.WRITE_ALONE)
            if not followers:
                raise
            # The failure may be that of another work.
            return self._attempt(deadline, work)
        except BaseException:
            # An exit of this thread, perhaps during COMMIT.
            text = "the thread that wrote for several requests has ended"
            _leave_open(followers, OutcomeUnknown(text, lost=False))
            raise
        else:
            for writer in followers:
                writer.wake(_NextAction.TAKE_RESULT)
        finally:
            self._pass_on()
        return result

    def _join(self, connection: Connection, followers: list[_Writer]) -> None:
        """Do the works of the threads that wait, in the transaction of the leader."""
        while len(followers) < WORKS_MAX - 1 and (writer := self._next()) is not None:
            followers.append(writer)
            writer.do_in_savepoint(connection)

    def _next(self) -> _Writer | None:
        with self._lock:
            return self._writers.popleft() if self._writers else None

    def _pass_on(self) -> None:
        """Let the thread that has waited longest lead."""
        with self._lock:
            writer = self._writers.popleft() if self._writers else None
            self._is_led = writer is not None
        if writer is not None:
            writer.wake(_NextAction.LEAD)


def _leave_open(writers: list[_Writer], error: OutcomeUnknown) -> None:
    """Tell the writers that their works may have taken effect: none of them is done again."""
    for writer in writers:
        writer.error = error
        writer.wake(_NextAction.TAKE_RESULT)
