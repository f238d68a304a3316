"""Threads that take work from a queue, first come, first served."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class Threads(Generic[T]):
    """A fixed number of threads that all do the same to whatever is put."""

    def __init__(self, name: str, count: int, work: Callable[[T], None]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[T] = queue.SimpleQueue()
        self.put = self._queue.put
        for number in range(count):
            thread = threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            thread.start()

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            try:
                self._work(item)
            except Exception:
                _LOG.exception("A thread of the server failed")
            # The next wait must not keep the last connection alive.
            del item
