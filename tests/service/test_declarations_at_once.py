"""Declarations of several owners at the same time, among claims and Placement writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

from roost.model.identifiers import new_uuid
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.database import Database
from support.api_client import ApiClient

ROOT = str(UUID(int=1))
TIMES = 12
CHILDREN = 5


def declare(api: ApiClient, owner: str, number: int) -> int:
    """Declare children, some of which come and go."""
    children: list[dict[str, Any]] = [
        {
            "name": f"{owner}_{child}",
            "inventories": {"DISK_GB": 1 + number},
            "traits": [f"CUSTOM_T{number % 3}"],
        }
        for child in range(number % CHILDREN)
    ]
    host = {"name": "h", "traits": [f"CUSTOM_{owner.upper()}"], "children": children}
    return api.put(f"/roost/trees/h?owner={owner}", {"providers": [host]}).status


def claim(api: ApiClient) -> int:
    body = {
        "allocations": {ROOT: {"resources": {"VCPU": 1}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return api.put(f"/allocations/{new_uuid()}", body).status


def child_of_another_writer(api: ApiClient, number: int) -> int:
    body = {"name": f"nova_{number}", "parent_provider_uuid": ROOT}
    return api.post("/resource_providers", body).status


def test_declarations_and_other_writes_take_turns(api: ApiClient, database: Database) -> None:
    root = {"name": "h", "uuid": ROOT, "inventories": {"VCPU": 1000}}
    assert api.put("/roost/trees/h?owner=first", {"providers": [root]}).status == 200
    owners = ("a", "b", "c")

    def times(work: Callable[[int], int]) -> Counter[int]:
        return Counter(map(work, range(TIMES)))

    with ThreadPoolExecutor(5) as pool:
        declared = [pool.submit(times, partial(declare, api, owner)) for owner in owners]
        claimed = pool.submit(times, lambda _: claim(api))
        created = pool.submit(times, partial(child_of_another_writer, api))
        assert [done.result() for done in declared] == [{200: TIMES}] * len(owners)
        assert claimed.result() == {204: TIMES}
        assert created.result() == {200: TIMES}
    for owner in owners:
        answer = api.put(f"/roost/trees/h?owner={owner}", {"providers": []})
        assert answer.json["trees"][0]["kept"] == []
    left = {each["name"]: each for each in api.get("/roost/trees/h").json["providers"]}
    assert set(left) == {"h", *(f"nova_{number}" for number in range(TIMES))}
    assert left["h"]["usages"] == {"VCPU": TIMES}
    findings = database.read(check_database)
    assert [found for found in findings if found.level is not Level.OK] == []


def test_two_owners_that_make_one_tree_at_the_same_moment_make_it_once(api: ApiClient) -> None:
    def make(owner: str) -> int:
        tree = {"providers": [{"name": "h", "children": [{"name": "x"}]}]}
        return api.put(f"/roost/trees/h?owner={owner}", tree).status

    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(make, ("a", "b", "c", "d")))
    assert statuses == [200] * 4
    found = api.get("/roost/trees/h").json["providers"]
    assert [each["name"] for each in found] == ["h", "x"]
    assert set(found[0]["owners"]) == {"a", "b", "c", "d"}
