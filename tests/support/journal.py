"""Those who write to the change journal and those who read it."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.clock import utc_now
from roost.store.database import Database
from roost.store.errors import is_transient
from roost.store.journal import ChangeKind, record_changes
from roost.store.journal_reading import (
    Change,
    Position,
    forget_gaps,
    read_changes,
    start_position,
)
from roost.store.tables import projects, roost_changes, roost_meta


@contextmanager
def meta_restored(database: Database) -> Iterator[None]:
    """A while after which the journal says of itself what it did before."""
    before = database.read(lambda connection: connection.execute(sa.select(roost_meta)).all())
    yield
    rows = [{"name": row.name, "value": row.value} for row in before]

    def restore(connection: Connection) -> None:
        connection.execute(sa.delete(roost_meta))
        connection.execute(sa.insert(roost_meta), rows)

    database.write(restore)


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
    """A transaction that is committed in the end; not run again, whatever happens."""
    with database.turn(), database.engine.connect() as connection, connection.begin():
        yield connection


class _RolledBack(Exception):
    pass


@contextmanager
def rolled_back(database: Database) -> Iterator[Connection]:
    """A transaction that comes to nothing."""
    with suppress(_RolledBack), writing(database) as connection:
        yield connection
        raise _RolledBack


def record(connection: Connection, *provider_ids: int) -> None:
    """Note that the usage of these providers changed."""
    record_changes(connection, ChangeKind.USAGE, [(id_, str(uuid4())) for id_ in provider_ids])


def insert_change(connection: Connection, /, **values: Any) -> None:
    """Insert a row as the service would not."""
    row = {"created_at": utc_now(), "kind": "usage"} | values
    connection.execute(sa.insert(roost_changes).values(row))


def ids(database: Database) -> list[int]:
    """The numbers of all rows."""
    query = sa.select(roost_changes.c.id).order_by(roost_changes.c.id)
    return database.read(lambda connection: list(connection.scalars(query)))


def settle(database: Database) -> None:
    """Wait until no transaction runs any more, also of others, that runs now."""
    if database.engine.dialect.name != "postgresql":
        return
    query = "SELECT txid_snapshot_{}(txid_current_snapshot())"

    def ask(edge: str) -> int:
        text = query.format(edge)
        found: int = database.read(lambda connection: connection.exec_driver_sql(text).scalar_one())
        return found

    end, deadline = ask("xmax"), time.monotonic() + 30
    while ask("xmin") < end:
        assert time.monotonic() < deadline, "somebody else does not end a transaction"
        time.sleep(0.001)


def start(database: Database) -> Position:
    """The position of a reader that has seen all that is there."""
    return database.snapshot(start_position)


def providers(changes: tuple[Change, ...]) -> list[int | None]:
    """Whose changes they are."""
    return [change.provider_id for change in changes]


@dataclass
class Reader:
    """Reads on from where it is, each time that it is asked."""

    database: Database
    position: Position

    def read(self) -> list[int | None]:
        changes, self.position = self.database.read(read_changes, self.position)
        return providers(changes)

    def forget(self) -> None:
        self.position = self.database.read(forget_gaps, self.position)


@dataclass
class Writers:
    """Threads that write for a while, to the journal and beside it, commit late, or not at all."""

    database: Database
    seconds: float
    committed: set[int] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Writers:
        deadline = time.monotonic() + self.seconds
        for seed in range(6):
            thread = threading.Thread(target=self._write, args=(random.Random(seed), deadline))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()
        assert self.failures == []

    @property
    def at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _write(self, chance: random.Random, deadline: float) -> None:
        try:
            while time.monotonic() < deadline:
                self._write_once(chance)
                time.sleep(chance.uniform(0, 0.004))
        except BaseException as error:
            self.failures.append(error)
            raise

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
            # Two of them in each other's way: MariaDB rolls one back.
            if not is_transient(error):
                raise
            succeeds = False
        if succeeds:
            self.committed.update(numbers)


def written(connection: Connection) -> set[int]:
    """What writers have written, whatever the journal says."""
    return {int(id_) for id_ in connection.scalars(sa.select(projects.c.external_id))}
