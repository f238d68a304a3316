"""Counts of several processes in one memory: none is lost, whatever process dies."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roost.metrics import counting
from roost.metrics.catalogue import CLAIMS, CONFLICTS, DURATION, IN_FLIGHT, LAST_LOOK, QUERY_FIGURES
from roost.metrics.counting import TALLY
from roost.metrics.exposition import Family, counted_families, render
from roost.metrics.memory import SLOT_BYTES, SharedMemory
from roost.metrics.processes import process_namespace

# Later versions of Python warn of forks, because other threads may hold locks.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def _own_memory() -> Iterator[None]:
    """No count of other tests."""
    TALLY.open_own()
    yield
    TALLY.open_own()


def family(name: str) -> Family:
    (found,) = [one for one in counted_families() if one.name == name]
    return found


def in_child(work: Callable[[], None], *, killed: bool = False) -> None:
    """Do the work in a forked process, which then ends or is killed."""
    child = os.fork()
    if not child:
        try:
            work()
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_counts_of_all_processes_are_added() -> None:
    CLAIMS.count(("claimed",), 2)
    in_child(lambda: CLAIMS.count(("claimed",), 3))
    in_child(lambda: CLAIMS.count(("released",)))
    assert family(CLAIMS.name).samples == {("claimed",): [5.0], ("released",): [1.0]}


def test_a_process_that_is_killed_loses_no_count_and_leaves_no_gauge() -> None:
    def work() -> None:
        CLAIMS.count(("claimed",))
        DURATION.observe(0.2, ("/", "GET"))
        IN_FLIGHT.set(7)

    for _ in range(3):
        in_child(work, killed=True)
    assert family(CLAIMS.name).samples == {("claimed",): [3.0]}
    assert sum(family(DURATION.name).samples["/", "GET"][:-1]) == 3
    assert family(IN_FLIGHT.name).samples == {(): [0.0]}


def test_the_next_process_takes_the_slot_of_one_that_has_ended() -> None:
    for _ in range(20):
        in_child(lambda: CONFLICTS.count(("capacity",)))
    assert len(list(TALLY.memory.read())) == 1
    assert family(CONFLICTS.name).samples == {("capacity",): [20.0]}


def test_a_process_that_takes_a_slot_begins_without_the_gauges_of_the_last() -> None:
    in_child(lambda: IN_FLIGHT.set(5))

    def work() -> None:
        CLAIMS.count(("claimed",))
        samples = family(IN_FLIGHT.name).samples
        CLAIMS.count(("in flight",), samples[()][0])

    in_child(work)
    assert family(CLAIMS.name).samples["in flight",] == [0.0]


def test_the_age_of_the_journal_is_that_of_the_process_that_is_most_behind() -> None:
    LAST_LOOK.set(50.0)
    seen, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        LAST_LOOK.set(20.0)
        os.write(seen[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    os.read(seen[0], 1)
    assert family(LAST_LOOK.name).samples == {(): [20.0]}
    os.write(done[1], b".")
    os.waitpid(child, 0)
    assert family(LAST_LOOK.name).samples == {(): [50.0]}


def test_threads_lose_no_count() -> None:
    def work() -> None:
        for _ in range(5000):
            CLAIMS.count(("claimed",))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert family(CLAIMS.name).samples["claimed",] == [20_000.0]


def test_a_fork_of_which_python_does_not_hear_is_noticed() -> None:
    """uwsgi forks its workers like this, after it has loaded the application."""
    CLAIMS.count(("claimed",))
    fork = ctypes.PyDLL(None).fork
    for _ in range(2):
        child = fork()
        if not child:
            TALLY.ensure()
            CONFLICTS.count(("capacity",))
            os._exit(0)
        os.waitpid(child, 0)
    CONFLICTS.count(("amount",))
    assert family(CLAIMS.name).samples == {("claimed",): [1.0]}
    assert family(CONFLICTS.name).samples == {("capacity",): [2.0], ("amount",): [1.0]}


def test_a_fork_while_another_thread_counts_leaves_the_child_able_to_count() -> None:
    with TALLY.lock:
        in_child(lambda: CLAIMS.count(("claimed",)))
    assert family(CLAIMS.name).samples == {("claimed",): [1.0]}


def test_a_full_slot_drops_further_labels_and_keeps_what_it_has() -> None:
    for number in range(SLOT_BYTES // 500):
        CONFLICTS.count((f"{number:0500}",))
    CLAIMS.count(("claimed",))
    samples = family(CONFLICTS.name).samples
    assert 1000 < len(samples) < SLOT_BYTES // 500
    assert set(map(tuple, samples.values())) == {(1.0,)}
    assert len(render(counted_families())) < 2 * SLOT_BYTES


def test_workers_that_load_the_application_themselves_share_by_their_parent() -> None:
    """As workers of gunicorn, and of uwsgi with lazy-apps."""

    def work() -> None:
        counting.TALLY._memory = SharedMemory.of_server()
        CLAIMS.count(("claimed",))
        samples = family(CLAIMS.name).samples
        os._exit(int(samples["claimed",][0]))

    counts = []
    for _ in range(2):
        child = os.fork()
        if not child:
            work()
        counts.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for path in Path("/dev/shm").glob(
        f"roost-metrics-{os.getuid()}-{process_namespace()}-{os.getpid()}-*"
    ):
        path.unlink()
    assert counts == [1, 2]


def test_the_files_of_servers_that_have_ended_are_removed() -> None:
    path = Path(f"/dev/shm/roost-metrics-{os.getuid()}-{process_namespace()}-{os.getpid()}-1")
    path.touch()

    def work() -> None:
        SharedMemory.of_server()

    in_child(work)
    remains = list(
        Path("/dev/shm").glob(f"roost-metrics-{os.getuid()}-{process_namespace()}-{os.getpid()}-*")
    )
    assert path not in remains
    for own in remains:
        own.unlink()


def test_the_file_of_a_server_in_another_container_stays() -> None:
    """Containers with one `/dev/shm` give the same process ids to different processes."""
    another = process_namespace() + 1
    path = Path(f"/dev/shm/roost-metrics-{os.getuid()}-{another}-{os.getpid()}-1")
    path.touch()

    def work() -> None:
        SharedMemory.of_server()

    try:
        in_child(work)
        assert path.exists()
    finally:
        path.unlink(missing_ok=True)
        for own in Path("/dev/shm").glob(
            f"roost-metrics-{os.getuid()}-{process_namespace()}-{os.getpid()}-*"
        ):
            own.unlink()


def test_an_increment_costs_little() -> None:
    """A request adds about ten numbers, and may spend some microseconds on them."""
    costs = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(10_000):
            CLAIMS.count(("claimed",))
        costs.append((time.process_time() - began) / 10_000)
    assert min(costs) < 5e-6


def test_one_process_leads_until_it_ends() -> None:
    answers, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.write(answers[1], b"y" if TALLY.memory.may_lead() else b"n")
        # A slot that another process takes meanwhile changes nothing.
        CLAIMS.count(("claimed",))
        os.read(done[0], 1)
        os._exit(0)
    assert os.read(answers[0], 1) == b"y"
    assert not TALLY.memory.may_lead()
    CLAIMS.count(("claimed",))
    assert not TALLY.memory.may_lead()
    os.write(done[1], b".")
    os.waitpid(child, 0)
    assert TALLY.memory.may_lead()
    assert TALLY.memory.may_lead()


def test_the_newest_record_of_a_running_process_counts() -> None:
    names = ("roost_fits_timestamp_seconds", "roost_fits", "roost_fits_at_most", "roost_feasible")

    def shown() -> list[float]:
        return [value for name in names for value in family(name).samples.get(("small",), [])]

    in_child(lambda: QUERY_FIGURES.write((90.0, 1, 1, 1), ("small",)))
    assert shown() == []
    QUERY_FIGURES.write((50.0, 7, 9, 1), ("small",))
    assert shown() == [50.0, 7.0, 9.0, 1.0]
    QUERY_FIGURES.write((60.0, 0, 0, 0), ("small",))
    assert shown() == [60.0, 0.0, 0.0, 0.0]
    QUERY_FIGURES.forget(("small",))
    assert shown() == []
