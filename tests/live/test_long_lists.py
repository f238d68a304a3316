"""Long lists of a live server: the memory of the worker, and a list that breaks off."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from roost.store.database import Database, DatabaseOptions
from support.servers.live_server import LiveServer
from support.store.bulk_rows import write_providers
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

MB = 1024 * 1024
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

Ask = Callable[[str], http.client.HTTPResponse]


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(database_url, tmp_path, workers=1) as server:
        yield server


@pytest.fixture
def written(server: LiveServer, database_url: str) -> Iterator[Database]:
    """The server's database, for tests that write to it directly."""
    assert server.process is not None
    database = Database(DatabaseOptions(url=database_url, sqlite_synchronous=False))
    yield database
    database.close()


@pytest.fixture
def ask(server: LiveServer) -> Iterator[Ask]:
    """Sends a request and returns the answer with its body unread."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)

    def asked(path: str) -> http.client.HTTPResponse:
        connection.request("GET", path, headers=HEADERS)
        return connection.getresponse()

    yield asked
    connection.close()


def peak_bytes(server: LiveServer) -> int:
    """The peak of the worker's memory."""
    (worker,) = server.worker_ids()
    status = Path(f"/proc/{worker}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.mark.long
def test_a_list_of_hundreds_of_thousands_of_providers_needs_little_memory(
    server: LiveServer, written: Database, ask: Ask
) -> None:
    assert ask("/resource_providers").read()
    before = peak_bytes(server)
    written.write_at_once(write_providers, range(200_000))
    answer = ask("/resource_providers")
    assert answer.status == 200
    found = 0
    while piece := answer.read(MB):
        found += piece.count(b'"generation"')
    assert found == pytest.approx(200_000, rel=0.01)
    assert peak_bytes(server) - before < 60 * MB


def test_a_list_that_breaks_off_is_an_error_for_the_client(
    server: LiveServer, written: Database, ask: Ask
) -> None:
    written.write_at_once(write_providers, range(60_000))
    answer = ask("/resource_providers")
    assert answer.status == 200
    answer.read(1000)
    with written.engine.begin() as connection:
        connection.execute(text("ALTER TABLE resource_providers RENAME TO elsewhere"))
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    assert server.log.count("The database cannot be used") == 1
    assert "Traceback" not in server.log
