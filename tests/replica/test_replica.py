"""The replica: never older than the question, and no dearer than the change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.model.inventory import Inventory
from roost.replica import replica as replica_module
from roost.replica.replica import Replica
from roost.search.forest import Forest
from roost.service.inventories import replace_inventories
from roost.service.providers import create_provider, delete_provider, update_provider
from roost.service.resource_classes import ensure_resource_class
from roost.store import tables
from roost.store.clock import utc_now
from roost.store.database import Database
from roost.store.errors import DatabaseAway
from roost.store.journal_pruning import prune_changes
from support.client import ApiClient
from support.journal import record, settle

only_servers = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def add_host(connection: Connection, total: int = 8, parent: str | None = None) -> str:
    uuid = str(uuid4())
    create_provider(connection, uuid, uuid, parent)
    replace_inventories(connection, uuid, 0, [Inventory("VCPU", total)], may_reserve_all=True)
    return uuid


def capacities(forest: Forest) -> dict[str, int]:
    """The VCPUs of every provider."""
    class_id = forest.vocabulary.class_ids["VCPU"]
    return {
        block.uuids[place].decode(): capacity
        for block in forest.blocks
        for place, capacity in zip(
            block.stocks[class_id].places.tolist(),
            block.stocks[class_id].capacity.tolist(),
            strict=True,
        )
    }


def trees(forest: Forest) -> dict[str, str]:
    """The root of every provider."""
    return {
        block.uuids[place].decode(): block.uuids[int(block.starts[tree])].decode()
        for block in forest.blocks
        for place, tree in enumerate(block.trees.tolist())
    }


def used(forest: Forest) -> dict[str, int]:
    class_id = forest.vocabulary.class_ids["VCPU"]
    return {
        block.uuids[place].decode(): amount
        for block in forest.blocks
        for place, amount in zip(
            block.stocks[class_id].places.tolist(),
            block.stocks[class_id].used.tolist(),
            strict=True,
        )
    }


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """What is asked of the database meanwhile, apart from the journal."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        asked.append(statement)

    event.listen(database.follower, "before_cursor_execute", note)
    yield asked
    event.remove(database.follower, "before_cursor_execute", note)


def ask_one_after_another(
    ask: Callable[[], object], times: int, first_is_looking: Event, others_wait: Event
) -> None:
    """Let one begin, let the others come meanwhile, and then let it go on."""
    threads = [threading.Thread(target=ask) for _ in range(times)]
    threads[0].start()
    assert first_is_looking.wait(10)
    for thread in threads[1:]:
        thread.start()
    # They have nothing to do but to come and wait.
    time.sleep(0.3)
    others_wait.set()
    for thread in threads:
        thread.join()


@contextmanager
def looks_at_journal(replica: Replica) -> Iterator[list[object]]:
    """What the replica reads without a transaction meanwhile."""
    looks: list[object] = []
    read = replica._following.read

    def noted(work: Any, *args: Any) -> Any:
        looks.append(work)
        return read(work, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica._following, "read", noted)
        yield looks


def test_every_write_is_seen_by_the_next_question(database: Database) -> None:
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


def test_an_old_forest_stays_as_it_was(database: Database) -> None:
    replica = Replica(database)
    host = database.write(add_host)
    before = replica.current()
    database.write(add_host)
    database.write(replace_inventories, host, 1, [Inventory("VCPU", 99)], may_reserve_all=True)
    assert capacities(replica.current())[host] == 99
    assert capacities(before) == {host: 8}


def test_a_claim_costs_no_more_than_reading_usage(api: ApiClient, database: Database) -> None:
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
    with statements(database) as asked:
        assert used(replica.current()) == {host: 3}
    tables_read = [text for text in asked if "FROM inventories" in text or "traits" in text]
    assert tables_read == []
    assert api.delete(consumer).status == 204
    assert used(replica.current()) == {host: 0}


@only_sqlite
def test_nothing_new_costs_one_look_at_the_journal(database: Database) -> None:
    database.write(add_host)
    replica = Replica(database)
    forest = replica.current()
    assert replica.current() is forest
    with looks_at_journal(replica) as looks:
        assert replica.current() is forest
    assert len(looks) == 1


@only_sqlite
def test_new_names_are_known_at_once(database: Database) -> None:
    replica = Replica(database)
    assert "CUSTOM_GOLD" not in replica.current().vocabulary.class_ids
    database.write(ensure_resource_class, "CUSTOM_GOLD")
    assert "CUSTOM_GOLD" in replica.current().vocabulary.class_ids


