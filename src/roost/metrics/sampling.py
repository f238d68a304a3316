"""Samplers: functions that set the gauges of a process, now and then and before a scrape."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from roost.metrics.catalogue import (
    ACCEPTED,
    CONNECTIONS,
    EVICTED,
    LOST_SERIES,
    REFUSED,
    THREADS,
)
from roost.metrics.counting import TALLY
from roost.metrics.memory import ProcessSlot

_LOG = logging.getLogger(__name__)

Sampler = Callable[[], None]

_SAMPLERS: list[Sampler] = []
# Two samplings at once would count what is new twice.
_SAMPLING = threading.Lock()


def add_sampler(sampler: Sampler) -> None:
    """Call the function at every sampling from now on."""
    _SAMPLERS.append(sampler)


def sample_all() -> None:
    """Set all gauges of this process."""
    with _SAMPLING:
        _LOST.sample()
        for sampler in _SAMPLERS:
            sampler()


class _LostSeries:
    """Counts series that found no room in the slot of this process, and logs the first."""

    def __init__(self) -> None:
        self._slot: ProcessSlot | None = None
        self._lost = 0

    def sample(self) -> None:
        """Count what is new."""
        with TALLY.lock:
            slot = TALLY.slot
            # The first sampling takes a place, long before the slot is full.
            place = LOST_SERIES.place(())
            if slot is not self._slot:
                self._slot, self._lost = slot, 0
            is_first = slot.lost > 0 and self._lost == 0
            TALLY.values[place] += slot.lost - self._lost
            self._lost = slot.lost
        if is_first:
            _LOG.warning(
                "The memory for metrics of this worker is full, so some series are not shown. "
                "The metric %s counts them. A client with a role may use very many versions.",
                LOST_SERIES.name,
            )


_LOST = _LostSeries()


class ServerReport(Protocol):
    """What an HTTP server says about itself."""

    @property
    def connections(self) -> Mapping[str, int]:
        """How many connections are in each state."""

    @property
    def threads(self) -> Mapping[str, int]:
        """How many threads are in each state."""

    @property
    def accepted(self) -> int:
        """Connections so far."""

    @property
    def evicted(self) -> int:
        """Connections that made room for new ones so far."""

    @property
    def refused(self) -> Mapping[int, int]:
        """Requests that the server refused so far, by status."""


def watch_server(report: Callable[[], ServerReport]) -> None:
    """Sample the HTTP server of this process."""
    with TALLY.lock:
        TALLY.slot.mark_as_serving()
    add_sampler(_ServerSampler(report).sample)


class _ServerSampler:
    """Turns the reports of a server into metrics: counters grow by what is new."""

    def __init__(self, report: Callable[[], ServerReport]) -> None:
        self._report = report
        self._accepted = 0
        self._evicted = 0
        self._refused: dict[int, int] = {}

    def sample(self) -> None:
        """Read one report."""
        report = self._report()
        for state, count in report.connections.items():
            CONNECTIONS.set(count, (state,))
        for state, count in report.threads.items():
            THREADS.set(count, (state,))
        ACCEPTED.count(amount=report.accepted - self._accepted)
        EVICTED.count(amount=report.evicted - self._evicted)
        self._accepted, self._evicted = report.accepted, report.evicted
        refused = dict(report.refused)
        for status, count in refused.items():
            REFUSED.count((str(status),), count - self._refused.get(status, 0))
        self._refused = refused
