"""The gate of SQLite's writers: threads and processes pass in the order of their arrival."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roost.store import database as database_module
from roost.store.database import Database, DatabaseOptions
from roost.store.errors import Busy
from roost.store.write_gate import WriteGate
from support.store import write_gate_program

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes that wait at the gate, and ends them after the test."""
    started: list[subprocess.Popen[str]] = []

    def run(name: str, threads: int = 1, passes: int = 0) -> subprocess.Popen[str]:
        paths = (str(tmp_path / "db-writer"), str(tmp_path / "log"))
        command = [
            sys.executable,
            write_gate_program.__file__,
            *paths,
            name,
            str(threads),
            str(passes),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert next(_lines(process)) == "waiting"
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[WriteGate]:
    gate = WriteGate(str(tmp_path / "db-writer"), 30)
    yield gate
    gate.close()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    return (line.strip() for line in process.stdout)


def test_threads_pass_in_the_order_of_their_arrival(gate: WriteGate) -> None:
    order: list[int] = []

    def enter(index: int) -> None:
        with gate.passed():
            order.append(index)

    threads = [threading.Thread(target=enter, args=(index,)) for index in range(12)]
    with gate.passed():
        for thread in threads:
            thread.start()
            time.sleep(0.03)
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_a_process_with_one_writer_gets_its_share_beside_one_with_many(
    gate: WriteGate, start: Start, tmp_path: Path
) -> None:
    # Both processes wait at the gate before either of them passes.
    with gate.passed():
        many = start("m", threads=8, passes=60)
        one = start("1", threads=1, passes=30)
    assert (one.wait(60), many.wait(60)) == (0, 0)
    log = (tmp_path / "log").read_text()
    # While both processes wrote, all nine writers passed about equally often.
    together = log[log.index("1") : min(log.rindex("1"), log.rindex("m"))]
    assert 4 <= together.count("m") / together.count("1") <= 12


def test_a_killed_process_blocks_no_other_process(gate: WriteGate, start: Start) -> None:
    inside = start("inside")
    assert next(_lines(inside)) == "inside"
    waiting = start("waiting")
    for process in (waiting, inside):
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with gate.passed(time.monotonic() + 20):
        pass


def test_a_stopped_waiter_is_overtaken_and_passes_when_it_continues(
    gate: WriteGate, start: Start
) -> None:
    with gate.passed():
        sleeper = start("sleeper")
        time.sleep(0.3)
        os.kill(sleeper.pid, signal.SIGSTOP)
    for _ in range(3):
        with gate.passed(time.monotonic() + 20):
            os.kill(sleeper.pid, signal.SIGCONT)
            time.sleep(0.2)
            os.kill(sleeper.pid, signal.SIGSTOP)
    os.kill(sleeper.pid, signal.SIGCONT)
    assert next(_lines(sleeper)) == "inside"


def test_a_gate_opens_a_file_that_replaced_its_own(
    gate: WriteGate, start: Start, tmp_path: Path
) -> None:
    with gate.passed():
        pass
    file = tmp_path / "db-writer"
    file.unlink()
    time.sleep(1.1)
    with gate.passed():
        start("other")
        time.sleep(0.3)
        assert file.exists()
    with pytest.raises(Busy), gate.passed(time.monotonic() + 0.5):
        pass


def test_the_time_of_a_write_includes_its_wait_at_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    database = Database(DatabaseOptions(url=f"sqlite:///{path}"))
    monkeypatch.setattr(database_module, "WRITE_SECONDS_MAX", 0.5)
    other = WriteGate(f"{path}-writer", 10)
    began = time.monotonic()
    with other.passed(), pytest.raises(Busy):
        database.write(lambda _connection: None)
    assert 0.5 <= time.monotonic() - began < 10
    other.close()
    database.close()
