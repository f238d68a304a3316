"""Readers and writers of the change journal, and transactions for them."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.database import Database
from roost.store.databases.mysql.journal import MysqlPosition
from roost.store.journal.position import JournalEntry, Position, start_position
from roost.store.journal.pruning import prune_changes
from roost.store.journal.writing import ChangeKind, record_changes
from roost.store.tables import projects, roost_changes, roost_meta, utc_now
from roost.store.transaction import Transaction
from support.waiting import wait_until

Clock: TypeAlias = Callable[[], float]

# The threads of `Writers`.
WRITERS = 6


@contextmanager
def meta_restored(database: Database) -> Iterator[None]:
    """A context that restores the journal's own metadata at its end."""
    before = database.read(lambda connection: connection.execute(sa.select(roost_meta)).all())
    yield
    rows = [{"name": row.name, "value": row.value} for row in before]

    def restore(connection: Connection) -> None:
        connection.execute(sa.delete(roost_meta))
        connection.execute(sa.insert(roost_meta), rows)

    database.write_at_once(restore)


@contextmanager
def snapshot(database: Database) -> Iterator[Connection]:
    """A transaction that sees one state of the database throughout."""
    if database.engine.dialect.name == "sqlite":
        with database.reader.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")
        return
    with database.engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(database: Database) -> Iterator[Connection]:
    """A transaction that commits at its end, and that is never repeated."""
    with database.write_gate_passed(), database.engine.connect() as connection, connection.begin():
        yield connection


class _RolledBack(Exception):
    pass


@contextmanager
def rolled_back(database: Database) -> Iterator[Connection]:
    """A transaction that is rolled back."""
    with suppress(_RolledBack), writing(database) as connection:
        yield connection
        raise _RolledBack


def record(connection: Connection, *provider_ids: int) -> None:
    """Record that the usage of these providers changed."""
    part = Transaction(connection)
    record_changes(part, ChangeKind.USAGE, [(id_, str(uuid4())) for id_ in provider_ids])
    part.finish()


def insert_change(connection: Connection, /, **values: Any) -> None:
    """Insert a row with any values, past the checks of the service."""
    row = {"created_at": utc_now(), "kind": "usage"} | values
    connection.execute(sa.insert(roost_changes).values(row))


def ids(database: Database) -> list[int]:
    """The ids of all rows."""
    query = sa.select(roost_changes.c.id).order_by(roost_changes.c.id)
    return database.read(lambda connection: list(connection.scalars(query)))


def newest_id(database: Database) -> int:
    """The id of the newest row."""
    return ids(database)[-1]


def empty(database: Database) -> None:
    """Delete all rows, past the pruning of the service."""
    database.write_at_once(lambda connection: connection.execute(sa.delete(roost_changes)))


def never_pruned(database: Database) -> None:
    """Remove the record of earlier pruning, which other tests leave in the database."""
    record = sa.delete(roost_meta).where(roost_meta.c.name == "pruned")
    database.write_at_once(lambda connection: connection.execute(record))


def prune(database: Database, limit: int = 1000) -> int:
    """Delete all rows that pruning may delete, of any age. Returns their number."""
    settle(database)
    return database.write_at_once(prune_changes, utc_now() + timedelta(hours=1), limit)


def settle(database: Database) -> None:
    """Wait for the end of all transactions that run now, in all processes."""
    if database.engine.dialect.name != "postgresql":
        return
    query = "SELECT txid_snapshot_{}(txid_current_snapshot())"

    def ask(edge: str) -> int:
        text = query.format(edge)
        found: int = database.read(lambda connection: connection.exec_driver_sql(text).scalar_one())
        return found

    end = ask("xmax")
    wait_until(lambda: ask("xmin") >= end)


def start(database: Database, clock: Clock = time.monotonic) -> Position:
    """The position of a reader that has read all rows; `clock` tells it how old a gap is."""
    return database.snapshot(start_by, clock)


def start_by(connection: Connection, clock: Clock) -> Position:
    """The position of a reader that sees what the connection sees now."""
    if connection.dialect.name in ("mysql", "mariadb"):
        return MysqlPosition.start(connection, clock)
    return start_position(connection)


def providers(entries: tuple[JournalEntry, ...]) -> list[int | None]:
    """The ids of the providers that changed."""
    return [entry.provider_id for entry in entries]


@dataclass
class Reader:
    """A reader that keeps its position between reads."""

    database: Database
    position: Position

    def read(self, rows_max: int = 100_000) -> list[int | None]:
        """The providers whose changes are new."""
        entries, self.position = self.database.read(self.position.read, rows_max)
        return providers(entries)

    def sees_nothing_new(self) -> bool:
        """Whether `look`, the cheap question, finds no new rows."""
        looked = self.database.read(self.position.look)
        return looked is not None and not looked[0]

    def forget(self) -> None:
        """Forget missing ids that can no longer appear."""
        self.position = self.database.read(self.position.forget_gaps)


@dataclass
class Writers:
    """Threads that write to the journal and to `projects`. Some commit late, some roll back.

    They write for as long as the context is open.
    """

    database: Database
    committed: set[int] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    # Protects the members below.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ticks: int = 0
    # The writers that have ended a transaction since the last tick.
    _moved: set[int] = field(default_factory=set)

    def __enter__(self) -> Writers:
        for seed in range(WRITERS):
            thread = threading.Thread(target=self._write, args=(seed,))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.failures == []

    @property
    def at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def clock(self) -> float:
        """A clock that ticks after each writer has ended a transaction.

        A statement that runs at a moment is over two ticks later, however busy the machine is.
        """
        return self._ticks

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        try:
            while not self._stop.is_set():
                self._write_once(chance)
                self._note_end(seed)
                time.sleep(chance.uniform(0, 0.004))
        except BaseException as error:
            self.failures.append(error)
            raise

    def _note_end(self, seed: int) -> None:
        with self._lock:
            self._moved.add(seed)
            if len(self._moved) == WRITERS:
                self._moved.clear()
                self._ticks += 1

    def _write_once(self, chance: random.Random) -> None:
        numbers = [next(self._numbers) for _ in range(chance.choice((1, 1, 3)))]
        succeeds = chance.random() > 0.1
        try:
            with (writing if succeeds else rolled_back)(self.database) as connection:
                record(connection, *numbers)
                rows = [{"external_id": str(number)} for number in numbers]
                connection.execute(sa.insert(projects), rows)
                if chance.random() < 0.3:
                    time.sleep(chance.uniform(0, 0.03))
        except DBAPIError as error:
            # MariaDB rolls back one of two writers that lock each other out.
            if not self.database.dialect.is_transient(error):
                raise
            succeeds = False
        if succeeds:
            self.committed.update(numbers)


def written(connection: Connection) -> set[int]:
    """The numbers that writers have committed to `projects`."""
    return {int(id_) for id_ in connection.scalars(sa.select(projects.c.external_id))}
