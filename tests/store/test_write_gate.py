"""The gate of SQLite's writers: threads and processes pass in the order of their arrival."""

from __future__ import annotations

import errno
import fcntl
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
from roost.store.connections.errors import Busy, DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.databases.sqlite import write_gate
from roost.store.databases.sqlite.write_gate import WriteGate
from support.api_client import ApiClient
from support.roost_command import roost
from support.store import write_gate_program
from support.waiting import SECONDS_MAX, wait_until_blocked

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
    gate = WriteGate(str(tmp_path / "db-writer"), SECONDS_MAX)
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
            wait_until_blocked(thread)
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_a_process_with_one_writer_gets_its_share_beside_one_with_many(
    gate: WriteGate, start: Start, tmp_path: Path
) -> None:
    # Both processes wait at the gate before either of them passes.
    with gate.passed():
        many = start("m", threads=8, passes=20)
        one = start("1", threads=1, passes=10)
    assert (one.wait(SECONDS_MAX), many.wait(SECONDS_MAX)) == (0, 0)
    log = (tmp_path / "log").read_text()
    # While both processes wrote, eight writers passed about eight times as often as one. A busy
    # machine may delay the one.
    together = log[log.index("1") : min(log.rindex("1"), log.rindex("m"))]
    assert together.count("m") / together.count("1") <= 3 * 8


def test_a_killed_process_blocks_no_other_process(gate: WriteGate, start: Start) -> None:
    inside = start("inside")
    assert next(_lines(inside)) == "inside"
    waiting = start("waiting")
    for process in (waiting, inside):
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with gate.passed():
        pass


def test_a_stopped_waiter_is_overtaken_and_passes_when_it_continues(
    gate: WriteGate, start: Start
) -> None:
    with gate.passed():
        sleeper = start("sleeper")
        time.sleep(0.3)
        os.kill(sleeper.pid, signal.SIGSTOP)
    for _ in range(3):
        with gate.passed():
            os.kill(sleeper.pid, signal.SIGCONT)
            time.sleep(0.2)
            os.kill(sleeper.pid, signal.SIGSTOP)
    os.kill(sleeper.pid, signal.SIGCONT)
    assert next(_lines(sleeper)) == "inside"


def test_a_gate_opens_a_file_that_replaced_its_own(
    gate: WriteGate, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_gate, "_LOOK_AT_FILE_SECONDS", 0)
    with gate.passed():
        pass
    file = tmp_path / "db-writer"
    file.unlink()
    with gate.passed():
        other = start("other")
        assert file.exists()
    assert next(_lines(other)) == "inside"
    with pytest.raises(Busy), gate.passed(time.monotonic() + 0.1):
        pass


def test_the_time_of_a_write_includes_its_wait_at_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    database = Database(DatabaseOptions(url=f"sqlite:///{path}"))
    monkeypatch.setattr(database_module, "WRITE_SECONDS_MAX", 0.1)
    # Only the time of the write ends the wait: the gate itself is patient.
    monkeypatch.setattr(database, "write_gate", WriteGate(f"{path}-writer", 3600))
    other = WriteGate(f"{path}-writer", SECONDS_MAX)
    with other.passed(), pytest.raises(Busy):
        database.write_at_once(lambda _connection: None)
    other.close()
    database.close()


# What `fcntl` raises where a file system has no locks of open files.
NO_LOCKS = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EIO)


class Locks:
    """The locks of a file system, of which the test replaces some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fcntl = fcntl.fcntl
        self.error: int | None = None
        self.only_unlocking = False
        self.have_no_effect = False
        monkeypatch.setattr(fcntl, "fcntl", self.call)

    def call(self, file: int, command: int, argument: bytes = b"") -> object:
        is_lock = command in (fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK)
        unlocks = is_lock and argument[:2] == fcntl.F_UNLCK.to_bytes(2, sys.byteorder)
        if is_lock and self.error is not None and unlocks >= self.only_unlocking:
            raise OSError(self.error, os.strerror(self.error))
        if is_lock and self.have_no_effect:
            return argument
        return self._fcntl(file, command, argument)


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    return Locks(monkeypatch)


@pytest.mark.parametrize("error", [*NO_LOCKS, errno.EAGAIN, errno.EACCES])
def test_a_file_system_without_locks_ends_the_start_with_a_sentence(
    tmp_path: Path, locks: Locks, error: int
) -> None:
    locks.error = error
    result = roost("db", "sync", "--db", f"sqlite:///{tmp_path / 'db'}")
    assert result.status == 1
    reason = os.strerror(error) if error in NO_LOCKS else "every byte is locked"
    assert f"db-writer cannot be locked: {reason}. " in result.err
    assert "Put the database on a local disk" in result.err
    assert "Traceback" not in result.err


def test_locks_without_effect_end_the_start_with_a_sentence(tmp_path: Path, locks: Locks) -> None:
    locks.have_no_effect = True
    result = roost("db", "sync", "--db", f"sqlite:///{tmp_path / 'db'}")
    assert result.status == 1
    assert "db-writer cannot be locked: its locks keep no process out." in result.err


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("error", [*NO_LOCKS, errno.EAGAIN])
def test_a_write_whose_locks_fail_is_503_and_blocks_no_later_write(
    api: ApiClient, locks: Locks, error: int
) -> None:
    body = {"name": "locked", "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e"}
    locks.error = error
    answer = api.post("/resource_providers", body)
    assert answer.status == 503
    assert "The database cannot be used at the moment. Nothing was written." in answer.detail
    locks.error = None
    assert api.post("/resource_providers", body).status == 200


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_write_whose_lock_cannot_be_freed_is_done_and_blocks_no_later_write(
    api: ApiClient, locks: Locks
) -> None:
    locks.error, locks.only_unlocking = errno.ENOLCK, True
    first = {"name": "first", "uuid": "7d444840-9dc0-11d1-b245-5ffdce74fad2"}
    assert api.post("/resource_providers", first).status == 200
    second = {"name": "second", "uuid": "6fa459ea-ee8a-3ca4-894e-db77e160355e"}
    assert api.post("/resource_providers", second).status == 200


def test_a_waiter_whose_lock_fails_leaves_the_queue(gate: WriteGate, locks: Locks) -> None:
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            with gate.passed():
                pass
        except DatabaseUnusable as error:
            failures.append(error)

    thread = threading.Thread(target=enter)
    with gate.passed():
        locks.error = errno.ENOLCK
        thread.start()
        thread.join(SECONDS_MAX)
    assert len(failures) == 1
    locks.error = None
    with gate.passed(time.monotonic() + SECONDS_MAX):
        pass
