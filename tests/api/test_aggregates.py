"""The aggregates of a provider."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from support.api_client import Answer, ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
OTHER = "c0ffee00-0000-0000-0000-000000000002"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
NORTH, SOUTH, EAST = (f"a66e0000-0000-0000-0000-00000000000{number}" for number in "123")


def path(uuid: str) -> str:
    return f"/resource_providers/{uuid}/aggregates"


@pytest.fixture(autouse=True)
def hosts(api: ApiClient) -> None:
    """Two providers in no aggregate, at generation 0."""
    for uuid in (HOST, OTHER):
        assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200


def put(api: ApiClient, uuids: list[str], generation: int, host: str = HOST) -> Answer:
    """Replace the aggregates with the body of 1.19 and later."""
    body = {"aggregates": uuids, "resource_provider_generation": generation}
    return api.put(path(host), body)


def aggregates(api: ApiClient, host: str = HOST) -> list[str]:
    return sorted(api.get(path(host)).json["aggregates"])


def generation(api: ApiClient, host: str = HOST) -> int:
    number: int = api.get(f"/resource_providers/{host}").json["generation"]
    return number


# From 1.1 to 1.18: the body is a bare list without a generation.


@on_sqlite
@pytest.mark.parametrize("version", ["1.1", "1.18"])
def test_aggregates_are_shown_without_generation_until_1_18(api: ApiClient, version: str) -> None:
    assert api.at(version).get(path(HOST)).json == {"aggregates": []}
    put(api, [NORTH], 0)
    assert api.at(version).get(path(HOST)).json == {"aggregates": [NORTH]}


@pytest.mark.parametrize("version", ["1.1", "1.18"])
def test_a_bare_list_replaces_the_aggregates_until_1_18(api: ApiClient, version: str) -> None:
    for wanted in ([NORTH, SOUTH], [SOUTH, EAST], [], [NORTH]):
        answer = api.at(version).put(path(HOST), wanted)
        assert answer.status == 200
        assert answer.json == {"aggregates": wanted}
        assert aggregates(api) == sorted(wanted)


def test_a_replacement_keeps_the_generation_until_1_18(api: ApiClient) -> None:
    api.at("1.18").put(path(HOST), [NORTH])
    api.at("1.18").put(path(HOST), [SOUTH])
    assert generation(api) == 0


@on_sqlite
@pytest.mark.parametrize("version", ["1.1", "1.18"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"aggregates": [NORTH], "resource_provider_generation": 0}, "is not of type 'array'"),
        ({}, "{} is not of type 'array'"),
        (["north"], "'north' is not a 'uuid'"),
        ([1], "1 is not of type 'string'"),
        ([None], "None is not of type 'string'"),
        ([NORTH, NORTH], "has non-unique elements"),
    ],
)
def test_a_body_that_is_no_list_of_different_uuids_is_refused_until_1_18(
    api: ApiClient, version: str, body: Any, problem: str
) -> None:
    answer = api.at(version).put(path(HOST), body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail


# From 1.19: the bodies of requests and answers have the generation.


@on_sqlite
@pytest.mark.parametrize("version", ["1.19", "1.39"])
def test_aggregates_are_shown_with_the_generation_from_1_19_on(
    api: ApiClient, version: str
) -> None:
    expected = {"aggregates": [], "resource_provider_generation": 0}
    assert api.at(version).get(path(HOST)).json == expected
    put(api, [NORTH], 0)
    expected = {"aggregates": [NORTH], "resource_provider_generation": 1}
    assert api.at(version).get(path(HOST)).json == expected


@pytest.mark.parametrize("version", ["1.19", "1.39"])
def test_nova_replaces_aggregates_at_a_generation_from_1_19_on(
    api: ApiClient, version: str
) -> None:
    for number, wanted in enumerate(([NORTH, SOUTH], [SOUTH, EAST], [], [NORTH])):
        answer = put(api.at(version), wanted, number)
        assert answer.status == 200
        assert answer.json == {"aggregates": wanted, "resource_provider_generation": number + 1}
        assert aggregates(api) == sorted(wanted)
        assert generation(api) == number + 1


@pytest.mark.parametrize("uuids", [[], [NORTH]])
def test_a_replacement_moves_the_generation_even_if_it_is_the_same(
    api: ApiClient, uuids: list[str]
) -> None:
    numbers = [put(api, uuids, number).json["resource_provider_generation"] for number in range(3)]
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("sent", [0, 2, -1])
def test_a_stale_generation_is_a_conflict(api: ApiClient, sent: int) -> None:
    put(api, [NORTH], 0)
    answer = put(api, [SOUTH], sent)
    assert answer.status == 409
    assert (
        "Resource provider's generation already changed. Please update the generation and try "
        "again." in answer.detail
    )
    assert answer.error["code"] == "placement.concurrent_update"
    assert (aggregates(api), generation(api)) == ([NORTH], 1)


@on_sqlite
@pytest.mark.parametrize("version", ["1.19", "1.39"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ([NORTH], "is not of type 'object'"),
        ({"aggregates": [NORTH]}, "'resource_provider_generation' is a required property"),
        ({"resource_provider_generation": 0}, "'aggregates' is a required property"),
        (
            {"aggregates": [], "resource_provider_generation": "0"},
            "'0' is not of type 'integer'",
        ),
        (
            {"aggregates": [], "resource_provider_generation": None},
            "None is not of type 'integer'",
        ),
        (
            {"aggregates": {}, "resource_provider_generation": 0},
            "{} is not of type 'array'",
        ),
        ({"aggregates": ["north"], "resource_provider_generation": 0}, "is not a 'uuid'"),
        (
            {"aggregates": [NORTH, NORTH], "resource_provider_generation": 0},
            "has non-unique elements",
        ),
        (
            {"aggregates": [], "resource_provider_generation": 0, "size": 1},
            "Additional properties are not allowed ('size' was unexpected)",
        ),
    ],
)
def test_a_body_without_aggregates_and_generation_is_refused_from_1_19_on(
    api: ApiClient, version: str, body: Any, problem: str
) -> None:
    answer = api.at(version).put(path(HOST), body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail
    assert generation(api) == 0


# All versions.


@pytest.mark.parametrize("version", ["1.1", "1.39"])
def test_a_missing_provider_has_no_aggregates(api: ApiClient, version: str) -> None:
    body = [] if version == "1.1" else {"aggregates": [], "resource_provider_generation": 0}
    for answer in (
        api.at(version).get(path(NOWHERE)),
        api.at(version).put(path(NOWHERE), body),
    ):
        assert answer.status == 404
        assert f"No resource provider with uuid {NOWHERE} found" in answer.detail


def test_a_provider_stays_in_an_aggregate_that_another_provider_leaves(api: ApiClient) -> None:
    put(api, [NORTH, SOUTH], 0)
    put(api, [NORTH], 0, OTHER)
    put(api, [], 1)
    assert (aggregates(api), aggregates(api, OTHER)) == ([], [NORTH])
    found = api.get(f"/resource_providers?member_of={NORTH}").json["resource_providers"]
    assert [item["uuid"] for item in found] == [OTHER]


def test_many_providers_can_join_a_new_aggregate_at_once(api: ApiClient) -> None:
    made = [
        api.post("/resource_providers", {"name": f"host {number}"}).json["uuid"]
        for number in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda uuid: put(api, [NORTH, SOUTH, EAST], 0, uuid).status, made))
    assert statuses == [200] * 8
    found = api.get(f"/resource_providers?member_of={SOUTH}").json["resource_providers"]
    assert {item["uuid"] for item in found} == set(made)


def test_one_of_many_clients_at_one_generation_replaces_the_aggregates(api: ApiClient) -> None:
    wanted = [[NORTH], [SOUTH], [EAST], []] * 2
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda uuids: put(api, uuids, 0).status, wanted))
    assert statuses == {200: 1, 409: 7}
    assert generation(api) == 1


@on_sqlite
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_last_modified_is_now_from_1_15_on(api: ApiClient, method: str) -> None:
    body: list[str] | None = [NORTH] if method == "PUT" else None
    before = api.at("1.14").request(method, path(HOST), body)
    assert not before.headers.keys() & {"last-modified", "cache-control"}
    after = api.at("1.15").request(method, path(HOST), body)
    assert after.headers["cache-control"] == "no-cache"
    age = datetime.now(UTC) - parsedate_to_datetime(after.headers["last-modified"])
    assert abs(age) < timedelta(minutes=5)
