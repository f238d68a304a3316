"""The text form of Prometheus: families of samples, written out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from roost.metrics.counting import Labels, MetricKind

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
                f'{name}="{_quoted(value)}"'
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


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _in_line(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
