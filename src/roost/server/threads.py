"""A pool of threads: items wait in a queue, first come, first served."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class Threads(Generic[T]):
    """A fixed number of threads that run one function on each item.

    The thread that became idle last works first: its memory is still in the processor's cache.
    """

    def __init__(self, name: str, count: int, work: Callable[[T], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._waiting: deque[T] = deque()
        self._idle: list[_Idle[T]] = []
        for number in range(count):
            thread = threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            thread.start()

    def put(self, item: T) -> None:
        """Give the item to an idle thread, now or as soon as there is one."""
        with self._lock:
            if not self._idle:
                self._waiting.append(item)
                return
            idle = self._idle.pop()
        idle.item = item
        idle.called.release()

    def _run(self) -> None:
        idle: _Idle[T] = _Idle()
        while True:
            item = self._next(idle)
            try:
                self._work(item)
            except Exception:
                _LOG.exception("A thread of the server failed")
            # While the thread waits, the item must not stay alive.
            del item

    def _next(self, idle: _Idle[T]) -> T:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(idle)
        idle.called.acquire()
        item, idle.item = idle.item, None
        assert item is not None
        return item


class _Idle(Generic[T]):
    """A thread that waits for work."""

    __slots__ = ("called", "item")

    def __init__(self) -> None:
        self.item: T | None = None
        self.called = threading.Lock()
        self.called.acquire()
