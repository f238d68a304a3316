"""The loop of the agent: report, wait, report again."""

from __future__ import annotations

import logging
import math
import os
import random
import re
import select
import time
from collections.abc import Callable
from typing import TypeVar

from roost.client.errors import DriverFailed, TransportFailed
from roost.client.ownership.declarative_reporter import Report
from roost.model.errors import OperatorError
from roost.model.text import one_line
from roost.systemd import SystemdNotifier

REPEAT_SECONDS = 600
"""A failure that lasts is told again after this time."""
BACKOFF_SECONDS = 1.0
"""The longest wait after a first failure; each further failure doubles it."""
JITTER = 0.1
"""Spreads the reports of hosts that were started at the same time."""

# Ids of requests, and of providers that were to be created: each attempt has new ones.
_IDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

LOG = logging.getLogger(__name__)

_Event = TypeVar("_Event")


class Agent:
    """Reports a host at every interval until `stop` is called.

    `report` makes one report. The agent passes the text of an exception to `failed` and tries
    again, after a wait that doubles with each failure. The first success after failures goes to
    `recovered`. `changed` gets each report that changed something, or kept other things than the
    report before.
    """

    def __init__(
        self,
        report: Callable[[], Report],
        *,
        interval: float,
        changed: Callable[[Report], None],
        failed: Callable[[str], None],
        recovered: Callable[[str], None],
        notifier: SystemdNotifier | None = None,
        waker: SignalWaker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._interval = interval
        self._changed = changed
        self._failed = failed
        self._recovered = recovered
        self._notifier = notifier or SystemdNotifier()
        self._clock = clock
        self._waker = waker or SignalWaker()
        self._stopping = False
        self._failures = 0
        self._last_failure = ""
        self._told_at = 0.0
        self._last_kept: tuple[str, ...] = ()

    def stop(self) -> None:
        """End after the report that is under way. A signal handler may call this."""
        self._stopping = True
        self._waker.wake()

    def report_now(self) -> None:
        """End the wait for the next report. A signal handler may call this."""
        self._waker.wake()

    def close(self) -> None:
        """Close the waker."""
        self._waker.close()

    def run(self) -> None:
        """Report until `stop` is called."""
        # The agent is ready without a server: systemd must not restart it while that is down.
        self._notifier.ready()
        while not self._stopping:
            self._wait(self.once())
        self._notifier.stopping()

    def once(self) -> float:
        """Make one report; returns the seconds to wait until the next."""
        try:
            report = self._report()
        except Exception as error:
            return self._after_failure(error)
        if self._failures:
            attempts = _counted(self._failures, "failed attempt")
            _tell(self._recovered, f"reporting again after {attempts}")
        self._failures = 0
        self._last_failure = ""
        if report.difference or report.kept != self._last_kept:
            _tell(self._changed, report)
            self._last_kept = report.kept
        self._notifier.status(f"reported, {_counted(len(report.difference.lines()), 'change')}")
        return self._interval * random.uniform(1 - JITTER, 1 + JITTER)

    def _after_failure(self, error: Exception) -> float:
        self._failures += 1
        ceiling = max(self._interval, BACKOFF_SECONDS)
        backoff = min(ceiling, BACKOFF_SECONDS * 2.0 ** min(self._failures - 1, 30))
        delay = backoff * random.uniform(0.5, 1)
        text = _in_words(error)
        now = self._clock()
        # While the server is down, failures differ in their request only, and count as one.
        failure = type(error).__name__
        if not isinstance(error, TransportFailed):
            failure = _IDS.sub("", text)
        if failure != self._last_failure or now - self._told_at >= REPEAT_SECONDS:
            retry = f"trying again in {math.ceil(delay)} s"
            _tell(self._failed, f"report failed: {text}; {retry}")
            unexpected = error.__cause__ if isinstance(error, DriverFailed) else error
            if unexpected is not None and not isinstance(unexpected, OperatorError):
                # The author of the driver needs the traceback.
                LOG.error("The report failed with an unexpected error", exc_info=unexpected)
            self._last_failure = failure
            self._told_at = now
        self._notifier.status(f"report failed: {text}")
        return delay

    def _wait(self, seconds: float) -> None:
        """Wait, and reset the watchdog twice in each of its intervals."""
        end = self._clock() + seconds
        woken = False
        while not woken and (left := end - self._clock()) > 0:
            self._notifier.alive()
            watchdog = self._notifier.watchdog_seconds
            woken = self._waker.wait(min(left, watchdog / 2) if watchdog else left)
        self._notifier.alive()


class SignalWaker:
    """Ends the wait of a thread. A signal handler may call `wake`.

    The waker is a pipe: `threading.Event.set` needs a lock that the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def wake(self) -> None:
        """End the wait that is under way, or else the next one."""
        try:
            os.write(self._write_end, b"!")
        except BlockingIOError:
            # The pipe is full of earlier calls: the next wait ends anyway.
            return

    def wait(self, seconds: float) -> bool:
        """Wait for a call of `wake`, at most this long; true if there was one."""
        ready, _, _ = select.select([self._read_end], [], [], max(0.0, seconds))
        if ready:
            os.read(self._read_end, 65536)
        return bool(ready)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read_end)
        os.close(self._write_end)


def _tell(tell: Callable[[_Event], None], event: _Event) -> None:
    """Pass an event on; the agent goes on reporting if that fails."""
    try:
        tell(event)
    except OSError as error:
        # The disk behind standard output is full, or its reader is gone.
        LOG.warning("The agent cannot print an event: %s", error)
    except Exception:
        LOG.exception("The agent could not print an event")


def _in_words(error: Exception) -> str:
    if isinstance(error, OperatorError):
        return one_line(error.explanation)
    return f"{type(error).__name__}: {error}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
