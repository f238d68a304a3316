"""A rebuild of the forest: lost connections do not stop it, and requests wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.api.observation import readiness
from roost.replica import rebuild as rebuild_module
from roost.replica import replica as replica_module
from roost.search.forest.forest import Forest
from roost.store.connections.errors import DatabaseAway, DatabaseSilent
from roost.store.connections.sessions import in_one_moment
from roost.store.database import Database
from roost.store.forest import reading
from roost.store.journal import following
from roost.store.tables import roost_meta
from roost.turns import Turns
from support.api_client import Answer, ApiClient, application_client, limited_application
from support.waiting import SECONDS_MAX, wait_until

CANDIDATES = "/allocation_candidates?resources=VCPU:1"
# What the statements of a piece have in common: each reads one of these tables.
TABLES = ("inventories", "allocations", "resource_provider_traits", "resource_provider_aggregates")

only_servers = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make_host(api: ApiClient, parent: str | None = None) -> str:
    uuid = str(uuid4())
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    assert api.post("/resource_providers", body).status == 200
    set_total(api, uuid, 8)
    return uuid


def set_total(api: ApiClient, host: str, total: int) -> None:
    generation = api.get(f"/resource_providers/{host}").json["generation"]
    inventories = {"VCPU": {"total": total, "max_unit": total}}
    body = {"resource_provider_generation": generation, "inventories": inventories}
    assert api.put(f"/resource_providers/{host}/inventories", body).status == 200


def claim(api: ApiClient, consumer: str, host: str, amount: int) -> None:
    generation = api.get(f"/allocations/{consumer}").json.get("consumer_generation")
    body = {
        "allocations": {host: {"resources": {"VCPU": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "T",
    }
    assert api.put(f"/allocations/{consumer}", body).status == 204


def new_epoch(connection: Connection) -> None:
    """Make every reader read all tables again."""
    row = roost_meta.c.name == "epoch"
    connection.execute(sa.update(roost_meta).where(row).values(value=str(uuid4())))


class Builder:
    """Builds forests, and pauses before each until it is released."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.began = Event()
        self.release = Event()
        builder = self

        class PausedForest:
            @staticmethod
            def of(*arguments: Any) -> Forest:
                builder.began.set()
                assert builder.release.wait(SECONDS_MAX)
                return Forest.of(*arguments)

        # Where a rebuild makes its forest.
        patch.setattr(rebuild_module, "Forest", PausedForest)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    builder = Builder(monkeypatch)
    yield builder
    builder.release.set()


@pytest.fixture
def pool(builder: Builder) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
        # Otherwise a test that fails would wait for threads that wait for the builder.
        builder.release.set()


class CountedWaits(Turns):
    """Tells when a request has waited so long that it counts as a search."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.counted = Event()
        patch.setattr(replica_module, "TURNS", self)
        patch.setattr(replica_module, "_PAUSE_SECONDS", 0.01)

    def join(self) -> None:
        super().join()
        self.counted.set()


class Clock:
    """The clock of the replica, which a test sets ahead."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        self.looks = 0
        for module in (replica_module, following):
            patch.setattr(module, "time", self)

    def monotonic(self) -> float:
        self.looks += 1
        return time.monotonic() + self.ahead


def wait_or_answer(condition: Callable[[], bool], waiting: Future[Answer]) -> None:
    """Wait until the condition holds, or the request was answered early."""
    wait_until(lambda: condition() or waiting.done())


