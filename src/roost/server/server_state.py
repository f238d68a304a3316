"""The state of a worker's server, and the counts of what it has done, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roost.server.connection import Connection

# All labels of the gauge, so that a state without connections shows 0.
_STATES = ("idle", "reading", "answering", "writing", "lingering")


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a worker's server, and what it has done so far."""

    # How many connections are in each state.
    connections: Mapping[str, int]
    # How many threads answer, and how many are idle.
    threads: Mapping[str, int]
    accepted: int
    # Connections that were closed because new ones came.
    evicted: int
    # Requests that the application never saw, by status.
    refused: Mapping[int, int]


class ServerCounts:
    """What a server has done so far."""

    def __init__(self) -> None:
        self.accepted = 0
        self.evicted = 0
        self.refused: Counter[int] = Counter()

    def report(self, connections: Iterable[Connection], threads: int) -> ServerState:
        """The counts, and the present state of the connections."""
        states = Counter(dict.fromkeys(_STATES, 0))
        for connection in connections:
            states["idle" if connection.is_idle else connection.state.name.lower()] += 1
        busy = min(states["answering"], threads)
        return ServerState(
            connections=states,
            threads={"answering": busy, "idle": threads - busy},
            accepted=self.accepted,
            evicted=self.evicted,
            refused=dict(self.refused),
        )
