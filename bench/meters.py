"""Meters: the CPU of a server per request."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from clouds import Cloud
from targets import Target

# The work of a server after the last byte of its answer belongs to the request.
SETTLE_SECONDS = 0.001

Work = Callable[[int], object]
"""Sends one request. Its argument is the number of requests before it."""


@dataclass
class Meter:
    """The costs of requests of one kind to one server, turn by turn."""

    target: Target
    requests: int = 0
    total_wall: float = 0.0
    _cpu: list[float] = field(default_factory=list)
    _wall: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        """CPU of the server for one request, in the median turn."""
        return statistics.median(self._cpu) * 1000

    @property
    def wall_milliseconds(self) -> float:
        """The time that the client waits for one request, in the median turn."""
        return statistics.median(self._wall) * 1000

    def run(self, work: Work, seconds: float, at_most: int = 100) -> None:
        """One turn: do the work once, and repeat it until the time is over."""
        end = time.monotonic() + seconds
        done = 0

        def whole_turn() -> None:
            nonlocal done
            while True:
                work(self.requests + done)
                done += 1
                if done >= at_most or time.monotonic() >= end:
                    break

        cpu, wall = self._measure(whole_turn)
        self._note(cpu, wall, done)

    def run_after(self, prepare: Work, work: Work, seconds: float, at_most: int = 100) -> None:
        """One turn, like `run`, with a preparation before each request that does not count."""
        end = time.monotonic() + seconds
        cpu = wall = 0.0
        for done in range(at_most):
            prepare(self.requests + done)
            time.sleep(SETTLE_SECONDS)
            one_cpu, one_wall = self._measure(partial(work, self.requests + done))
            cpu, wall = cpu + one_cpu, wall + one_wall
            if time.monotonic() >= end:
                break
        self._note(cpu, wall, done + 1)

    def _measure(self, work: Callable[[], object]) -> tuple[float, float]:
        """Do the work and return its seconds of CPU and of time."""
        before, started = self.target.cpu_seconds(), time.monotonic()
        work()
        wall = time.monotonic() - started
        time.sleep(SETTLE_SECONDS)
        return self.target.cpu_seconds() - before, wall

    def _note(self, cpu: float, wall: float, requests: int) -> None:
        self._cpu.append(cpu / requests)
        self._wall.append(wall / requests)
        self.requests += requests
        self.total_wall += wall


@dataclass
class Claims:
    """Claims that change the usage of all claimable providers in turn."""

    target: Target
    cloud: Cloud

    def claim(self, number: int) -> None:
        """Claim a small amount for a new consumer."""
        # The step is a prime: it reaches all hosts, but not in their order.
        provider, resources = self.cloud.claimable[number * 7919 % len(self.cloud.claimable)]
        self.target.request(
            "PUT", f"/allocations/{uuid.uuid4()}", claim_body({provider: resources})
        )


def claim_body(resources_by_provider: dict[str, dict[str, int]]) -> dict[str, object]:
    """The body of a claim for a new consumer."""
    return {
        "allocations": {
            provider: {"resources": resources}
            for provider, resources in resources_by_provider.items()
        },
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