@contextmanager
def cuts(database: Database, cut: Callable[[int], None]) -> Iterator[list[str]]:
    """Call `cut` before each statement that reads a piece, with its number, and list them."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, text: str, parameters: Any, *_: object) -> None:
        if "BETWEEN" in text and any(f"FROM {table} " in text for table in TABLES):
            sent.append(f"{text} {parameters}")
            cut(len(sent))

    event.listen(database.follower, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.follower, "before_cursor_execute", note)


def end_sessions(database: Database) -> None:
    """Make the server end all sessions of the database but the one that asks for it."""
    if database.engine.dialect.name == "postgresql":
        statement = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        database.read(lambda connection: connection.exec_driver_sql(statement).close())
        return

    def kill(connection: Connection) -> None:
        ids = connection.exec_driver_sql(
            "SELECT id FROM information_schema.processlist"
            " WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        ).scalars()
        for id_ in ids.all():
            connection.exec_driver_sql(f"KILL {id_}")

    database.read(kill)


def summaries(api: ApiClient) -> Any:
    answer = api.get(CANDIDATES)
    assert answer.status == 200, answer.body
    return answer.json["provider_summaries"]


class TestLostConnections:
    @only_servers
    def test_a_rebuild_is_finished_though_all_sessions_are_cut_again_and_again(
        self, api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Each cut loses one piece. Meanwhile other clients change what was read before."""
        monkeypatch.setattr(reading, "PIECE_PROVIDERS", 2)
        hosts = [make_host(api) for _ in range(7)]
        consumer = str(uuid4())
        claim(api, consumer, hosts[0], 1)
        changes: Iterator[Callable[[], object]] = iter(
            [
                lambda: claim(api, consumer, hosts[0], 5),
                lambda: set_total(api, hosts[1], 99),
                lambda: api.delete(f"/resource_providers/{hosts[2]}"),
                lambda: make_host(api, parent=hosts[3]),
                lambda: make_host(api),
                lambda: claim(api, str(uuid4()), hosts[6], 3),
            ]
        )

        def cut(number: int) -> None:
            if number % 3 == 0:
                change = next(changes, None)
                if change is not None:
                    change()
                end_sessions(database)

        other = application_client(limited_application(database, tmp_path))
        with cuts(database, cut) as sent:
            found = summaries(other)
        assert len(sent) > len(set(sent)) >= 16
        # Apart from the pieces whose connection was cut, no piece is read twice.
        assert len(sent) - len(set(sent)) <= len(sent) // 3
        assert next(changes, None) is None
        fresh = application_client(limited_application(database, tmp_path))
        assert found == summaries(fresh) == summaries(other)

    @only_servers
    def test_a_lost_connection_costs_no_rebuild(
        self, api: ApiClient, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        hosts = {make_host(api)}
        summaries(api)
        end_sessions(database)
        hosts.add(make_host(api))
        with caplog.at_level("INFO"), cuts(database, lambda _: None) as sent:
            assert set(summaries(api)) == hosts
        assert sent == []
        assert "Reading all providers again" not in caplog.text

    @only_servers
    @pytest.mark.parametrize("life", ["another server", None])
    def test_another_server_costs_a_rebuild(
        self,
        *,
        api: ApiClient,
        database: Database,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        life: str | None,
    ) -> None:
        """So does a server that does not say whether it has crashed."""
        hosts = {make_host(api)}
        summaries(api)
        end_sessions(database)
        monkeypatch.setattr(following, "server_life", lambda _: life)
        with caplog.at_level("INFO"), cuts(database, lambda _: None) as sent:
            assert set(summaries(api)) == hosts
        assert len(sent) == len(TABLES)
        assert "Reading all providers again" in caplog.text

    @only_servers
    def test_a_server_may_refuse_to_tell_whether_it_has_crashed(
        self, api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hidden = "SELECT 1 FROM hidden_from_this_role"
        monkeypatch.setattr(database.dialect, "server_life", hidden)
        hosts = {make_host(api)}
        assert set(summaries(api)) == hosts
        end_sessions(database)
        with cuts(database, lambda _: None) as sent:
            assert set(summaries(api)) == hosts
        assert len(sent) == len(TABLES)

    @only_servers
    def test_a_rebuild_that_never_gets_on_is_refused_and_later_goes_on(
        self, api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(reading, "PIECE_PROVIDERS", 1)
        hosts = {make_host(api) for _ in range(3)}
        other = application_client(limited_application(database, tmp_path))

        def cut(number: int) -> None:
            if number > 2:
                end_sessions(database)

        with cuts(database, cut) as sent:
            answer = other.get(CANDIDATES)
        assert (answer.status, "retry-after" in answer.headers) == (503, True)
        read_before = set(sent[:2])
        with cuts(database, lambda _: None) as sent:
            assert set(summaries(other)) == hosts
        assert not read_before & set(sent)

    @only_sqlite
    def test_a_rebuild_that_an_earlier_request_read_whole_lacks_nothing(
        self, api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The server falls silent after the last piece, before the end of the snapshot."""
        hosts = {make_host(api)}
        other = application_client(limited_application(database, tmp_path))

        def silent(*arguments: Any) -> Any:
            in_one_moment(*arguments)
            raise DatabaseSilent("no answer to the end of the snapshot")

        with monkeypatch.context() as patch:
            patch.setattr(following, "in_one_moment", silent)
            assert other.get(CANDIDATES).status == 503
        hosts.add(make_host(api))
        assert set(summaries(other)) == hosts


class TestWaitingRequests:
    @only_sqlite
    def test_requests_wait_for_a_rebuild_that_takes_longer_than_a_look_may(
        self,
        *,
        api: ApiClient,
        database: Database,
        builder: Builder,
        pool: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        host = make_host(api)
        waits = CountedWaits(monkeypatch)
        clock = Clock(monkeypatch)
        client = application_client(limited_application(database, tmp_path))
        asked = [pool.submit(client.get, CANDIDATES)]
        assert builder.began.wait(SECONDS_MAX)
        clock.ahead = 2.0 * database.options.wait_seconds
        asked += [pool.submit(client.get, CANDIDATES) for _ in range(3)]
        wait_or_answer(waits.counted.is_set, asked[-1])
        # They have waited longer than for a silent database, and see that on the clock.
        clock.ahead *= 2
        clock.looks = 0
        wait_or_answer(lambda: clock.looks > 50, asked[-1])
        builder.release.set()
        assert [each.result().status for each in asked] == [200] * 4
        assert set(asked[-1].result().json["provider_summaries"]) == {host}

    @only_sqlite
    def test_the_first_requests_after_an_outage_wait_for_the_rebuild(
        self,
        *,
        database: Database,
        builder: Builder,
        pool: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        client = application_client(limited_application(database, tmp_path))
        builder.release.set()
        summaries(client)

        def fail(*_arguments: object) -> Any:
            raise DatabaseAway("the server is gone")

        with monkeypatch.context() as outage:
            outage.setattr("roost.store.journal.position.fetch_directly", fail)
            assert client.get(CANDIDATES).status == 503
        database.write_at_once(new_epoch)
        builder.began.clear()
        builder.release.clear()
        waits = CountedWaits(monkeypatch)
        first = pool.submit(client.get, CANDIDATES)
        assert builder.began.wait(SECONDS_MAX)
        second = pool.submit(client.get, CANDIDATES)
        wait_or_answer(waits.counted.is_set, second)
        builder.release.set()
        assert (first.result().status, second.result().status) == (200, 200)

    @only_sqlite
    def test_a_request_waits_for_a_rebuild_as_long_as_for_other_searches(
        self, database: Database, builder: Builder, pool: ThreadPoolExecutor, tmp_path: Path
    ) -> None:
        client = application_client(limited_application(database, tmp_path, search_wait_seconds=0))
        first = pool.submit(client.get, CANDIDATES)
        assert builder.began.wait(SECONDS_MAX)
        answer = client.get(CANDIDATES)
        assert answer.status == 503
        assert "[roost]search_wait_seconds" in answer.detail
        assert "retry-after" in answer.headers
        builder.release.set()
        assert first.result().status == 200

    @only_sqlite
    def test_requests_that_wait_leave_threads_to_other_requests(
        self,
        *,
        database: Database,
        builder: Builder,
        pool: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr("roost.turns._SEARCHES_MAX", 1)
        waits = CountedWaits(monkeypatch)
        client = application_client(limited_application(database, tmp_path))
        asked = [pool.submit(client.get, CANDIDATES)]
        assert builder.began.wait(SECONDS_MAX)
        asked.append(pool.submit(client.get, CANDIDATES))
        wait_or_answer(waits.counted.is_set, asked[-1])
        refused = client.get(CANDIDATES)
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
        builder.release.set()
        assert [each.result().status for each in asked] == [200, 200]

    @only_sqlite
    def test_a_process_is_not_ready_during_a_long_rebuild_and_says_why(
        self,
        *,
        database: Database,
        builder: Builder,
        pool: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr(readiness, "_FOREST_SECONDS", 0.0)
        monkeypatch.setattr(readiness, "_KEPT_SECONDS", -1.0)
        client = application_client(limited_application(database, tmp_path))
        # The first of these reads all providers itself, and keeps the second from its checks.
        for path in (CANDIDATES, "/readyz"):
            builder.began.clear()
            builder.release.clear()
            first = pool.submit(client.get, path)
            assert builder.began.wait(SECONDS_MAX)
            answer = client.get("/readyz")
            assert answer.status == 503
            *others, last = answer.json["checks"].items()
            assert all(check["ok"] for _, check in others)
            assert last[0] == "forest"
            assert "being brought up to date" in last[1]["text"]
            builder.release.set()
            assert first.result().status == 200
            assert client.get("/readyz").status == 200
            database.write_at_once(new_epoch)


@only_sqlite
def test_the_log_says_how_far_a_long_rebuild_is(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_host(api)
    monkeypatch.setattr(rebuild_module, "LONG_SECONDS", 0.0)
    with caplog.at_level("INFO"):
        summaries(api)
    lines = [record.message for record in caplog.records if record.name == rebuild_module.__name__]
    assert [line.partition(" in ")[0] for line in lines] == [
        "Reading all providers takes long: 1 of 5 pieces"
    ]
    assert "Read 1 providers in" in caplog.text
