"""A starting service waits for a database that goes away, as it does at the first connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from roost.bootstrap import create_application
from roost.configuration.settings import Settings
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from support.api_client import application_client, settings_for
from support.servers.database_proxy import DatabaseProxy, Mood
from support.servers.live_server import LiveServer
from support.waiting import SECONDS_MAX

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True),
]

# One statement of each stage: the schema is read and made, names are written, providers are read.
STAGES = (
    b"roost_schema_version",
    b"CREATE TABLE",
    b"INSERT INTO traits",
    b"FROM resource_providers",
)

# Longer than the second after which a start takes a silent connection for lost.
SILENT_SECONDS = 2


@pytest.fixture
def proxy(database_url: str) -> Iterator[DatabaseProxy]:
    with DatabaseProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def settings(proxy: DatabaseProxy, tmp_path: Path) -> Settings:
    given = settings_for(Database(DatabaseOptions(url=proxy.url)), tmp_path)
    return replace(given, connect_attempts=5, connect_interval_seconds=0)


@pytest.mark.parametrize("sent", STAGES)
def test_a_start_survives_lost_connections_at_each_stage(
    settings: Settings, proxy: DatabaseProxy, sent: bytes
) -> None:
    # The store tries a read twice and a write more often. Three cuts exceed the tries of a read.
    proxy.cut_when_sent(sent, times=3)
    application = create_application(settings)
    client = application_client(application)
    assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    assert proxy.cuts == 3
    application.close()


@pytest.mark.parametrize("sent", STAGES[2:])
def test_a_start_waits_for_a_database_that_falls_silent(
    settings: Settings, proxy: DatabaseProxy, sent: bytes
) -> None:
    hasty = replace(settings.database, wait_seconds=1, silence_seconds=1)
    proxy.swallow_when_sent(sent)

    def wake_up() -> None:
        assert proxy.text_seen.wait(SECONDS_MAX)
        time.sleep(SILENT_SECONDS)
        proxy.be(Mood.FORWARD)

    waker = threading.Thread(target=wake_up)
    waker.start()
    application = create_application(replace(settings, database=hasty, connect_attempts=-1))
    waker.join()
    client = application_client(application)
    assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    application.close()


def test_a_start_gives_up_a_database_that_stays_away(
    settings: Settings, proxy: DatabaseProxy
) -> None:
    proxy.cut_when_sent(b"INSERT INTO traits")
    with pytest.raises(DatabaseUnusable, match="start the service again") as refused:
        create_application(replace(settings, connect_attempts=2))
    assert urlsplit(proxy.url).path in str(refused.value)


def test_a_server_starts_although_its_database_restarts(
    proxy: DatabaseProxy, tmp_path: Path
) -> None:
    proxy.cut_when_sent(b"INSERT INTO traits", times=1)
    cut = proxy.text_seen

    def restart() -> None:
        assert cut.wait(SECONDS_MAX)
        proxy.be(Mood.REFUSE)
        proxy.cut()
        time.sleep(SILENT_SECONDS)
        proxy.be(Mood.FORWARD)

    thread = threading.Thread(target=restart)
    thread.start()
    patient = "[placement_database]\nretry_interval = 1\nmax_retries = 60\n"
    with LiveServer(proxy.url, tmp_path, configuration=patient) as server:
        thread.join()
        assert server.client().get("/resource_providers").status == 200
        assert "Traceback" not in server.log
