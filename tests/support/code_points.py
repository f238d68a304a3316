"""Points in the code at which another thread may run, and an act at each of them.

Threads take turns between two instructions of the interpreter. A test that acts at every line, or
at every instruction, of some modules meets every such turn, whatever the machine is busy with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType, ModuleType
from typing import Any


@contextmanager
def at_every_point(
    modules: Iterable[ModuleType], act: Callable[[], None], *, instructions: bool = False
) -> Iterator[None]:
    """Act before each line that this thread runs in these modules, and after each function.

    `instructions`: before each instruction as well. The act itself meets no points, and must not
    raise.
    """
    files = {module.__file__ for module in modules}

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = instructions
        return reach

    def reach(frame: FrameType, event: str, argument: Any) -> Any:
        act()
        return reach

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def only_at(point: int, act: Callable[[], None]) -> Callable[[], None]:
    """An act for `at_every_point` that acts at one point only, counted from 0."""
    reached = count()

    def reach() -> None:
        if next(reached) == point:
            act()

    return reach
