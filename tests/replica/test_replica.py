"""The replica: its forest is never older than a request, and each change costs little."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.model.inventory import Inventory
from roost.replica import replica as replica_module
from roost.replica.replica import Replica
from roost.search.forest.forest import Forest
from roost.service.tables.inventories import replace_inventories
from roost.service.tables.providers import create_provider, delete_provider, update_provider
from roost.service.tables.resource_classes import ensure_resource_class
from roost.store import tables
from roost.store.connections.errors import DatabaseAway
from roost.store.connections.sessions import fetch_directly
from roost.store.database import Database
from roost.store.journal.pruning import prune_changes
from roost.store.tables import utc_now
from roost.store.transaction import Finished, Transaction
from support.api_client import ApiClient
from support.store.journal import record, settle
from support.waiting import SECONDS_MAX, wait_until_blocked

only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def add_host(transaction: Transaction, total: int = 8, parent: str | None = None) -> Finished[str]:
    uuid = str(uuid4())
    transaction.include(create_provider, uuid, uuid, parent)
    inventories = [Inventory("VCPU", total)]
    transaction.include(replace_inventories, uuid, 0, inventories, may_reserve_all=True)
    return transaction.finish(uuid)


def capacities(forest: Forest) -> dict[str, int]:
    """The VCPUs of every provider."""
    class_id = forest.vocabulary.class_ids["VCPU"]
    return {
        block.uuids[index].decode(): capacity
        for block in forest.blocks
        for index, capacity in zip(
            block.inventories[class_id].indexes.tolist(),
            block.inventories[class_id].capacity.tolist(),
            strict=True,
        )
    }


def trees(forest: Forest) -> dict[str, str]:
    """The root of every provider."""
    return {
        block.uuids[index].decode(): block.uuids[int(block.starts[tree])].decode()
        for block in forest.blocks
        for index, tree in enumerate(block.tree_numbers.tolist())
    }


def used(forest: Forest) -> dict[str, int]:
    """The VCPUs in use of every provider."""
    class_id = forest.vocabulary.class_ids["VCPU"]
    return {
        block.uuids[index].decode(): amount
        for block in forest.blocks
        for index, amount in zip(
            block.inventories[class_id].indexes.tolist(),
            block.inventories[class_id].used.tolist(),
            strict=True,
        )
    }


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The statements that the replica sends in the block, apart from its looks."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        sent.append(statement)

    event.listen(database.follower, "before_cursor_execute", note)
    yield sent
    event.remove(database.follower, "before_cursor_execute", note)


@dataclass
class Looks:
    """The looks into the journal of SQLite, each of which is one statement.

    The first look waits until `release`. The second one fails with `failure`, if there is one.
    """

    failure: Exception | None = None
    holds_first: bool = False
    count: int = 0
    # The threads that ask.
    threads: list[threading.Thread] = field(default_factory=list)
    first_began: Event = field(default_factory=Event)
    release: Event = field(default_factory=Event)

    def __enter__(self) -> Looks:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr("roost.store.journal.position.fetch_directly", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _look(self, *arguments: Any) -> Any:
        self.count += 1
        if self.count == 1 and self.holds_first:
            self.first_began.set()
            assert self.release.wait(SECONDS_MAX)
        if self.count == 2 and self.failure is not None:
            for thread in self.threads:
                if thread is not threading.current_thread():
                    wait_until_blocked(thread)
            raise self.failure
        return fetch_directly(*arguments)


def ask_during_a_look(ask: Callable[[], object], times: int, looks: Looks) -> None:
    """Let one thread begin a look, further threads ask during it, and then let the look end."""
    looks.threads = threads = [threading.Thread(target=ask) for _ in range(times)]
    threads[0].start()
    assert looks.first_began.wait(SECONDS_MAX)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        wait_until_blocked(thread)
    looks.release.set()
    for thread in threads:
        thread.join()


def test_a_request_sees_every_write_before_it(database: Database) -> None:
    replica = Replica(database)
    assert capacities(replica.current()) == {}
    host = database.write(add_host)
    assert capacities(replica.current()) == {host: 8}
    child = database.write(add_host, 4, host)
    assert capacities(replica.current()) == {host: 8, child: 4}
    assert trees(replica.current()) == {host: host, child: host}
    other = database.write(add_host, 2)
    database.write(update_provider, child, name="moved", parent_uuid=other, may_reparent=True)
    assert trees(replica.current()) == {host: host, other: other, child: other}
    database.write(delete_provider, child)
    assert trees(replica.current()) == {host: host, other: other}


def test_a_forest_never_changes(database: Database) -> None:
    replica = Replica(database)
    host = database.write(add_host)
    before = replica.current()
    database.write(add_host)
    database.write(replace_inventories, host, 1, [Inventory("VCPU", 99)], may_reserve_all=True)
    assert capacities(replica.current())[host] == 99
    assert capacities(before) == {host: 8}


def test_a_claim_makes_the_replica_read_nothing_but_the_journal(
    api: ApiClient, database: Database
) -> None:
    host = database.write(add_host)
    replica = Replica(database)
    replica.current()
    claim = {
        "allocations": {host: {"resources": {"VCPU": 3}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "T",
    }
    consumer = f"/allocations/{uuid4()}"
    assert api.put(consumer, claim).status == 204
    with statements(database) as sent:
        assert used(replica.current()) == {host: 3}
        assert api.delete(consumer).status == 204
        assert used(replica.current()) == {host: 0}
    assert sent == []


@only_sqlite
def test_a_request_without_changes_looks_into_the_journal_once(database: Database) -> None:
    database.write(add_host)
    replica = Replica(database)
    forest = replica.current()
    assert replica.current() is forest
    with Looks() as looks:
        assert replica.current() is forest
    assert looks.count == 1


@only_sqlite
def test_a_new_resource_class_is_in_the_next_forest(database: Database) -> None:
    replica = Replica(database)
    assert "CUSTOM_GOLD" not in replica.current().vocabulary.class_ids
    database.write(ensure_resource_class, "CUSTOM_GOLD")
    assert "CUSTOM_GOLD" in replica.current().vocabulary.class_ids


@only_sqlite
def test_waiting_threads_share_a_look_that_began_after_their_call(database: Database) -> None:
    replica = Replica(database)
    replica.current()
    with Looks(holds_first=True) as looks:
        ask_during_a_look(replica.current, 9, looks)
    # The first look began before the calls of eight threads, so one of them looks again, for all.
    assert looks.count == 2


@only_sqlite
@pytest.mark.parametrize(
    ("raised", "looks_expected", "failures_expected"),
    [
        # A defect fails the thread that looks. The next thread looks again.
        (ValueError("a defect"), 3, 1),
        # A database that is away fails all threads that wait for the look.
        (DatabaseAway("the server is gone"), 2, 2),
    ],
)
def test_waiting_threads_fail_with_a_look_if_the_database_is_away(
    database: Database, raised: Exception, looks_expected: int, failures_expected: int
) -> None:
    replica = Replica(database)
    replica.current()
    failures: list[Exception] = []

    def ask() -> None:
        try:
            replica.current()
        except (ValueError, DatabaseAway) as error:
            failures.append(error)

    with Looks(failure=raised, holds_first=True) as looks:
        ask_during_a_look(ask, 3, looks)
    assert looks.count == looks_expected
    assert len(failures) == failures_expected
    replica.current()


def test_a_pruned_journal_makes_the_replica_read_all_tables(database: Database) -> None:
    replica = Replica(database)
    hosts = {database.write(add_host)}
    replica.current()
    hosts |= {database.write(add_host) for _ in range(3)}
    database.write_at_once(_make_old)
    # A transaction in another database of the server delays pruning.
    settle(database)
    assert database.write_at_once(prune_changes, utc_now(), 1000) > 0
    assert set(capacities(replica.current())) == hosts


def test_slow_reads_do_not_delay_the_replica(database: Database) -> None:
    replica = Replica(database)
    replica.current()
    host = database.write(add_host)
    options = database.options
    database.readers.close_kept()
    with ExitStack() as slow:
        for _ in range(options.pool_size + options.pool_overflow):
            slow.enter_context(database.reader.connect())
        # No connection of the pool becomes free, so the replica needs none.
        assert capacities(replica.current()) == {host: 8}


def _make_old(connection: Connection) -> None:
    ages = sa.update(tables.roost_changes).values(created_at=sa.text("'2001-01-01 00:00:00'"))
    connection.execute(ages)


def test_another_epoch_makes_the_replica_read_all_tables(database: Database) -> None:
    replica = Replica(database)
    database.write(add_host)
    replica.current()

    def restore(connection: Connection) -> None:
        for table in (tables.inventories, tables.resource_providers, tables.roost_changes):
            connection.execute(sa.update(tables.resource_providers).values(root_provider_id=None))
            connection.execute(table.delete())
        connection.execute(
            sa.update(tables.roost_meta)
            .where(tables.roost_meta.c.name == "epoch")
            .values(value=str(uuid4()))
        )

    database.write_at_once(restore)
    assert capacities(replica.current()) == {}


@only_sqlite
def test_many_changed_providers_make_the_replica_read_all_tables(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "REBUILD_PROVIDERS_MIN", 10)
    replica = Replica(database)
    replica.current()

    def add_many(transaction: Transaction) -> Finished[list[str]]:
        return transaction.finish([transaction.include(add_host) for _ in range(20)])

    hosts = database.write(add_many)
    with statements(database) as sent:
        assert set(capacities(replica.current())) == set(hosts)
    # One statement for each table, two for the journal, and those of the transaction.
    assert len(sent) < 15


def test_many_journal_rows_make_the_replica_read_all_tables(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replica_module, "CHANGES_MIN", 20)
    hosts = {database.write(add_host) for _ in range(2)}
    replica = Replica(database)
    replica.current()
    with caplog.at_level("INFO"):
        database.write_at_once(record, *range(20))
        assert set(capacities(replica.current())) == hosts
        assert "Reading all providers again" not in caplog.text
        database.write_at_once(record, *range(19))
        hosts.add(database.write(add_host))
        assert set(capacities(replica.current())) == hosts
    assert "Reading all providers again" in caplog.text
    assert replica.current() is replica.current()
