"""The server sends a list of thousands of providers or consumers in pieces."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, update
from sqlalchemy.pool import QueuePool

from roost.api.application import Application
from roost.api.handlers import allocations, providers
from roost.api.http import streamed_lists
from roost.store import tables
from roost.store.database import Database
from support.api_client import ApiClient, settings_for
from support.store.bulk_rows import (
    next_id,
    numbered_uuid,
    write_inventories,
    write_providers,
    write_rows,
)

MB = 1024 * 1024

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a list of eleven members a long list."""
    for module in (providers, allocations):
        monkeypatch.setattr(module, "AT_ONCE_MAX", 10)
    monkeypatch.setattr(streamed_lists, "PAGE_LENGTH", 4)
    monkeypatch.setattr(providers, "_PIECE_LENGTH", 3)


def pieces(application: Application, path: str, version: str = "1.39") -> Iterator[bytes]:
    """The body of an answer, in the pieces that the WSGI server gets."""
    path, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "wsgi.input": io.BytesIO(),
        "wsgi.url_scheme": "http",
        "HTTP_HOST": "roost.example",
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_OPENSTACK_API_VERSION": f"placement {version}",
    }
    started: list[str] = []
    body = application(environ, lambda status, headers: started.append(status))
    assert started == ["200 OK"]
    return iter(body)


