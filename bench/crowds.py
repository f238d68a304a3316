"""Crowds: clients in processes of their own, which do a fixed number of jobs at once."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")

READY_SECONDS = 60
FINISH_SECONDS = 300
_FORK = multiprocessing.get_context("fork")


class CrowdFailed(Exception):
    """A client of a crowd could not do its jobs."""


@dataclass(frozen=True)
class Effort:
    """What the jobs of one turn cost."""

    jobs: int
    seconds: float
    client_cpu: float
    """Seconds of CPU of all clients."""
    server_cpu: float
    """Seconds of CPU of the server."""
    notes: int
    """The sum of what the jobs returned, such as repetitions."""

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds


def run_crowd(
    clients: int,
    connect: Callable[[], Callable[[T], int]],
    jobs: Sequence[T],
    warm_up: Sequence[T] = (),
    server_cpu: Callable[[], float] = lambda: 0.0,
) -> Effort:
    """Do all jobs, each by the client that is free, and return what they cost.

    Every client connects and does its share of `warm_up` before the clock starts. Clients are
    processes: threads of one process would share one core, whatever the server can do.
    """
    # The processes inherit jobs and functions, so nothing has to be copied.
    next_job = _FORK.Value("i", 0)
    start = _FORK.Barrier(clients + 1)
    receivers, processes = [], []
    for number in range(clients):
        receiver, sender = _FORK.Pipe(duplex=False)
        share = {"connect": connect, "jobs": jobs, "warm_up": warm_up[number::clients]}
        processes.append(
            _FORK.Process(target=_report, args=(sender, start, next_job), kwargs=share, daemon=True)
        )
        receivers.append(receiver)
    for process in processes:
        process.start()
    try:
        # A client that fails breaks the barrier, and its report says why.
        with suppress(threading.BrokenBarrierError):
            start.wait(READY_SECONDS)
        cpu_before, started = server_cpu(), time.monotonic()
        reports = _receive_all(receivers)
        server_used = server_cpu() - cpu_before
    finally:
        for process in processes:
            process.join(1)
            process.terminate()
    ended, used, notes = zip(*reports, strict=True)
    return Effort(len(jobs), max(ended) - started, sum(used), server_used, sum(notes))


def _receive_all(receivers: Sequence[Connection]) -> list[tuple[float, float, int]]:
    reports = []
    for receiver in receivers:
        if not receiver.poll(FINISH_SECONDS):
            raise CrowdFailed(f"a client did not finish in {FINISH_SECONDS} s")
        reports.append(receiver.recv())
    errors = {report for report in reports if isinstance(report, str)}
    if errors:
        raise CrowdFailed("; ".join(sorted(errors)))
    return reports


def _report(
    sender: Connection,
    start: Any,
    next_job: Any,
    *,
    connect: Callable[[], Callable[[T], int]],
    jobs: Sequence[T],
    warm_up: Sequence[T],
) -> None:
    """The life of one client: its last act is to send when it ended and what it used."""
    try:
        work = connect()
        for job in warm_up:
            work(job)
        start.wait(READY_SECONDS)
        cpu, notes = time.process_time(), 0
        while True:
            with next_job.get_lock():
                number = next_job.value
                next_job.value += 1
            if number >= len(jobs):
                break
            notes += work(jobs[number])
        sender.send((time.monotonic(), time.process_time() - cpu, notes))
    except threading.BrokenBarrierError:
        sender.send("the clients did not start together")
    except Exception as error:
        start.abort()
        sender.send(f"a client failed: {error!r}")
