"""Several threads work on a sequence of things, and the results come in its order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias, TypeVar

_AHEAD = 8
"""The things for each thread that are begun at most before the first result is taken."""

T = TypeVar("T")
R = TypeVar("R")

_Tasks: TypeAlias = "SimpleQueue[tuple[Future[R], T] | None]"


def in_order(things: Iterable[T], work: Callable[[T], R], threads: int) -> Iterator[R]:
    """The result of the work on each thing, in order; an error of the work comes at its place.

    Few results wait at a time, so the memory is bounded however many things there are. The end of
    the iteration leaves work that is not begun undone, and waits for none that is under way. So
    Ctrl-C ends a command at once, however long a server is silent.

    >>> list(in_order("abc", str.upper, threads=2))
    ['A', 'B', 'C']
    """
    if isinstance(things, Sized):
        threads = min(threads, len(things))
    if threads <= 1:
        yield from map(work, things)
        return
    tasks: _Tasks[R, T] = SimpleQueue()
    for _ in range(threads):
        # A command that ends waits for no daemon, so a silent server cannot hold it.
        Thread(target=_work_on, args=(tasks, work), daemon=True).start()
    waiting: deque[Future[R]] = deque()
    try:
        for thing in things:
            result: Future[R] = Future()
            waiting.append(result)
            tasks.put((result, thing))
            if len(waiting) == threads * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for result in waiting:
            result.cancel()
        for _ in range(threads):
            tasks.put(None)


def _work_on(tasks: _Tasks[R, T], work: Callable[[T], R]) -> None:
    while (task := tasks.get()) is not None:
        result, thing = task
        if not result.set_running_or_notify_cancel():
            continue
        try:
            result.set_result(work(thing))
        except BaseException as error:
            # The thread that takes the results raises it.
            result.set_exception(error)
        # A thread that waits for its next task keeps nothing of the last one alive.
        del task, result, thing
