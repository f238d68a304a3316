"""Writers of one process that wait for each other share a COMMIT, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.store.connections.errors import Retry, WriteRefused
from roost.store.database import Database
from roost.store.tables import projects
from support.simultaneous_processes import run_together
from support.waiting import SECONDS_MAX, wait_until_blocked

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

WRITERS = 6


def insert(connection: Connection, name: str) -> str:
    connection.execute(sa.insert(projects).values(external_id=name))
    return f"inserted {name}"


def stored(database: Database) -> set[str]:
    query = sa.select(projects.c.external_id)
    return set(database.read(lambda connection: connection.execute(query).scalars().all()))


class Together:
    """Writers that all wait while the first one is at work, so that they share its COMMIT."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._first_is_inside = threading.Event()
        self._may_go = threading.Event()
        self.results: dict[str, Any] = {}

    def run(self, first: Callable[[Connection], Any], *others: Callable[[Connection], Any]) -> None:
        """Do all works. `results` has, by number, what each returned or raised."""

        def begin(connection: Connection) -> Any:
            self._first_is_inside.set()
            assert self._may_go.wait(SECONDS_MAX)
            return first(connection)

        threads = [threading.Thread(target=self._write, args=("0", begin))]
        threads[0].start()
        assert self._first_is_inside.wait(SECONDS_MAX)
        for number, work in enumerate(others, 1):
            threads.append(threading.Thread(target=self._write, args=(str(number), work)))
            threads[-1].start()
            # So the order of the works is known.
            wait_until_blocked(threads[-1])
        self._may_go.set()
        for thread in threads:
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()

    def _write(self, name: str, work: Callable[[Connection], Any]) -> None:
        try:
            self.results[name] = self._database.write_at_once(work)
        except Exception as error:
            self.results[name] = error


@contextmanager
def counted_commits(database: Database) -> Iterator[list[str]]:
    """The COMMITs of all writers in the block."""
    found: list[str] = []

    def note(dbapi_connection: Any, *_rest: Any) -> None:
        dbapi_connection.set_trace_callback(
            lambda text: found.append(text) if text.startswith("COMMIT") else None
        )

    database.release()
    event.listen(database.engine, "connect", note)
    try:
        yield found
    finally:
        event.remove(database.engine, "connect", note)
        database.release()


def test_waiting_writers_share_a_commit(database: Database) -> None:
    names = [f"share {number}" for number in range(WRITERS)]
    together = Together(database)
    with counted_commits(database) as commits:
        together.run(*(lambda connection, name=name: insert(connection, name) for name in names))
    assert together.results == {
        str(number): f"inserted {name}" for number, name in enumerate(names)
    }
    assert set(names) <= stored(database)
    assert len(commits) == 1


def test_a_refused_work_undoes_only_itself(database: Database) -> None:
    def refuse(connection: Connection) -> None:
        insert(connection, "refused")
        raise ValueError("refused")

    together = Together(database)
    together.run(
        lambda connection: insert(connection, "before"),
        refuse,
        lambda connection: insert(connection, "after"),
    )
    assert isinstance(together.results["1"], ValueError)
    assert {"before", "after"} <= stored(database)
    assert "refused" not in stored(database)


def test_a_refused_first_work_undoes_only_itself(database: Database) -> None:
    def refuse(connection: Connection) -> None:
        insert(connection, "refused first")
        raise ValueError("refused")

    together = Together(database)
    together.run(refuse, lambda connection: insert(connection, "after the first"))
    assert isinstance(together.results["0"], ValueError)
    assert "after the first" in stored(database)
    assert "refused first" not in stored(database)


def test_a_work_that_lost_a_race_runs_again(database: Database) -> None:
    attempts: list[int] = []

    def lose_once(connection: Connection) -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise Retry
        return insert(connection, "second attempt")

    together = Together(database)
    together.run(lambda connection: insert(connection, "winner"), lose_once)
    assert together.results["1"] == "inserted second attempt"
    assert {"winner", "second attempt"} <= stored(database)


def test_works_that_shared_a_failed_commit_write_alone(database: Database) -> None:
    """A refusal that rests on a work which is undone is decided again."""

    def take(connection: Connection, name: str) -> str:
        query = sa.select(projects.c.id).where(projects.c.external_id == "the only one")
        if connection.execute(query).first() is not None:
            return f"{name} is refused"
        return insert(connection, "the only one")

    fails = [True]

    def fail_once(connection: Connection) -> None:
        take(connection, "the first")
        if fails.pop():
            # SQLite ends the whole transaction after a full disk, too.
            connection.exec_driver_sql("ROLLBACK")
        fails.append(False)
        raise WriteRefused("database or disk is full")

    together = Together(database)
    together.run(
        lambda connection: insert(connection, "neighbour"),
        fail_once,
        lambda connection: take(connection, "the second"),
    )
    assert isinstance(together.results["1"], WriteRefused)
    assert together.results["0"] == "inserted neighbour"
    assert together.results["2"] == "inserted the only one"
    assert {"neighbour", "the only one"} <= stored(database)


def test_a_first_work_after_which_sqlite_ends_the_transaction_fails_with_its_error(
    database: Database,
) -> None:
    def fail(connection: Connection) -> None:
        # As after a full disk.
        connection.exec_driver_sql("ROLLBACK")
        raise ValueError("the cause")

    together = Together(database)
    together.run(fail, lambda connection: insert(connection, "after a lost transaction"))
    assert str(together.results["0"]) == "the cause"
    assert "after a lost transaction" in stored(database)


# Eight threads insert rows, each with a second row that belongs to it. The process prints the names
# that were acknowledged, and is killed while threads share a COMMIT.
KILLED = """
import os, signal, sys, threading, time
import sqlalchemy as sa
from roost.store.database import Database, DatabaseOptions
from roost.store.tables import projects, users

database = Database(DatabaseOptions(url=sys.argv[1]))
shared = []

@sa.event.listens_for(database.engine, "connect")
def watch(connection, record):
    connection.set_trace_callback(lambda text: shared.append("SAVEPOINT" in text))

def insert(connection, name):
    connection.execute(sa.insert(projects).values(external_id=name))
    connection.execute(sa.insert(users).values(external_id=name))

def write(thread):
    for number in range(10_000):
        name = f"{sys.argv[2]} {thread} {number}"
        database.write_at_once(insert, name)
        os.write(1, f"{name}\\n".encode())

def work():
    for thread in range(8):
        threading.Thread(target=write, args=(thread,), daemon=True).start()
    # If no COMMIT were shared, the writers would end.
    writers = [thread for thread in threading.enumerate() if thread.daemon]
    while sum(shared) < 50 and any(thread.is_alive() for thread in writers):
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGKILL if sum(shared) >= 50 else signal.SIGTERM)
"""


def test_acknowledged_works_survive_the_death_of_the_process(database: Database) -> None:
    [(status, output, _)] = run_together(KILLED, 1, str(database.options.url), "killed")
    assert status == -9, "no COMMIT was shared"
    acknowledged = set(output.splitlines())
    assert len(acknowledged) > 20
    found = stored(database)
    assert acknowledged <= found
    users = sa.text("SELECT external_id FROM users WHERE external_id LIKE 'killed%'")
    halves = database.read(lambda connection: set(connection.execute(users).scalars()))
    assert halves == {name for name in found if name.startswith("killed")}
