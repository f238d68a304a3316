"""The largest flow through a network, by Dinic's method.

The solver proves with it that a problem has no solution, and a capacity divides pools by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence

from roost.search.candidates.effort import Effort
from roost.search.candidates.solving.problem import LocalProvider


class Network:
    """Nodes and links with limits. The largest flow goes from one node to another."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        # For each node the links that leave it. Each link has a link back, at `number ^ 1`.
        self._links: list[list[int]] = []
        self._ends: list[int] = []
        self._left: list[int] = []

    def link(self, start: Hashable, end: Hashable, limit: int) -> None:
        """Let this much flow from one node to another."""
        for first, second, left in ((start, end, limit), (end, start, 0)):
            self._links[self._number(first)].append(len(self._ends))
            self._ends.append(self._number(second))
            self._left.append(left)

    def largest_flow(self, source: Hashable, sink: Hashable, effort: Effort) -> int | None:
        """How much can flow; `None` if the effort does not suffice.

        >>> network = Network()
        >>> for start, end, limit in (("a", "b", 5), ("b", "c", 3), ("a", "c", 1)):
        ...     network.link(start, end, limit)
        >>> network.largest_flow("a", "c", Effort())
        4
        """
        first, last = self._number(source), self._number(sink)
        total = 0
        while True:
            levels = self._levels(first, effort)
            if effort.exhausted:
                return None
            if levels[last] < 0:
                return total
            total += self._fill(first, last, levels, effort)

    def _number(self, node: Hashable) -> int:
        number = self._numbers.setdefault(node, len(self._numbers))
        if number == len(self._links):
            self._links.append([])
        return number

    def _levels(self, first: int, effort: Effort) -> list[int]:
        """How far each node is from the first one, along links with something left."""
        levels = [-1] * len(self._links)
        levels[first] = 0
        queue = deque([first])
        while queue:
            node = queue.popleft()
            effort.spend(1 + len(self._links[node]) // 4)
            for link in self._links[node]:
                end = self._ends[link]
                if self._left[link] > 0 and levels[end] < 0:
                    levels[end] = levels[node] + 1
                    queue.append(end)
        return levels

    def _fill(self, first: int, last: int, levels: list[int], effort: Effort) -> int:
        """Send along shortest paths until none is left; return how much was sent."""
        tried = [0] * len(self._links)
        path: list[int] = []
        node, sent = first, 0
        while True:
            effort.spend(1)
            if node == last:
                amount = min(self._left[link] for link in path)
                sent += amount
                for link in path:
                    self._left[link] -= amount
                    self._left[link ^ 1] += amount
                path, node = [], first
                continue
            links = self._links[node]
            while tried[node] < len(links):
                link = links[tried[node]]
                if self._left[link] > 0 and levels[self._ends[link]] == levels[node] + 1:
                    path.append(link)
                    node = self._ends[link]
                    break
                tried[node] += 1
            else:
                if not path:
                    return sent
                node = self._ends[path.pop() ^ 1]
                tried[node] += 1


def can_flow(
    amounts: Sequence[int],
    eligible: Sequence[Sequence[LocalProvider]],
    limits: Mapping[LocalProvider, int],
    effort: Effort,
) -> bool:
    """Whether each amount can be divided among its eligible providers within their limits.

    True, too, if the effort is exhausted before that is known.

    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2, 3)], {1: 1, 2: 1, 3: 1}, Effort())
    True
    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2,)], {1: 1, 2: 1}, Effort())
    False
    """
    if _flows_in_turn(amounts, eligible, limits):
        return True
    if sum(amounts) > sum(limits.values()):
        return False
    network = Network()
    for source, (amount, providers) in enumerate(zip(amounts, eligible, strict=True)):
        network.link("source", ("amount", source), amount)
        for provider in providers:
            network.link(("amount", source), provider, amount)
    for provider, limit in limits.items():
        network.link(provider, "sink", limit)
    flow = network.largest_flow("source", "sink", effort)
    return flow is None or flow == sum(amounts)


def _flows_in_turn(
    amounts: Sequence[int],
    eligible: Sequence[Sequence[LocalProvider]],
    limits: Mapping[LocalProvider, int],
) -> bool:
    """Whether each amount in turn fits into what the amounts before it have left, as usual."""
    left = dict(limits)
    for amount, providers in zip(amounts, eligible, strict=True):
        rest = amount
        for provider in providers:
            taken = max(0, min(rest, left[provider]))
            left[provider] -= taken
            rest -= taken
            if not rest:
                break
        if rest:
            return False
    return True
