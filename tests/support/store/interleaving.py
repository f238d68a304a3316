"""Writers that stop before each of their round trips, so that a test chooses their interleaving."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from roost.store.database import Database
from support.waiting import SECONDS_MAX

# A writer that does not stop again within this time waits for a lock that another writer holds.
BLOCKED_SECONDS = 0.05


class Writer:
    """A thread that does its works one after another, and stops before each round trip."""

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        self._works = works
        self._may_go = threading.Semaphore(0)
        self._stopped = threading.Event()
        self._is_free = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def step(self) -> None:
        """Let the writer make one round trip; return when it stops again, ends or is blocked."""
        if self._stopped.wait(BLOCKED_SECONDS) and self._thread.is_alive():
            self._stopped.clear()
            self._may_go.release()
            self._stopped.wait(BLOCKED_SECONDS)

    def free(self) -> None:
        """Let the writer stop no more."""
        self._is_free = True
        self._may_go.release()

    def join(self) -> None:
        """Wait for the end of the writer, and raise its error."""
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), "the writer waits for ever"
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Stop this thread before a round trip, if it is the writer's."""
        if threading.current_thread() is self._thread and not self._is_free:
            self._stopped.set()
            self._may_go.acquire()

    def _run(self) -> None:
        try:
            for work in self._works:
                work()
        except BaseException as error:
            self.error = error
        finally:
            self._stopped.set()


@contextmanager
def interleaved(
    database: Database, works: Sequence[Sequence[Callable[[], Any]]]
) -> Iterator[list[Writer]]:
    """Writers for these works. All of them end with the context."""
    writers: list[Writer] = []
    ready = threading.Event()

    def stop(*_arguments: object) -> None:
        ready.wait()
        for writer in writers:
            writer.stop()

    class StoppingFilter(logging.Filter):
        """Stops the thread that logs a batch; a handler would hold a lock meanwhile."""

        def filter(self, record: logging.LogRecord) -> bool:
            stop()
            return False

    stopping = StoppingFilter()
    batches = logging.getLogger("roost.store.transaction")
    level = batches.level
    batches.addFilter(stopping)
    batches.setLevel(logging.DEBUG)
    event.listen(database.engine, "before_cursor_execute", stop)
    try:
        writers += [Writer(several) for several in works]
        ready.set()
        yield writers
    finally:
        ready.set()
        # All of them first, because one may wait for a lock of the next.
        for writer in writers:
            writer.free()
        for writer in writers:
            writer.join()
        event.remove(database.engine, "before_cursor_execute", stop)
        batches.removeFilter(stopping)
        batches.setLevel(level)
