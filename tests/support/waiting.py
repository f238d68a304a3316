"""Waits for what other threads, processes and servers do; for `cluster/`, too.

A wait ends as soon as its condition holds, however busy the machine is. Its only deadline is for
runs in which something hangs.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

# The deadline of all waits: sockets, processes, threads, conditions. It ends a run that hangs.
SECONDS_MAX = 300.0
_PAUSE_SECONDS = 0.01

T = TypeVar("T")


def wait_until(holds: Callable[[], T], said: Callable[[], str] = str) -> T:
    """Wait until the condition holds, and return its value.

    `said` is what the failure shows, such as the log of a server.
    """
    deadline = time.monotonic() + SECONDS_MAX
    while not (value := holds()):
        assert time.monotonic() < deadline, f"not so after {SECONDS_MAX:g} seconds. {said()}"
        time.sleep(_PAUSE_SECONDS)
    return value


def wait_until_blocked(thread: threading.Thread) -> None:
    """Wait until a thread has ended, or waits for another thread."""
    _wait_until_blocked(Path(f"/proc/self/task/{thread.native_id}/status"), thread.is_alive)


def wait_until_process_blocked(process_id: int, thread_id: int | None = None) -> None:
    """Wait until a thread of a process, by default the main one, is blocked in a call.

    A signal that comes just before a blocking call does not end that call. So a test that sends a
    signal waits for the call.
    """
    _wait_until_blocked(Path(f"/proc/{process_id}/task/{thread_id or process_id}/status"))


def _wait_until_blocked(status: Path, is_alive: Callable[[], bool] = lambda: True) -> None:
    """Wait until a thread sleeps, and does not wake between two looks.

    A thread that waits for its turn to run Python wakes several times.
    """
    deadline = time.monotonic() + SECONDS_MAX
    before = _sleep(status)
    while is_alive():
        assert time.monotonic() < deadline, f"{status} is of no thread that is blocked"
        time.sleep(4 * _PAUSE_SECONDS)
        now = _sleep(status)
        if now is not None and now == before:
            return
        before = now


def read_some(descriptor: int) -> bytes:
    """What a program writes next, such as to its terminal."""
    readable, _, _ = select.select([descriptor], [], [], SECONDS_MAX)
    assert readable, f"nothing comes for {SECONDS_MAX:g} seconds"
    return os.read(descriptor, 65536)


def _sleep(status: Path) -> tuple[str, ...] | None:
    """The number of the sleep that a thread is in; `None` if it runs, or is gone."""
    try:
        text = status.read_text()
    except OSError:
        return None
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if lines["State"].split()[0] != "S":
        return None
    return lines["voluntary_ctxt_switches"], lines["nonvoluntary_ctxt_switches"]