@only_sqlite
def test_who_waits_shares_a_look_that_began_after_he_came(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(database)
    replica.current()
    looks = 0
    first_is_looking, everybody_waits = Event(), Event()
    refreshed = replica._refreshed

    def look(state: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 1:
            first_is_looking.set()
            assert everybody_waits.wait(10)
        return refreshed(state)

    monkeypatch.setattr(replica, "_refreshed", look)
    ask_one_after_another(replica.current, 9, first_is_looking, everybody_waits)
    # The first look began before the others came, so one of them looks again, for all.
    assert looks == 2


@only_sqlite
@pytest.mark.parametrize(
    ("raised", "looks_expected", "failures_expected"),
    [
        # A defect need not repeat itself.
        (ValueError("a defect"), 3, 1),
        # The database does not come back by asking it again.
        (DatabaseAway("the server is gone"), 2, 2),
    ],
)
def test_threads_that_wait_for_a_look_fail_with_it_if_the_database_is_away(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    looks_expected: int,
    failures_expected: int,
) -> None:
    replica = Replica(database)
    replica.current()
    first_is_looking, others_wait = Event(), Event()
    refreshed, looks, failures = replica._refreshed, 0, []

    def look(state: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 1:
            first_is_looking.set()
            assert others_wait.wait(10)
        if looks == 2:
            # Until all others wait for this look as well.
            time.sleep(0.3)
            raise raised
        return refreshed(state)

    def ask() -> None:
        try:
            replica.current()
        except (ValueError, DatabaseAway) as error:
            failures.append(error)

    monkeypatch.setattr(replica, "_refreshed", look)
    ask_one_after_another(ask, 3, first_is_looking, others_wait)
    assert looks == looks_expected
    assert len(failures) == failures_expected
    replica.current()


def test_a_pruned_journal_makes_a_reader_start_anew(database: Database) -> None:
    replica = Replica(database)
    hosts = {database.write(add_host)}
    replica.current()
    hosts |= {database.write(add_host) for _ in range(3)}
    database.write(_make_old)
    # A transaction that runs elsewhere on the server keeps all from being pruned.
    settle(database)
    assert database.write(prune_changes, utc_now(), 1000) > 0
    assert set(capacities(replica.current())) == hosts


def test_slow_reads_do_not_keep_the_replica_from_its_database(database: Database) -> None:
    replica = Replica(database)
    replica.current()
    host = database.write(add_host)
    options = database.options
    with ExitStack() as slow:
        for _ in range(options.pool_size + options.pool_overflow):
            slow.enter_context(database.reader.connect())
        began = time.monotonic()
        assert capacities(replica.current()) == {host: 8}
        assert time.monotonic() - began < options.pool_timeout_seconds / 2


@only_servers
def test_everything_is_read_anew_when_the_connection_was_lost(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(database)
    hosts = {database.write(add_host)}
    replica.current()
    end_session_of(database)
    with caplog.at_level("INFO"), statements(database) as asked:
        assert set(capacities(replica.current())) == hosts
    assert "Reading all providers anew" in caplog.text
    assert any("inventories" in text for text in asked)
    hosts.add(database.write(add_host))
    with statements(database) as asked:
        assert set(capacities(replica.current())) == hosts
        assert replica.current() is replica.current()
    assert not any("FROM inventories GROUP" in text for text in asked)


@only_servers
def test_everything_is_read_anew_over_a_connection_that_replaced_another(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(database)
    host = database.write(add_host)
    replica.current()
    database.follower.dispose()
    with caplog.at_level("INFO"):
        assert capacities(replica.current()) == {host: 8}
    assert "Reading all providers anew" in caplog.text


def end_session_of(database: Database) -> None:
    """Make the server end the session of the replica."""
    is_postgresql = database.engine.dialect.name == "postgresql"
    number = "SELECT pg_backend_pid()" if is_postgresql else "SELECT connection_id()"
    kill = "SELECT pg_terminate_backend({})" if is_postgresql else "KILL {}"
    with database.follower.connect() as connection:
        session = connection.exec_driver_sql(number).scalar_one()
    database.read(lambda connection: connection.exec_driver_sql(kill.format(session)).close())


def _make_old(connection: Connection) -> None:
    ages = sa.update(tables.roost_changes).values(created_at=sa.text("'2001-01-01 00:00:00'"))
    connection.execute(ages)


def test_another_database_is_noticed(database: Database) -> None:
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

    database.write(restore)
    assert capacities(replica.current()) == {}


@only_sqlite
def test_many_changes_are_read_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "_REBUILD_PROVIDERS_MIN", 10)
    replica = Replica(database)
    replica.current()

    def add_many(connection: Connection) -> list[str]:
        return [add_host(connection) for _ in range(20)]

    hosts = database.write(add_many)
    with statements(database) as asked:
        assert set(capacities(replica.current())) == set(hosts)
    # One for each table, the journal twice, and the transaction.
    assert len(asked) < 15


def test_a_flood_of_changes_is_not_read_row_by_row(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replica_module, "_CHANGES_MIN", 20)
    hosts = {database.write(add_host) for _ in range(2)}
    replica = Replica(database)
    replica.current()
    with caplog.at_level("INFO"):
        database.write(record, *range(20))
        assert set(capacities(replica.current())) == hosts
        assert "anew" not in caplog.text
        database.write(record, *range(19))
        hosts.add(database.write(add_host))
        assert set(capacities(replica.current())) == hosts
    assert "Reading all providers anew: more than 20 changes are new" in caplog.text
    assert replica.current() is replica.current()
