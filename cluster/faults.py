"""Faults under load, and what each of them may cost."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from http_client import Records, Sent
from node import Node
from support.servers.haproxy import Haproxy

_SLOW_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a server, and whether requests in flight may fail."""

    name: str
    happen: Callable[[Node], float]
    """Makes it happen, and returns when the processes were gone."""
    may_fail: bool
    stops_the_server: bool = True


FAULTS = (
    Fault("server killed (SIGKILL)", Node.kill, may_fail=True),
    Fault("server stopped (SIGTERM)", Node.terminate, may_fail=False),
    Fault("worker killed (SIGKILL)", Node.kill_worker, may_fail=True, stops_the_server=False),
)


@dataclass
class Outcome:
    """The figures of one fault."""

    fault: str
    in_flight: int
    failed_reads: int
    failed_writes: int
    # Failures of requests that were sent after the processes had gone.
    failed_later: int
    noticed_seconds: float | None
    rate_before: float
    rate_during: float
    rate_after: float
    median_before: float
    median_during: float
    slow: int
    slowest: float
    problems: list[str]

    def figures(self) -> dict[str, str]:
        """The figures as texts, by name."""
        noticed = self.noticed_seconds
        return {
            "requests in flight at the fault": str(self.in_flight),
            "failed reads": str(self.failed_reads),
            "failed writes": str(self.failed_writes),
            "failed, but sent after it": str(self.failed_later),
            "seconds until haproxy leaves it out": "-" if noticed is None else f"{noticed:.2f}",
            "requests/s before": f"{self.rate_before:.0f}",
            "requests/s during": f"{self.rate_during:.0f}",
            "requests/s after": f"{self.rate_after:.0f}",
            "median ms before": f"{1000 * self.median_before:.1f}",
            "median ms during": f"{1000 * self.median_during:.1f}",
            f"requests above {_SLOW_SECONDS} s": str(self.slow),
            "slowest ms": f"{1000 * self.slowest:.0f}",
        }


def watch_fault(
    fault: Fault, node: Node, proxy: Haproxy, records: Records, seconds: float
) -> Outcome:
    """Let a fault happen under load, start what it ended again, and take the figures."""
    begin = time.monotonic()
    time.sleep(seconds)
    moment = time.monotonic()
    in_flight = len(records.waiting)
    with ThreadPoolExecutor(1) as watching:
        noticing = None
        if fault.stops_the_server:
            noticing = watching.submit(proxy.wait_for, node.name, up=False)
        gone = fault.happen(node)
    noticed = None if noticing is None else noticing.result() - moment
    time.sleep(seconds)
    restart = time.monotonic()
    if fault.stops_the_server:
        node.start()
        proxy.wait_for(node.name, up=True)
    back = time.monotonic()
    time.sleep(seconds)
    end = time.monotonic()
    failed = [one for one in records.between(moment, end) if one.failed]
    before, during = records.between(begin, moment), records.between(moment, restart)
    after = records.between(back, end)
    return Outcome(
        fault=fault.name,
        in_flight=in_flight,
        failed_reads=sum(not one.is_write for one in failed),
        failed_writes=sum(one.is_write for one in failed),
        failed_later=sum(one.began > gone for one in failed),
        noticed_seconds=noticed,
        rate_before=len(before) / (moment - begin),
        rate_during=len(during) / (restart - moment),
        rate_after=len(after) / (end - back),
        median_before=_median(before),
        median_during=_median(during),
        slow=sum(one.ended - one.began > _SLOW_SECONDS for one in (*during, *after)),
        slowest=max((one.ended - one.began for one in (*during, *after)), default=0.0),
        problems=[f"{one.method} {one.status} {one.problem[:160]}" for one in failed],
    )


def complaints(fault: Fault, outcome: Outcome) -> list[str]:
    """What the outcome has that this fault must not have."""
    found = []
    failed = outcome.failed_reads + outcome.failed_writes
    if outcome.failed_later:
        found.append(f"{fault.name}: {outcome.failed_later} requests failed that came later")
    if failed and not fault.may_fail:
        found.append(f"{fault.name}: {failed} requests failed: {outcome.problems[:5]}")
    return found


def _median(sent: list[Sent]) -> float:
    return statistics.median([one.ended - one.began for one in sent]) if sent else 0.0
