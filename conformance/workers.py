"""Worker processes, one for each file: a server, a world, the tests and their result."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from databases import Database
from server import Program, Server, ServerError
from suite import FileResult, SuiteFile
from world import World, WorldError
from worlds import FIXTURES

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """One file to be run on one database."""

    file: SuiteFile
    program: Program
    database: Database
    directory: Path


def run_jobs(jobs: Iterator[Job], limit: int, finished: Callable[[Job, FileResult], None]) -> None:
    """Run jobs, several at a time, and call `finished` for each.

    Each job has a process, because gabbi reads the variables of a test from os.environ.
    """
    running: dict[Connection, tuple[ForkProcess, Job]] = {}
    try:
        while True:
            while len(running) < limit and (job := next(jobs, None)) is not None:
                receiver, process = _start(job)
                running[receiver] = (process, job)
            if not running:
                return
            ready = wait(list(running))
            for receiver in [receiver for receiver in running if receiver in ready]:
                process, job = running[receiver]
                result = _receive(receiver, process, job)
                del running[receiver]
                finished(job, result)
    finally:
        # An interrupt or a defect of the runner leaves workers. Each worker stops its server.
        for process, _job in running.values():
            process.terminate()
        for process, _job in running.values():
            process.join()


def _start(job: Job) -> tuple[Connection, ForkProcess]:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_work, args=(job, sender), daemon=True)
    process.start()
    # The worker has the last copy of the sender, so any end of the worker is an end of file here.
    sender.close()
    return receiver, process


def _receive(receiver: Connection, process: ForkProcess, job: Job) -> FileResult:
    result: FileResult | None = None
    with receiver, suppress(EOFError):
        result = receiver.recv()
    process.join()
    return result or job.file.failed(f"the worker ended with exit code {process.exitcode}")


def _work(job: Job, sender: Connection) -> None:
    """Run in the worker: do the job and send its result."""
    # Ctrl-C reaches the whole process group, but the main process ends the workers.
    # The signal has a handler, because servers would inherit an ignored signal.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    _die_with_parent()
    with suppress(KeyboardInterrupt):
        sender.send(run_job(job))


def _die_with_parent() -> None:
    """Ask Linux for a SIGTERM when the main process is gone; other systems send none."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_job(job: Job) -> FileResult:
    """Start a server, fill its database as the file's fixture says, and run the tests."""
    started = time.monotonic()
    fixture = FIXTURES.get(job.file.fixture)
    if fixture is None:
        return job.file.failed(f"unknown fixture {job.file.fixture}")
    server = Server(job.program, job.database, job.directory, fixture.options, fixture.policy())
    try:
        with server:
            with World(server.url) as world:
                fixture.fill(world)
                world.verify()
            # gabbi's client would ask a proxy for a loopback address.
            os.environ.update(world.variables, NO_PROXY="*")
            result = job.file.run(server.port)
    except (ServerError, WorldError) as error:
        result = job.file.failed(f"{job.file.fixture}: {error}")
    if server.stopped_late:
        result.notes.append("SIGTERM did not stop the server, so the runner killed it")
    result.seconds = time.monotonic() - started
    return result
