"""The loop of the agent: report, wait, report again; never give up, never hurry."""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from roost.client.agent.alarm import Alarm
from roost.client.agent.notifying import Notifier
from roost.client.errors import TransportFailed
from roost.client.owning.owner import Report
from roost.model.errors import OperatorError

# How long a failure that goes on is not worth a line.
REPEAT_SECONDS = 600
# The least wait after a failure, doubled with each one that follows.
BACKOFF_SECONDS = 1.0
# Hosts that were started together shall not report together.
JITTER = 0.1

# Ids of requests, and of providers that were to be created: new ones with each attempt.
_IDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

LOG = logging.getLogger(__name__)

_News = TypeVar("_News")


class Agent:
    """Reports a host at every interval until it is told to stop.

    `report` makes one report; whatever it raises is told to `failed` and tried again, sooner at
    first and with growing patience; once it works, that is told to `recovered`. `changed` is
    given each report that changed something, or could not change other things than the last.
    """

    def __init__(
        self,
        report: Callable[[], Report],
        *,
        interval: float,
        changed: Callable[[Report], None],
        failed: Callable[[str], None],
        recovered: Callable[[str], None],
        notifier: Notifier | None = None,
        alarm: Alarm | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._interval = interval
        self._changed = changed
        self._failed = failed
        self._recovered = recovered
        self._notifier = notifier or Notifier()
        self._clock = clock
        self._alarm = alarm or Alarm()
        self._stopping = False
        self._failures = 0
        self._last_failure = ""
        self._told_at = 0.0
        self._last_kept: tuple[str, ...] = ()

    def stop(self) -> None:
        """End after the report that is under way. May be called from a signal handler."""
        self._stopping = True
        self._alarm.ring()

    def report_now(self) -> None:
        """Do not wait for the interval to end. May be called from a signal handler."""
        self._alarm.ring()

    def close(self) -> None:
        """Let go of what it waits with."""
        self._alarm.close()

    def run(self) -> None:
        """Report until told to stop."""
        # A server that is down is no reason for the manager to think that the agent is.
        self._notifier.ready()
        while not self._stopping:
            self._wait(self.once())
        self._notifier.stopping()

    def once(self) -> float:
        """Make one report; how many seconds to wait until the next."""
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
        # Without a server it is always the same, whatever it was to be asked.
        failure = type(error).__name__
        if not isinstance(error, TransportFailed):
            failure = _IDS.sub("", text)
        if failure != self._last_failure or now - self._told_at >= REPEAT_SECONDS:
            retry = f"trying again in {math.ceil(delay)} s"
            _tell(self._failed, f"report failed: {text}; {retry}")
            if not isinstance(error, OperatorError):
                LOG.error("This is where the driver failed:", exc_info=error)
            self._last_failure = failure
            self._told_at = now
        self._notifier.status(f"report failed: {text}")
        return delay

    def _wait(self, seconds: float) -> None:
        """Wait, with signs of life as often as the manager wants them."""
        end = self._clock() + seconds
        rung = False
        while not rung and (left := end - self._clock()) > 0:
            self._notifier.alive()
            watchdog = self._notifier.watchdog_seconds
            rung = self._alarm.wait(min(left, watchdog / 2) if watchdog else left)
        self._notifier.alive()


def _tell(tell: Callable[[_News], None], news: _News) -> None:
    """Tell somebody; that he cannot be told is no reason to stop reporting."""
    try:
        tell(news)
    except Exception:
        LOG.exception("What happened could not be told")


def _in_words(error: Exception) -> str:
    if isinstance(error, OperatorError):
        return error.explanation
    return f"{type(error).__name__}: {error}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
