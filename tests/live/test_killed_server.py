"""A server that is killed during claims loses no claim that it acknowledged."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from roost.model.identifiers import new_uuid
from roost.store.database import Database, DatabaseOptions
from roost.store.tables import allocations, consumers, resource_providers, roost_changes
from support.api_client import ApiClient
from support.servers.live_server import LiveServer
from support.waiting import wait_until

pytestmark = pytest.mark.slow

CLIENTS = 8
CLAIMS_BEFORE_THE_KILL = 60


def put(api: ApiClient, consumer: str, providers: list[str]) -> int:
    return api.put(
        f"/allocations/{consumer}",
        {
            "allocations": {
                uuid: {"resources": {"VCPU": 1, "MEMORY_MB": 64}} for uuid in providers
            },
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    ).status


def make_providers(api: ApiClient) -> list[str]:
    providers = [new_uuid() for _ in range(3)]
    for uuid in providers:
        api.post("/resource_providers", {"name": uuid, "uuid": uuid})
        api.put(
            f"/resource_providers/{uuid}/inventories",
            {
                "resource_provider_generation": 0,
                "inventories": {"VCPU": {"total": 100_000}, "MEMORY_MB": {"total": 10_000_000}},
            },
        )
    return providers


def claim_until_the_server_is_gone(
    server: LiveServer, providers: list[str], tried: list[str], granted: list[str]
) -> None:
    api = server.client()
    while True:
        consumer = new_uuid()
        tried.append(consumer)
        try:
            status = put(api, consumer, providers)
        except (OSError, http.client.HTTPException):
            return
        assert status == 204
        granted.append(consumer)


def test_acknowledged_claims_survive_and_no_claim_is_half_written(
    database_url: str, tmp_path: Path
) -> None:
    with LiveServer(database_url, tmp_path) as server:
        providers = make_providers(server.client())
        tried: list[str] = []
        granted: list[str] = []
        threads = [
            threading.Thread(
                target=claim_until_the_server_is_gone, args=(server, providers, tried, granted)
            )
            for _ in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(granted) >= CLAIMS_BEFORE_THE_KILL)
        server.kill()
        for thread in threads:
            thread.join()

        server.start()
        api = server.client()
        whole = {"VCPU": 1, "MEMORY_MB": 64}
        for consumer in tried:
            held = {
                uuid: record["resources"]
                for uuid, record in api.get(f"/allocations/{consumer}").json["allocations"].items()
            }
            if consumer in granted or held:
                assert held == dict.fromkeys(providers, whole)
        assert put(api, new_uuid(), providers) == 204

    database = Database(DatabaseOptions(url=database_url))
    database.read(assert_journal_and_tables_agree)
    database.close()


def assert_journal_and_tables_agree(connection: Connection) -> None:
    """After the inventory, only journalled claims have moved the generation of a provider."""
    rows = connection.execute(
        select(roost_changes.c.provider_id, func.count())
        .where(roost_changes.c.kind == "usage")
        .group_by(roost_changes.c.provider_id)
    )
    claims = {provider_id: claimed for provider_id, claimed in rows}
    found = connection.execute(select(resource_providers.c.id, resource_providers.c.generation))
    generations = {id_: generation for id_, generation in found}
    assert {id_: generation - 1 for id_, generation in generations.items()} == claims
    holders = set(connection.execute(select(allocations.c.consumer_id).distinct()).scalars())
    assert holders == set(connection.execute(select(consumers.c.uuid)).scalars())
    assert set(claims.values()) == {len(holders)}
