"""Measured reports: a line in the log and new metrics after each report."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from roost.client.agent.host_report import HostReport
from roost.client.ownership.declarative_reporter import Report
from roost.model.text import counted

LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class ReportCounts:
    """What the reports of one process have come to. Moments are seconds since 1970; 0 is never."""

    started_at: float
    reports: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    changes: int = 0
    requests: int = 0
    last_report_at: float = 0.0
    last_success_at: float = 0.0
    last_seconds: float = 0.0
    providers: int = 0
    kept: int = 0


class MeasuredReports:
    """Makes reports, counts them, and passes the counts on after each of them."""

    def __init__(
        self,
        host: HostReport,
        requests: Callable[[], int],
        publish: Callable[[ReportCounts], None],
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._requests = requests
        self._publish = publish
        self._now = now
        self._clock = clock
        self._counts = ReportCounts(now())

    def report(self) -> Report:
        """Make one report."""
        began, requests = self._clock(), self._requests()
        try:
            report = self._host.report()
        except Exception:
            self._finished(began)
            self._counts.failures += 1
            self._counts.failures_in_a_row += 1
            self._publish(self._counts)
            raise
        self._finished(began)
        self._succeeded(report)
        LOG.info(
            "Reported in %.2f s: %s, %d kept, %s, %s",
            self._counts.last_seconds,
            counted(len(report.difference.lines()), "change"),
            len(report.kept),
            counted(self._counts.providers, "provider"),
            counted(self._requests() - requests, "request"),
        )
        self._publish(self._counts)
        return report

    def _finished(self, began: float) -> None:
        counts = self._counts
        counts.reports += 1
        counts.requests = self._requests()
        counts.last_report_at = self._now()
        counts.last_seconds = self._clock() - began

    def _succeeded(self, report: Report) -> None:
        counts = self._counts
        counts.failures_in_a_row = 0
        counts.changes += len(report.difference.lines())
        counts.last_success_at = counts.last_report_at
        counts.providers = self._host.providers
        counts.kept = len(report.kept)
