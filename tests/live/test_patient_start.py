"""A service whose database goes away while it starts waits for it, as at the first connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from roost.bootstrap import create_application
from roost.configuration.settings import Settings
from roost.store.database import Database, DatabaseOptions
from roost.store.errors import DatabaseUnusable
from support.client import application_client, settings_for
from support.database_proxy import DatabaseProxy, Mood
from support.live_server import LiveServer

pytestmark = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)

# What is sent while the schema is looked at, made, while names are written, providers are read.
STAGES = (b"roost_schema_version", b"CREATE TABLE", b"INSERT INTO traits", b"FROM inventories")


@pytest.fixture
def proxy(database_url: str) -> Iterator[DatabaseProxy]:
    with DatabaseProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def settings(proxy: DatabaseProxy, tmp_path: Path) -> Settings:
    given = settings_for(Database(DatabaseOptions(url=proxy.url)), tmp_path)
    return replace(given, connect_attempts=5, connect_interval_seconds=0)


@pytest.mark.parametrize("sent", STAGES)
def test_at_each_stage_of_a_start(settings: Settings, proxy: DatabaseProxy, sent: bytes) -> None:
    # A read is run twice before it is given up, a write more often.
    proxy.cut_when_sent(sent, times=3)
    application = create_application(settings)
    client = application_client(application)
    assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    assert proxy.cuts == 3
    application.close()


@pytest.mark.parametrize("sent", STAGES[2:])
def test_a_database_that_falls_silent(
    settings: Settings, proxy: DatabaseProxy, sent: bytes
) -> None:
    hasty = replace(settings.database, wait_seconds=1, silence_seconds=1)
    proxy.swallow_when_sent(sent)
    waker = threading.Timer(4, lambda: proxy.be(Mood.FORWARD))
    waker.start()
    application = create_application(replace(settings, database=hasty, connect_attempts=-1))
    waker.join()
    client = application_client(application)
    assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    application.close()


def test_a_database_that_stays_away_is_told_in_a_sentence(
    settings: Settings, proxy: DatabaseProxy
) -> None:
    proxy.cut_when_sent(b"INSERT INTO traits")
    with pytest.raises(DatabaseUnusable, match="went away while the service started"):
        create_application(settings)


class PatientServer(LiveServer):
    def _environment(self) -> dict[str, str]:
        return {
            "OS_PLACEMENT_DATABASE__RETRY_INTERVAL": "1",
            "OS_PLACEMENT_DATABASE__MAX_RETRIES": "60",
        }


def test_a_server_whose_database_restarts_while_it_starts(
    proxy: DatabaseProxy, tmp_path: Path
) -> None:
    proxy.cut_when_sent(b"INSERT INTO traits", times=1)
    cut = proxy.cut_seen

    def restart() -> None:
        assert cut.wait(60)
        proxy.be(Mood.REFUSE)
        proxy.cut()
        threading.Event().wait(2)
        proxy.be(Mood.FORWARD)

    thread = threading.Thread(target=restart)
    thread.start()
    with PatientServer(proxy.url, tmp_path) as server:
        thread.join()
        assert server.client().get("/resource_providers").status == 200
        assert "Traceback" not in server.log
