"""The text form of Prometheus, and the families of a scrape: counts and uses of all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from roost.metrics.catalogue import COUNTED, SMALLEST
from roost.metrics.counting import (
    SEPARATOR,
    TALLY,
    Histogram,
    Labels,
    Metric,
    MetricKind,
    Record,
)
from roost.metrics.memory import SlotContent
from roost.metrics.processes import ProcessFacts, open_files, process_facts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one metric."""

    name: str
    kind: MetricKind
    meaning: str
    labels: tuple[str, ...] = ()
    # The values by label: one value, or those of a histogram.
    samples: dict[Labels, list[float]] = field(default_factory=dict)
    # The bounds of a histogram.
    bounds: Sequence[float] = ()


def render(families: Iterable[Family]) -> bytes:
    """The text of all families."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_in_line(family.meaning)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, values in sorted(family.samples.items()):
            pairs = [
                f'{name}="{quoted(value)}"'
                for name, value in zip(family.labels, labels, strict=True)
            ]
            if family.kind is MetricKind.HISTOGRAM:
                lines += _histogram_lines(family, pairs, values)
            else:
                lines.append(f"{family.name}{_braced(pairs)} {number(values[0])}")
    return ("\n".join(lines) + "\n").encode()


def _histogram_lines(family: Family, pairs: list[str], values: list[float]) -> list[str]:
    *counts, total = values
    bounds = [f'le="{bound}"' for bound in (*map(number, family.bounds), "+Inf")]
    sums = list(accumulate(counts))
    lines = [
        f"{family.name}_bucket{_braced([*pairs, bound])} {number(below)}"
        for bound, below in zip(bounds, sums, strict=True)
    ]
    return [
        *lines,
        f"{family.name}_sum{_braced(pairs)} {number(total)}",
        f"{family.name}_count{_braced(pairs)} {number(sums[-1])}",
    ]


def number(value: float) -> str:
    """A number as Prometheus reads it.

    >>> number(3.0), number(0.0005), number(1e30)
    ('3', '0.0005', '1e+30')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def quoted(value: str) -> str:
    """The value of a label, without the quotes around it."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _in_line(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def counted_families() -> list[Family]:
    """What all processes have counted together, and what each running process uses."""
    slots = list(TALLY.memory.read())
    families = {metric.name: _family(metric) for metric in COUNTED}
    for slot in slots:
        for key, values in slot.values.items():
            name, *labels = key.decode().split(SEPARATOR.decode())
            family = families.get(name)
            # A worker of an earlier version may have counted what this one does not know.
            if family is not None and len(labels) == len(family.labels):
                _add(family, tuple(labels), values, slot)
    for metric in COUNTED:
        if isinstance(metric, Record):
            families |= _fields(metric, families.pop(metric.name))
    return [*families.values(), *_process_families([slot for slot in slots if slot.serves])]


def _family(metric: Metric) -> Family:
    bounds = metric.bounds if isinstance(metric, Histogram) else ()
    family = Family(metric.name, metric.kind, metric.meaning, metric.labels, bounds=bounds)
    if (
        not metric.labels
        and metric.kind is not MetricKind.HISTOGRAM
        and metric.name not in SMALLEST
    ):
        # A rate needs a zero before the first count.
        family.samples[()] = [0.0]
    return family


def _fields(record: Record, found: Family) -> dict[str, Family]:
    """A family for each gauge of a record."""
    return {
        name: Family(
            name,
            MetricKind.GAUGE,
            meaning,
            record.labels,
            {labels: [values[position]] for labels, values in found.samples.items()},
        )
        for position, (name, meaning) in enumerate(record.fields.items())
    }


def _add(family: Family, labels: Labels, values: Sequence[float], slot: SlotContent) -> None:
    if family.kind in (MetricKind.GAUGE, MetricKind.RECORD) and not slot.is_alive:
        return
    known = family.samples.get(labels)
    if family.kind is MetricKind.RECORD:
        if values[0] > (0.0 if known is None else known[0]):
            family.samples[labels] = list(values)
        return
    if known is None or len(known) != len(values):
        if family.name not in SMALLEST or values[0]:
            family.samples[labels] = list(values)
    elif family.name in SMALLEST:
        # Zero stands for a process that has no value yet.
        known[0] = min(known[0], values[0] or known[0])
    else:
        for index, value in enumerate(values):
            known[index] += value


def _process_families(slots: Sequence[SlotContent]) -> Iterable[Family]:
    running: dict[Labels, ProcessFacts] = {}
    files: dict[Labels, list[float]] = {}
    for slot in slots:
        facts = process_facts(slot.process_id) if slot.is_alive else None
        if facts is not None:
            labels = (str(slot.number),)
            running[labels] = facts
            opened = open_files(slot.process_id)
            if opened is not None:
                files[labels] = [float(opened)]

    def of_workers(
        name: str, kind: MetricKind, meaning: str, value: Callable[[ProcessFacts], float]
    ) -> Family:
        samples = {labels: [float(value(facts))] for labels, facts in running.items()}
        return Family(name, kind, meaning, ("worker",), samples)

    yield Family(
        "roost_workers",
        MetricKind.GAUGE,
        "Processes that answer requests.",
        samples={(): [float(len(running))]},
    )
    yield of_workers(
        "roost_worker_cpu_seconds_total",
        MetricKind.COUNTER,
        "CPU time of a worker, of user and system.",
        lambda facts: facts.cpu_seconds,
    )
    yield of_workers(
        "roost_worker_resident_memory_bytes",
        MetricKind.GAUGE,
        "Resident memory of a worker.",
        lambda facts: facts.resident_bytes,
    )
    yield of_workers(
        "roost_worker_start_time_seconds",
        MetricKind.GAUGE,
        "When a worker started, in seconds since 1970.",
        lambda facts: facts.started_at,
    )
    yield of_workers(
        "roost_worker_threads",
        MetricKind.GAUGE,
        "Threads of a worker, of any kind.",
        lambda facts: facts.threads,
    )
    yield Family(
        "roost_worker_open_files",
        MetricKind.GAUGE,
        "Files and sockets that a worker has open.",
        ("worker",),
        files,
    )
