"""Writers whose transactions overlap, commit late and roll back; and a reader of their changes."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.store.database import Database
from roost.store.journal.changes import ChangeCursor, ChangeRow, ReadPage, read_changes
from roost.store.journal.writing import ChangeKind, Writer, record_changes, record_usages
from roost.store.tables import projects
from roost.store.transaction import Transaction
from support.store.journal import rolled_back, writing

# Providers that several writers change, each under its lock.
SHARED = (1, 2)
_WRITERS = 6


@dataclass
class ChangeWriters:
    """Threads that write transactions of several rows, for as long as the context is open.

    A row about a shared provider has an ever higher class, so its place in the order is known.
    """

    database: Database
    # The rows of each committed transaction, as (provider, class), by the name of its request.
    committed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _heights: dict[int, int] = field(default_factory=lambda: dict.fromkeys(SHARED, 0))
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _failures: list[BaseException] = field(default_factory=list)

    def __enter__(self) -> ChangeWriters:
        rows = [{"external_id": _lock_name(provider)} for provider in SHARED]
        self.database.write_at_once(
            lambda connection: connection.execute(sa.insert(projects), rows)
        )
        for seed in range(_WRITERS):
            thread = threading.Thread(target=self._write, args=(seed,))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self._failures == []

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        number = 0
        try:
            while not self._stop.is_set():
                number += 1
                self._write_once(chance, f"req-{seed}-{number}", 100 + seed)
        except BaseException as error:
            self._failures.append(error)
            raise

    def _write_once(self, chance: random.Random, request: str, own: int) -> None:
        succeeds = chance.random() > 0.2
        rows: list[tuple[int, int]] = []
        try:
            with (writing if succeeds else rolled_back)(self.database) as connection:
                part = Transaction(connection)
                part.writer = Writer(request).text()
                for _ in range(chance.choice((1, 1, 4))):
                    record_changes(part, ChangeKind.TRAITS, [(own, "own")])
                    rows.append((own, 0))
                # An early id for a transaction that may commit late.
                _ = part.connection
                for provider in SHARED:
                    if chance.random() < 0.6:
                        rows.append((provider, self._write_shared(part, provider)))
                if chance.random() < 0.3:
                    time.sleep(chance.uniform(0, 0.02))
                part.finish()
        except DBAPIError as error:
            if not self.database.dialect.is_transient(error):
                raise
            succeeds = False
        if succeeds:
            self.committed[request] = rows

    def _write_shared(self, part: Transaction, provider: int) -> int:
        connection = part.connection
        _lock(connection, provider)
        self._heights[provider] += 1
        height = self._heights[provider]
        record_usages(part, [(provider, "shared", {height: 1})])
        assert part.connection is connection
        return height


@dataclass
class PageReader:
    """A client that keeps nothing but the text of its cursor, and asks one server after another."""

    servers: list[Database]
    text: str
    seen: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    # The classes of the rows about each shared provider, as they came.
    heights: dict[int, list[int]] = field(default_factory=lambda: {each: [] for each in SHARED})
    pages: int = 0

    def read(self, rows_max: int) -> ReadPage:
        """Read one page; each of its transactions must be new."""
        database = self.servers[self.pages % len(self.servers)]
        self.pages += 1
        cursor = ChangeCursor.from_text(database.dialect.position, self.text)
        page = database.snapshot(read_changes, cursor, rows_max)
        for rows in page.transactions:
            (request,) = {row.writer.request_id for row in rows}
            assert request is not None
            assert request not in self.seen, "unique: a transaction comes once"
            self.seen[request] = [_told(row) for row in rows]
            for provider, height in self.seen[request]:
                if provider in SHARED:
                    self.heights[provider].append(height)
        self.text = page.cursor.to_text()
        return page

    def read_all(self, rows_max: int) -> None:
        """Read until nothing is new."""
        while (page := self.read(rows_max)).transactions or not page.is_last:
            pass


def _told(row: ChangeRow) -> tuple[int, int]:
    assert row.provider_id is not None
    return row.provider_id, row.classes[0] if row.classes else 0


def _lock_name(provider: int) -> str:
    return f"lock of {provider}"


def _lock(connection: Connection, provider: int) -> None:
    name = projects.c.external_id == _lock_name(provider)
    connection.execute(sa.select(projects.c.id).where(name).with_for_update())
