"""Counters, gauges and histograms: plain objects that any layer can count with.

A process adds to its own slot of the shared memory under one lock. An addition takes about a
quarter of a microsecond.
"""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from roost.metrics.memory import ProcessSlot, SharedMemory

# The values of a metric's labels, in the order of their names.
Labels: TypeAlias = tuple[str, ...]

SEPARATOR = b"\x1f"
_NO_VALUES = memoryview(bytearray(8)).cast("d")


class MetricKind(StrEnum):
    """How Prometheus reads a metric, and how values of several processes become one."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    RECORD = "record"


class Tally:
    """Where this process counts. The first count opens the memory and takes a slot."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process_id = os.getpid()
        self._memory: SharedMemory | None = None
        self._slot: ProcessSlot | None = None
        # The values of this process; places are indexes into it.
        self.values = _NO_VALUES
        self._metrics: list[Metric] = []
        # Further places that callers remember.
        self._remembered: list[dict[Any, Any]] = []
        os.register_at_fork(after_in_child=self._leave_to_parent)

    @property
    def slot(self) -> ProcessSlot:
        """The slot of this process."""
        if self._slot is None:
            self._slot = self.memory.claim()
            self.values = self._slot.values
            for metric in self._metrics:
                metric.begin(self._slot)
        return self._slot

    @property
    def memory(self) -> SharedMemory:
        """The memory of this process, which processes that it forks from now on share."""
        if self._memory is None:
            self._memory = SharedMemory.of_server()
        return self._memory

    def open(self) -> None:
        """Open the memory, before this process forks others."""
        with self.lock:
            assert self.memory

    def open_own(self) -> None:
        """Share the memory with no process but those that this one forks. All counts are zero."""
        with self.lock:
            self._memory = SharedMemory.anonymous()
            self._forget_slot()

    def ensure(self) -> None:
        """Notice a fork. uwsgi forks without telling Python."""
        if self._process_id != os.getpid():
            self._leave_to_parent()

    def remembered(self) -> dict[Any, Any]:
        """A dictionary for places, which is emptied when the slot of this process changes."""
        places: dict[Any, Any] = {}
        self._remembered.append(places)
        return places

    def add(self, metric: Metric) -> None:
        """Know a metric, so that its places are forgotten after a fork."""
        self._metrics.append(metric)

    def _leave_to_parent(self) -> None:
        self._process_id = os.getpid()
        # Another thread of the parent may have held the lock at the fork.
        self.lock = threading.Lock()
        self._forget_slot()

    def _forget_slot(self) -> None:
        self._slot = None
        self.values = _NO_VALUES
        for places in (*(metric.places for metric in self._metrics), *self._remembered):
            places.clear()


TALLY = Tally()


class Metric:
    """A name, what it means, and its values by label."""

    kind: MetricKind
    width = 1

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        # Where this process has its values, by label.
        self.places: dict[Labels, int] = {}
        TALLY.add(self)

    def place(self, labels: Labels) -> int:
        """Where this process has the values for these labels. The caller holds the lock."""
        found = self.places.get(labels)
        if found is None:
            slot = TALLY.slot
            key = SEPARATOR.join([self.name.encode(), *(label.encode() for label in labels)])
            self.places[labels] = found = slot.place(key, self.width)
        return found

    def begin(self, slot: ProcessSlot) -> None:
        """Get ready for a slot that another process may have used before."""


class Counter(Metric):
    """A number that only grows; the sum over all processes, also those that have ended."""

    kind = MetricKind.COUNTER

    def count(self, labels: Labels = (), amount: float = 1.0) -> None:
        """Add to the number."""
        with TALLY.lock:
            place = self.places.get(labels)
            if place is None:
                place = self.place(labels)
            TALLY.values[place] += amount


class Gauge(Metric):
    """A number that grows and falls; the sum over all processes that run."""

    kind = MetricKind.GAUGE

    def set(self, amount: float, labels: Labels = ()) -> None:
        """Replace the number of this process."""
        with TALLY.lock:
            place = self.place(labels)
            TALLY.values[place] = amount

    def begin(self, slot: ProcessSlot) -> None:
        """Forget what the process said that had the slot before."""
        name = self.name.encode()
        for key, place in slot.places.items():
            if key.partition(SEPARATOR)[0] == name:
                slot.values[place] = 0.0


class Record(Gauge):
    """Several gauges that one process knows and sets together, the first of them a time.

    The newest record counts. A record whose time is zero is none.
    """

    kind = MetricKind.RECORD

    def __init__(self, name: str, labels: Sequence[str], fields: Mapping[str, str]) -> None:
        super().__init__(name, "", labels)
        # The meaning of each gauge, by its name.
        self.fields = fields
        self.width = len(fields)

    def write(self, values: Sequence[float], labels: Labels) -> None:
        """Replace the record of this process."""
        with TALLY.lock:
            place = self.place(labels)
            # In one step, because other processes read it without a lock.
            TALLY.values[place : place + self.width] = memoryview(array("d", values))

    def forget(self, labels: Labels) -> None:
        """Have no record any more."""
        self.set(0.0, labels)


class Histogram(Metric):
    """How often a measured value was below each bound. The last value is the sum of all."""

    kind = MetricKind.HISTOGRAM

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> None:
        super().__init__(name, meaning, labels)
        self.bounds = tuple(bounds)
        # One number for each bound, one for values above the last bound, and the sum.
        self.width = len(self.bounds) + 2

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Count one value."""
        with TALLY.lock:
            place = self.place(labels)
            values = TALLY.values
            values[place + bisect_left(self.bounds, value)] += 1.0
            values[place + self.width - 1] += value
