"""Unrelated changes at the same time do not disturb each other."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import Connection, select

from roost.model.identifiers import new_uuid
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.connections.errors import Retry
from roost.store.database import Database
from roost.store.rows.claims import ClaimScope, LockedRows, Names, WantedNames, read_inventories
from roost.store.tables import resource_classes, resource_providers
from roost.store.transaction import Transaction
from support.api_client import ApiClient

CHILDREN = 6
MOVES = 12
CLAIMS = 25


def make_provider(api: ApiClient, parent: str | None = None) -> str:
    uuid = new_uuid()
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    assert api.post("/resource_providers", body).status == 200
    return uuid


def add_inventory(api: ApiClient, uuid: str, resource_class: str) -> None:
    answer = api.post(
        f"/resource_providers/{uuid}/inventories",
        {"resource_class": resource_class, "total": 100_000},
    )
    assert answer.status == 201, answer.body


def move_back_and_forth(api: ApiClient, uuid: str, other: str) -> Counter[int]:
    parents = [other, None] * (MOVES // 2)
    return Counter(
        api.put(
            f"/resource_providers/{uuid}", {"name": uuid, "parent_provider_uuid": parent}
        ).status
        for parent in parents
    )


def claim_again_and_again(api: ApiClient, providers: list[str]) -> Counter[int]:
    return Counter(
        api.put(
            f"/allocations/{new_uuid()}",
            {
                "allocations": {uuid: {"resources": {"VCPU": 1}} for uuid in pair},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            },
        ).status
        for _ in range(CLAIMS // (len(providers) - 1))
        for pair in pairwise(providers)
    )


def test_trees_can_be_moved_while_clients_claim_from_their_providers(
    api: ApiClient, database: Database
) -> None:
    root, other = make_provider(api), make_provider(api)
    children = [make_provider(api, root) for _ in range(CHILDREN)]
    for uuid in children:
        add_inventory(api, uuid, "VCPU")
    with ThreadPoolExecutor(4) as pool:
        moves = pool.submit(move_back_and_forth, api, root, other)
        claims = [
            pool.submit(claim_again_and_again, api, list(order))
            for order in (children, reversed(children), [*children, root][:-1])
        ]
        assert moves.result() == {200: MOVES}
        for done in claims:
            assert set(done.result()) == {204}
    findings = database.read(check_database)
    assert [found for found in findings if found.level is Level.FAILURE] == []


def test_a_claim_notices_that_its_class_was_deleted_and_made_again(
    api: ApiClient, database: Database
) -> None:
    """The id of a name that a claim has looked up must still be the id of its inventory."""
    uuid = make_provider(api)
    old_ids = {}
    for name in ("CUSTOM_OLD", "CUSTOM_NEW"):
        assert api.put(f"/resource_classes/{name}").status == 201
        old_ids[name] = database.read(class_id, name)
        if name == "CUSTOM_OLD":
            assert api.delete(f"/resource_classes/{name}").status == 204
    assert old_ids["CUSTOM_NEW"] == old_ids["CUSTOM_OLD"]
    add_inventory(api, uuid, "CUSTOM_NEW")

    def look(connection: Connection, name: str) -> object:
        query = select(resource_providers.c.id).where(resource_providers.c.uuid == uuid)
        provider_id = connection.execute(query).scalar_one()
        names = Names({name: old_ids[name]}, {}, {}, {})
        scope = ClaimScope([], [uuid], WantedNames([name], [], [], []), replaces=False)
        return read_inventories(
            Transaction(connection), scope, LockedRows(names, [], [], {uuid: (provider_id, 0)})
        )

    assert database.read(look, "CUSTOM_NEW")
    assert database.read(look, "CUSTOM_OLD") == {}
    assert api.put("/resource_classes/CUSTOM_OLD").status == 201
    add_inventory(api, uuid, "CUSTOM_OLD")
    with pytest.raises(Retry):
        database.read(look, "CUSTOM_OLD")


def class_id(connection: Connection, name: str) -> int:
    query = select(resource_classes.c.id).where(resource_classes.c.name == name)
    return int(connection.execute(query).scalar_one())
