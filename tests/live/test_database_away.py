"""With a database that is away or silent, requests fail in time and say what was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from roost.api.application import Application
from roost.store.database import Database, DatabaseOptions
from support.api_client import Answer, ApiClient, application_client, settings_for
from support.servers.database_proxy import DatabaseProxy, Mood
from support.servers.live_server import LiveServer
from support.waiting import SECONDS_MAX, wait_until

WAIT_SECONDS = 1
# How long clients ask a server whose database is silent.
LOAD_SECONDS = 12
CANDIDATES = "/allocation_candidates?resources=VCPU:1"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True),
]


@pytest.fixture
def proxy(database: Database) -> Iterator[DatabaseProxy]:
    """A proxy in front of the server of the prepared database."""
    with DatabaseProxy(database.options.url) as proxy:
        yield proxy


@pytest.fixture
def distant(proxy: DatabaseProxy) -> Iterator[Database]:
    """The database, reached through the proxy."""
    distant = Database(
        DatabaseOptions(url=proxy.url, wait_seconds=WAIT_SECONDS, silence_seconds=2 * WAIT_SECONDS)
    )
    yield distant
    distant.close()


@pytest.fixture
def api(distant: Database, tmp_path: Path) -> ApiClient:
    """The API on the database behind the proxy, after its first requests."""
    settings = replace(settings_for(distant, tmp_path), database=distant.options)
    client = application_client(Application(settings, distant))
    assert client.get(CANDIDATES).status == 200
    assert client.get("/resource_providers").status == 200
    return client


def timed(ask: Callable[[], Answer]) -> tuple[Answer, float]:
    began = time.monotonic()
    return ask(), time.monotonic() - began


def assert_unavailable(answer: Answer) -> None:
    assert answer.status == 503, answer.body
    assert int(answer.headers["retry-after"]) >= 1


def wait_until_back(api: ApiClient, path: str = CANDIDATES) -> None:
    """Wait until a request succeeds."""
    wait_until(lambda: api.get(path).status == 200)


@pytest.mark.parametrize("mood", [Mood.FREEZE, Mood.SWALLOW])
def test_candidates_fail_together_when_the_database_is_silent(
    api: ApiClient, proxy: DatabaseProxy, mood: Mood
) -> None:
    proxy.be(mood)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(api.get, CANDIDATES) for _ in range(16)]
        for each in asked:
            assert_unavailable(each.result())
    # From now on, one request waits for the database, and all other requests fail at once.
    with ThreadPoolExecutor(16) as pool:
        waited = [pool.submit(timed, lambda: api.get(CANDIDATES)) for _ in range(16)]
        found = [each.result() for each in waited]
    assert {answer.status for answer, _ in found} == {503}
    longest = max(seconds for _, seconds in found)
    assert sum(seconds > longest / 2 for _, seconds in found) <= 2
    proxy.be(Mood.FORWARD)
    wait_until_back(api)


def test_candidates_fail_together_when_the_database_falls_silent_during_a_rebuild(
    distant: Database, proxy: DatabaseProxy, tmp_path: Path
) -> None:
    settings = replace(settings_for(distant, tmp_path), database=distant.options)
    api = application_client(Application(settings, distant))
    proxy.swallow_when_sent(b"FROM resource_providers")
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(api.get, CANDIDATES)
        assert proxy.text_seen.wait(SECONDS_MAX)
        others = [pool.submit(api.get, CANDIDATES) for _ in range(7)]
        for each in (first, *others):
            assert_unavailable(each.result())
    proxy.be(Mood.FORWARD)
    wait_until_back(api)


def test_requests_fail_at_once_while_the_database_refuses_connections(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.be(Mood.REFUSE)
    proxy.cut()
    for path in (CANDIDATES, "/resource_providers"):
        assert_unavailable(api.get(path))
    proxy.be(Mood.FORWARD)
    wait_until_back(api)
    wait_until_back(api, "/resource_providers")


def test_reads_and_writes_end_when_the_database_is_silent(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.be(Mood.FREEZE)
    name = str(uuid4())
    # The database stays silent, so only the limits of the service end the waits.
    assert_unavailable(api.get("/resource_providers"))
    write = api.post("/resource_providers", {"name": name, "uuid": name})
    assert_unavailable(write)
    assert "Nothing was written" in write.detail
    proxy.be(Mood.FORWARD)
    wait_until_back(api, "/resource_providers")
    assert api.get(f"/resource_providers/{name}").status == 404


def test_idle_connections_are_replaced_after_a_restart_of_the_database(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.cut()
    assert api.get(CANDIDATES).status == 200
    proxy.cut()
    assert api.get("/resource_providers").status == 200
    proxy.cut()
    name = str(uuid4())
    assert api.post("/resource_providers", {"name": name, "uuid": name}).status == 200


def test_all_idle_connections_are_replaced_after_a_restart_of_the_database(
    api: ApiClient, distant: Database, proxy: DatabaseProxy
) -> None:
    meeting = Barrier(5)
    with ThreadPoolExecutor(5) as pool:
        for done in [
            pool.submit(distant.read, lambda _: meeting.wait(SECONDS_MAX)) for _ in range(5)
        ]:
            done.result()
    proxy.cut()
    assert api.get(f"/resource_providers/{uuid4()}").status == 404


def test_candidates_are_unavailable_while_the_journal_connection_breaks(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.cut_when_sent(b"roost_meta")
    for _ in range(3):
        assert_unavailable(api.get(CANDIDATES))
    proxy.cut_when_sent(b"nothing that is ever sent")
    wait_until_back(api)


def test_a_write_whose_connections_are_all_lost_says_that_nothing_was_written(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.cut_when_sent(b"INSERT INTO resource_providers")
    name = str(uuid4())
    answer = api.post("/resource_providers", {"name": name, "uuid": name})
    assert_unavailable(answer)
    assert "Nothing was written" in answer.detail
    assert api.get(f"/resource_providers/{name}").status == 404


def test_a_write_whose_connection_is_lost_once_is_carried_out(
    api: ApiClient, proxy: DatabaseProxy
) -> None:
    proxy.cut_when_sent(b"INSERT INTO resource_providers", times=1)
    name = str(uuid4())
    assert api.post("/resource_providers", {"name": name, "uuid": name}).status == 200


def test_a_write_whose_commit_gets_no_answer_says_that_it_may_have_been_carried_out(
    api: ApiClient, proxy: DatabaseProxy, kind: str
) -> None:
    first = str(uuid4())
    # A new connection sends COMMIT too, so the pool opens its connection before the cut.
    assert api.post("/resource_providers", {"name": first, "uuid": first}).status == 200
    proxy.cut_when_sent(b"COMMIT\0" if kind == "postgresql" else b"\x03COMMIT")
    name = str(uuid4())
    answer = api.post("/resource_providers", {"name": name, "uuid": name})
    assert_unavailable(answer)
    assert "may have been carried out or not" in answer.detail
    assert "Nothing was written" not in answer.detail


def test_no_traceback_is_logged_for_a_database_that_is_away(
    api: ApiClient, proxy: DatabaseProxy, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.be(Mood.REFUSE)
    proxy.cut()
    caplog.clear()
    api.get(CANDIDATES)
    api.get("/resource_providers")
    failures = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(failures) == 2
    assert not any(record.exc_info for record in caplog.records)


def test_a_slow_statement_is_waited_for(distant: Database) -> None:
    sleep = "pg_sleep" if distant.engine.dialect.name == "postgresql" else "sleep"
    slow = sa.text(f"SELECT {sleep}({WAIT_SECONDS + 0.5})")
    distant.read(lambda connection: connection.execute(slow).close())


def test_slow_statements_in_a_row_are_not_taken_for_silence(distant: Database) -> None:
    sleep = "pg_sleep" if distant.engine.dialect.name == "postgresql" else "sleep"
    slow = sa.text(f"SELECT {sleep}({WAIT_SECONDS - 0.5})")

    def work(connection: Any) -> None:
        for _ in range(4):
            connection.execute(slow).close()

    distant.write_at_once(work)


@pytest.mark.long
@pytest.mark.parametrize("mood", [Mood.FREEZE, Mood.SWALLOW])
def test_a_server_answers_requests_without_data_while_the_database_is_silent(
    proxy: DatabaseProxy, tmp_path: Path, mood: Mood
) -> None:
    paths = [CANDIDATES, "/resource_providers", CANDIDATES, "/traits"]
    hasty = "[roost]\ndatabase_wait_seconds = 2\n"
    with LiveServer(proxy.url, tmp_path, workers=1, configuration=hasty) as server:
        client = server.client()
        assert client.get(CANDIDATES).status == 200
        stop = time.monotonic() + LOAD_SECONDS
        slowest: dict[str, float] = {}

        def ask(number: int) -> None:
            asker, path = server.client(), paths[number % len(paths)]
            while time.monotonic() < stop:
                answer, seconds = timed(lambda: asker.get(path))
                slowest[path] = max(slowest.get(path, 0), seconds)
                assert answer.status == 503 or proxy.mood is Mood.FORWARD, answer.body
                time.sleep(0.05)

        proxy.be(mood)
        with ThreadPoolExecutor(120) as pool:
            asked = [pool.submit(ask, number) for number in range(120)]
            root: list[float] = []
            while time.monotonic() < stop:
                answer, seconds = timed(lambda: client.get("/"))
                assert answer.status == 200
                root.append(seconds)
                time.sleep(0.1)
            for each in asked:
                each.result()
        # The first requests hold all threads until the server knows that the database is silent.
        assert max(root) < 8
        assert sorted(root)[-2] < 4, sorted(root)[-5:]
        assert max(slowest.values()) < 12, slowest
        proxy.be(Mood.FORWARD)
        wait_until_back(client)
        wait_until_back(client, "/resource_providers")
        assert "Traceback" not in server.log
