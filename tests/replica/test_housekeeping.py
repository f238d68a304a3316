"""Housekeeping: the journal stays short and the replica fresh without requests."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.replica import housekeeping as housekeeping_module
from roost.replica.housekeeping import Housekeeping
from roost.replica.replica import Replica
from roost.store.connections.errors import DatabaseAway
from roost.store.database import Database
from roost.store.journal.pruning import prune_changes
from roost.store.tables import roost_changes, utc_now
from support.api_client import application_client, limited_application
from support.servers.live_server import clean_environment
from support.store.journal import ids, meta_restored
from support.waiting import SECONDS_MAX, wait_until

ROWS = 6_000

FORK = """
import io, os, threading
from roost.wsgi import application

def ask(path):
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": "resources=VCPU:1",
               "HTTP_X_AUTH_TOKEN": "admin", "HTTP_OPENSTACK_API_VERSION": "placement latest",
               "SERVER_NAME": "x", "SERVER_PORT": "80", "wsgi.url_scheme": "http",
               "wsgi.input": io.BytesIO()}
    statuses = []
    b"".join(application(environ, lambda status, headers: statuses.append(status)))
    return statuses

def keepers():
    return [thread.name for thread in threading.enumerate() if "housekeeping" in thread.name]

print("parent", keepers(), flush=True)
for child in range(2):
    if os.fork() == 0:
        print(child, ask("/allocation_candidates"), keepers(), flush=True)
        application.close()
        print(child, keepers(), flush=True)
        os._exit(0)
    os.wait()
print("parent", ask("/allocation_candidates"), flush=True)
"""


@pytest.fixture(autouse=True)
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping_module, "PRUNE_SECONDS", 0.1)
    monkeypatch.setattr(housekeeping_module, "TIDY_SECONDS", 0.1)


@pytest.fixture
def _old_journal(database: Database) -> Iterator[None]:
    """A journal that has only old rows."""
    rows = [{"created_at": utc_now() - timedelta(days=1), "kind": "usage"}] * ROWS

    def fill(connection: Connection) -> None:
        connection.execute(sa.delete(roost_changes))
        connection.execute(sa.insert(roost_changes), rows)

    with meta_restored(database):
        database.write_at_once(fill)
        yield


@pytest.fixture
def housekeeping(database: Database) -> Iterator[Housekeeping]:
    housekeeping = Housekeeping(database, Replica(database))
    yield housekeeping
    housekeeping.close()


@pytest.mark.usefixtures("_old_journal")
def test_old_rows_are_pruned_without_requests_for_candidates(
    database: Database, tmp_path: Path
) -> None:
    application = limited_application(database, tmp_path)
    application.start_housekeeping()
    assert application_client(application).get("/").status == 200
    wait_until(lambda: len(ids(database)) == 1)
    application.close()


def test_a_chore_that_fails_is_logged_once_and_counted_and_runs_again(
    housekeeping: Housekeeping, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_arguments: object) -> int:
        raise DatabaseAway("the server is gone")

    monkeypatch.setattr(housekeeping_module, "prune_changes", fail)
    with caplog.at_level("INFO"):
        housekeeping.ensure()
        wait_until(lambda: housekeeping.failures > 2)
        monkeypatch.setattr(housekeeping_module, "prune_changes", prune_changes)
        wait_until(lambda: "Pruning the journal succeeds again" in caplog.text)
    lines = [record for record in caplog.records if "the server is gone" in record.message]
    assert len(lines) == 1
    assert lines[0].exc_info is None


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_housekeeping_has_one_thread_until_it_is_closed(housekeeping: Housekeeping) -> None:
    before = set(threading.enumerate())
    for _ in range(2):
        housekeeping.ensure()
        assert len(set(threading.enumerate()) - before) == 1
    housekeeping.close()
    assert set(threading.enumerate()) <= before


@pytest.mark.slow
def test_a_forked_process_has_its_own_thread_and_connections(
    database_url: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=clean_environment(
            {
                "HOME": str(tmp_path),
                "OS_API__AUTH_STRATEGY": "noauth2",
                "OS_PLACEMENT_DATABASE__CONNECTION": database_url,
            }
        ),
    )
    assert done.stdout.splitlines() == [
        "parent []",
        "0 ['200 OK'] ['roost-housekeeping']",
        "0 []",
        "1 ['200 OK'] ['roost-housekeeping']",
        "1 []",
        "parent ['200 OK']",
    ], done.stderr
