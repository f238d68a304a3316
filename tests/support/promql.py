"""The selectors in a query of Prometheus: which metrics and which labels it names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"\b((?:roost|openstack_placement)_\w+|up)\b(?:\s*\{([^}]*)\})?")
_GROUPING = re.compile(r"\b(?:by|without|ignoring|on)\s*\(([^)]*)\)")


@dataclass(frozen=True)
class Selectors:
    """What a query names: labels by metric, and labels by which it groups."""

    metrics: dict[str, set[str]] = field(default_factory=dict)
    groupings: set[str] = field(default_factory=set)


def selectors_of(query: str) -> Selectors:
    """The selectors of a query.

    >>> selectors_of('sum by (a) (rate(roost_x{b=~"c"}[5m]))').metrics
    {'roost_x': {'b'}}
    """
    plain = _STRING.sub('""', query)
    found = Selectors()
    for name, matchers in _SELECTOR.findall(plain):
        labels = {part.split("=")[0].rstrip("!~ ").strip() for part in matchers.split(",") if part}
        found.metrics.setdefault(name, set()).update(labels)
    for names in _GROUPING.findall(plain):
        found.groupings.update(name.strip() for name in names.split(","))
    return found
