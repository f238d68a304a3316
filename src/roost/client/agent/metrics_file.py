"""The metrics of the agent, as a file that the node exporter of Prometheus reads."""

from __future__ import annotations

import errno
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from roost.client.agent.measured_reports import ReportCounts
from roost.client.errors import NotConfigured
from roost.client.whole_file import replace_text

LOG = logging.getLogger(__name__)

_ENDING = ".prom"
# These do not pass by themselves. A full disk does.
_WRONG = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM})


class MetricsFile:
    """Replaces the file after each report, in full or not at all.

    The labels tell what the agent is: its version, its driver and its owner.
    """

    def __init__(self, path: Path, labels: Mapping[str, str]) -> None:
        if path.suffix != _ENDING:
            raise NotConfigured(
                f"The metrics file {path} does not end in {_ENDING}, so the node exporter would "
                "not read it; rename it"
            )
        self._path = path
        self._labels = labels

    def check(self) -> None:
        """Refuse a place that no file can be written to, whatever the time."""
        try:
            with tempfile.TemporaryFile(dir=self._path.parent):
                pass
        except OSError as error:
            if error.errno in _WRONG:
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
