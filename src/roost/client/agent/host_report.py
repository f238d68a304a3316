"""The reports of one host by one driver: each leaves a line in the log and new metrics."""

from __future__ import annotations

import errno
import functools
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from roost.client.drivers.driver import DeclaringDriver, Driver, calling, declared_by
from roost.client.errors import NotConfigured
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.whole_file import replace_text
from roost.model.text import counted
from roost.model.trees.declaration import Declaration

LOG = logging.getLogger(__name__)

_METRICS_ENDING = ".prom"
# These do not pass by themselves. A full disk does.
_LASTING_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM})


class HostReport:
    """Reports a host again and again. A driver that edits the tree needs no `declarative`."""

    def __init__(
        self,
        driver: Driver | DeclaringDriver,
        name: str,
        uuid: str | None,
        reporter: Reporter,
        declarative: DeclarativeReporter | None,
    ) -> None:
        self._driver = driver
        self._name = name
        self._uuid = uuid
        self._reporter = reporter
        self._declarative = declarative
        self.reads_again = False
        """Whether the next report reads the tree from the server instead of the cache."""
        self.providers = 0
        """How many providers the driver found at the last report."""

    def report(self) -> Report:
        """Make one report."""
        if self.reads_again:
            self.reads_again = False
            self._reporter.forget()
        if self._declarative is not None:
            return self._declarative.report(_Declaring(self), self._name, self._uuid)
        return Report(self._reporter.report(_Editing(self), self._name, self._uuid))

    def preview(self) -> Report:
        """What a report would change; nothing is written."""
        if self._declarative is not None:
            return self._declarative.preview_report(_Declaring(self), self._name, self._uuid)
        return Report(self._reporter.preview(_Editing(self), self._name, self._uuid))

    def found(self, providers: int, began: float) -> None:
        """Keep the number of providers that the driver has found since a moment."""
        self.providers = providers
        seconds = time.monotonic() - began
        LOG.info("The driver read %s in %.2f s: %d providers", self._name, seconds, providers)

    @property
    def driver(self) -> Any:
        """The driver of the host."""
        return self._driver


class _Declaring(DeclaringDriver):
    """Counts what the driver of a host declares."""

    def __init__(self, host: HostReport) -> None:
        self._host = host
        self.declares_intent: bool = getattr(host.driver, "declares_intent", False)

    def declare(self, nodename: str) -> Declaration:
        began = time.monotonic()
        declaration = declared_by(self._host.driver, nodename)
        self._host.found(len(declaration.providers), began)
        return declaration


class _Editing:
    """Counts what the driver of a host leaves in the tree."""

    def __init__(self, host: HostReport) -> None:
        update = host.driver.update_provider_tree

        # The reporter sees the arguments of the driver itself.
        @functools.wraps(update)
        def counted(provider_tree: ProviderTree, nodename: str, **more: Any) -> None:
            began = time.monotonic()
            # A driver that has the allocations may not ask for them again.
            with calling(host.driver, may_reshape=more.get("allocations") is None):
                update(provider_tree, nodename, **more)
                # A driver that removes the host itself fails here.
                members = provider_tree.get_provider_uuids_in_tree(nodename)
            host.found(len(members), began)

        self.update_provider_tree: Callable[..., None] = counted


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


class MetricsFile:
    """Replaces the file after each report, in full or not at all.

    The labels tell what the agent is: its version, its driver and its owner.
    """

    def __init__(self, path: Path, labels: Mapping[str, str]) -> None:
        if path.suffix != _METRICS_ENDING:
            raise NotConfigured(
                f"The metrics file {path} does not end in {_METRICS_ENDING}, so the node exporter "
                "would not read it; rename it"
            )
        self._path = path
        self._labels = labels

    def check(self) -> None:
        """Refuse a place that no file can be written to, whatever the time."""
        try:
            with tempfile.TemporaryFile(dir=self._path.parent):
                pass
        except OSError as error:
            if error.errno in _LASTING_ERRORS:
                raise NotConfigured(
                    f"The metrics file {self._path} cannot be written: {error.strerror}; choose "
                    "a file in a directory that exists and that this user may write to"
                ) from error
            self._complain(error)

    def write(self, counts: ReportCounts) -> None:
        """Write the counts; a failure is logged, and the agent goes on."""
        try:
            # The exporter runs as another user. It reads files that end in .prom, and no draft.
            replace_text(self._path, rendered(counts, self._labels), mode=0o644)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        LOG.warning("The metrics file %s cannot be written: %s", self._path, error.strerror)


class _Family(NamedTuple):
    """One metric: its name behind `roost_agent_`, and its values by their labels."""

    name: str
    kind: str
    help: str
    values: Mapping[str, float]

    def lines(self) -> Iterator[str]:
        name = f"roost_agent_{self.name}"
        yield f"# HELP {name} {self.help}"
        yield f"# TYPE {name} {self.kind}"
        for labels, value in self.values.items():
            yield f"{name}{labels} {_number(value)}"


def rendered(counts: ReportCounts, labels: Mapping[str, str]) -> str:
    """The counts in the text format of Prometheus."""
    lines = (line for family in _families(counts, labels) for line in family.lines())
    return "\n".join(lines) + "\n"


def _families(counts: ReportCounts, labels: Mapping[str, str]) -> Iterator[_Family]:
    what = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    yield _Family("info", "gauge", "What the agent is; always 1.", {f"{{{what}}}": 1})
    results = {
        '{result="success"}': counts.reports - counts.failures,
        '{result="failure"}': counts.failures,
    }
    yield _Family("reports_total", "counter", "Reports since the start.", results)
    for name, kind, help_text, value in _SINGLE:
        yield _Family(name, kind, help_text, {"": value(counts)})


_SINGLE: tuple[tuple[str, str, str, Callable[[ReportCounts], float]], ...] = (
    ("start_time_seconds", "gauge", "When the agent began.", lambda counts: counts.started_at),
    (
        "consecutive_failures",
        "gauge",
        "Failed reports since the last success.",
        lambda counts: counts.failures_in_a_row,
    ),
    (
        "last_report_timestamp_seconds",
        "gauge",
        "When the last report ended.",
        lambda counts: counts.last_report_at,
    ),
    (
        "last_success_timestamp_seconds",
        "gauge",
        "When the last successful report ended; 0 if there was none since the start.",
        lambda counts: counts.last_success_at,
    ),
    (
        "last_report_duration_seconds",
        "gauge",
        "How long the last report took.",
        lambda counts: counts.last_seconds,
    ),
    (
        "changes_total",
        "counter",
        "Changes written to the server since the start.",
        lambda counts: counts.changes,
    ),
    (
        "requests_total",
        "counter",
        "Requests to the server since the start.",
        lambda counts: counts.requests,
    ),
    (
        "providers",
        "gauge",
        "Providers that the driver found at the last success.",
        lambda counts: counts.providers,
    ),
    (
        "kept",
        "gauge",
        "Parts of the last successful report that could not be made true.",
        lambda counts: counts.kept,
    ),
)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
