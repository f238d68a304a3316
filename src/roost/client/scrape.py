"""A scrape: the samples in a text of Prometheus. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?')
_ESCAPE = re.compile(r"\\(.)")

LabelPairs: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scrape:
    """The values of all series at one moment: by name, then by labels."""

    moment: float
    series: Mapping[str, Mapping[LabelPairs, float]]

    @classmethod
    def of(cls, text: str, moment: float) -> Scrape:
        """Read a text; lines that are no samples are ignored.

        >>> Scrape.of('up{job="a b"} 1\\nup 2\\n', 0.0).series
        {'up': {(('job', 'a b'),): 1.0, (): 2.0}}
        """
        series: dict[str, dict[LabelPairs, float]] = {}
        for line in text.splitlines():
            found = None if line.startswith("#") else _SAMPLE.fullmatch(line)
            if found is None:
                continue
            name, labels, value = found.groups()
            try:
                number = float(value)
            except ValueError:
                continue
            series.setdefault(name, {})[_pairs(labels or "")] = number
        return cls(moment, series)

    def samples(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        """The labels and the value of each series of this name."""
        for pairs, value in self.series.get(name, {}).items():
            yield dict(pairs), value

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of this name that have these labels."""
        wanted = labels.items()
        return sum(value for found, value in self.samples(name) if wanted <= found.items())


def _pairs(text: str) -> LabelPairs:
    return tuple((name, _ESCAPE.sub(_unescaped, value)) for name, value in _LABEL.findall(text))


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