@pytest.fixture
def application(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Application:
    return Application(settings_for(database, tmp_path_factory.mktemp("settings")), database)


# Providers.


# Both lists find every provider. The first list needs no filter, the second has one.
lists = pytest.mark.parametrize(
    "path", ["/resource_providers", "/resource_providers?required=!COMPUTE_NODE"]
)


@pytest.mark.parametrize("version", ["1.0", "1.14", "1.15", "1.39"])
@pytest.mark.parametrize("count", [10, 11, 12, 25])
def test_a_long_list_has_the_same_content_as_a_short_list(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, count: int, version: str
) -> None:
    database.write_at_once(write_providers, range(count), total=10)
    whole = api.at(version).get("/resource_providers")
    short_pages(monkeypatch)
    streamed = api.at(version).get("/resource_providers")
    assert streamed.status == 200
    assert streamed.json == whole.json
    assert [item["uuid"] for item in streamed.json["resource_providers"]] == [
        numbered_uuid(number) for number in range(count)
    ]
    assert ("content-length" in streamed.headers) == (count == 10)
    for name in ("content-type", "last-modified", "cache-control", "vary"):
        assert streamed.headers.get(name) == whole.headers.get(name)


def test_a_long_list_is_filtered_to_its_end(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.write_at_once(write_providers, range(40), total=10)
    for number in range(0, 40, 2):
        held = {numbered_uuid(number): {"resources": {"VCPU": 7}}}
        body = {
            "allocations": held,
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert api.put(f"/allocations/{uuid4()}", body).status == 204
    short_pages(monkeypatch)
    for query, expected in (
        ("resources=VCPU:4", range(1, 40, 2)),
        ("resources=VCPU:11", []),
        ("required=!COMPUTE_NODE", range(40)),
        (f"member_of=!{uuid4()}", range(40)),
    ):
        found = api.get(f"/resource_providers?{query}").json["resource_providers"]
        assert [item["uuid"] for item in found] == [numbered_uuid(number) for number in expected]
    answer = api.get("/resource_providers?required=CUSTOM_NOWHERE")
    assert answer.status == 400


def touch(connection: Connection, provider_id: int) -> None:
    """Make the provider a day newer than all other rows."""
    table = tables.resource_providers
    later = tables.utc_now() + timedelta(days=1)
    connection.execute(update(table).where(table.c.id == provider_id).values(updated_at=later))


@pytest.mark.parametrize("filtered", ["required=!COMPUTE_NODE", "resources=VCPU:1", "in_tree"])
def test_a_long_filtered_list_has_the_same_content_as_a_short_list(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, filtered: str
) -> None:
    database.write_at_once(write_providers, [0])
    root = database.read(next_id, tables.resource_providers) - 1
    database.write_at_once(write_providers, range(1, 25), root=root, total=10)
    database.write_at_once(touch, root)
    query = filtered if "=" in filtered else f"in_tree={numbered_uuid(7)}"
    whole = api.get(f"/resource_providers?{query}")
    short_pages(monkeypatch)
    streamed = api.get(f"/resource_providers?{query}")
    assert len(streamed.json["resource_providers"]) >= 24
    assert streamed.json == whole.json
    assert "content-length" not in streamed.headers
    for name in ("content-type", "last-modified", "cache-control", "vary"):
        assert streamed.headers.get(name) == whole.headers.get(name)


@on_sqlite
@lists
def test_a_list_stays_complete_while_providers_come_and_go(
    api: ApiClient,
    application: Application,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    database.write_at_once(write_providers, range(20))
    short_pages(monkeypatch)
    body = pieces(application, path)
    sent = next(body)
    for number in (0, 5, 19):
        assert api.delete(f"/resource_providers/{numbered_uuid(number)}").status == 204
    for number in (50, 51):
        created = {"name": str(number), "uuid": numbered_uuid(number)}
        assert api.post("/resource_providers", created).status == 200
    sent += b"".join(body)
    uuids = [item["uuid"] for item in json.loads(sent)["resource_providers"]]
    assert len(uuids) == len(set(uuids))
    stayed = {numbered_uuid(number) for number in range(20) if number not in (0, 5, 19)}
    assert stayed <= set(uuids)


@lists
def test_a_slow_client_holds_no_connection(
    application: Application, database: Database, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    database.write_at_once(write_providers, range(30))
    short_pages(monkeypatch)
    body = pieces(application, path)
    pool = database.reader.pool
    assert isinstance(pool, QueuePool)
    for _ in body:
        assert pool.checkedout() == database.readers.kept


@on_sqlite
@lists
@pytest.mark.slow
def test_a_list_of_providers_needs_little_memory(
    application: Application, database: Database, path: str
) -> None:
    count = 30_000
    database.write_at_once(write_providers, range(count))
    # The forest that a condition needs is there before.
    assert next(pieces(application, path))
    tracemalloc.start()
    try:
        size = largest = found = 0
        for piece in pieces(application, path):
            size += len(piece)
            largest = max(largest, len(piece))
            found += piece.count(b'"generation"')
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == count
    assert size > 20 * MB
    assert largest < 512 * 1024
    assert peak < 12 * MB


# Consumers of a provider.

HOST = numbered_uuid(1)


def write_consumers(connection: Connection, count: int) -> None:
    """Write consumers of the host. The rows of the second class follow those of the first."""
    write_providers(connection, [1])
    host_id = next_id(connection, tables.resource_providers) - 1
    write_inventories(connection, [host_id], 2 * count)
    project_id, user_id = (next_id(connection, table) for table in (tables.projects, tables.users))
    write_rows(connection, tables.projects, [{"id": project_id, "external_id": "p"}])
    write_rows(connection, tables.users, [{"id": user_id, "external_id": "u"}])
    owner = {"project_id": project_id, "user_id": user_id, "generation": 1}
    uuids = [str(uuid4()) for _ in range(count)]
    write_rows(connection, tables.consumers, ({"uuid": uuid, **owner} for uuid in uuids))
    for class_id in (0, 1):
        held = {"resource_provider_id": host_id, "resource_class_id": class_id, "used": 1}
        rows = ({"consumer_id": uuid, **held} for uuid in uuids)
        write_rows(connection, tables.allocations, rows)


@pytest.mark.parametrize("version", ["1.14", "1.15", "1.28"])
def test_a_long_list_of_consumers_has_the_same_content_as_a_short_list(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    database.write_at_once(write_consumers, 13)
    path = f"/resource_providers/{HOST}/allocations"
    whole = api.at(version).get(path)
    short_pages(monkeypatch)
    streamed = api.at(version).get(path)
    assert streamed.json == whole.json
    assert len(streamed.json["allocations"]) == 13
    assert "content-length" not in streamed.headers
    assert streamed.headers.get("last-modified") == whole.headers.get("last-modified")


@on_sqlite
def test_a_consumer_that_changes_meanwhile_is_listed_once(
    api: ApiClient,
    application: Application,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database.write_at_once(write_consumers, 20)
    path = f"/resource_providers/{HOST}/allocations"
    uuids = list(api.get(path).json["allocations"])
    short_pages(monkeypatch)
    body = pieces(application, path)
    sent = next(body)
    # A replacement writes new rows for the same consumer.
    for uuid in (uuids[0], uuids[10]):
        claim = {
            "allocations": {HOST: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": 1,
            "consumer_type": "INSTANCE",
        }
        assert api.put(f"/allocations/{uuid}", claim).status == 204
    for uuid in uuids[4:8]:
        assert api.delete(f"/allocations/{uuid}").status == 204
    pairs: list[tuple[str, Any]] = []
    json.loads(sent + b"".join(body), object_pairs_hook=pairs.extend)
    listed = [key for key, _ in pairs if len(key) == 36]
    assert len(listed) == len(set(listed))
    assert set(uuids) - set(uuids[4:8]) <= set(listed)


@on_sqlite
@pytest.mark.slow
def test_a_provider_with_many_consumers_needs_little_memory(
    application: Application, database: Database
) -> None:
    database.write_at_once(write_consumers, 20_000)
    tracemalloc.start()
    try:
        body = pieces(application, f"/resource_providers/{HOST}/allocations")
        found = sum(piece.count(b"consumer_generation") for piece in body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == 20_000
    assert peak < 10 * MB


@on_sqlite
def test_the_usages_of_a_large_project_need_little_memory(
    api: ApiClient, database: Database
) -> None:
    database.write_at_once(write_consumers, 20_000)
    assert api.get("/usages?project_id=unknown").status == 200
    tracemalloc.start()
    try:
        found = api.get("/usages?project_id=p").json["usages"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected = {"consumer_count": 20_000, "VCPU": 20_000, "MEMORY_MB": 20_000}
    assert found == {"unknown": expected}
    assert peak < 2 * MB
