"""Traits: their names, and the traits of each provider."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import os_traits
import pytest
from sqlalchemy import update

from roost.store import tables
from roost.store.database import Database
from support.api_client import Answer, ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
OTHER = "c0ffee00-0000-0000-0000-000000000002"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
VMX, AVX = "HW_CPU_X86_VMX", "HW_CPU_X86_AVX"
GOLD, SILVER = "CUSTOM_GOLD", "CUSTOM_SILVER"
LONGEST = "CUSTOM_" + "X" * 248


def path(uuid: str) -> str:
    return f"/resource_providers/{uuid}/traits"


@pytest.fixture
def host(api: ApiClient) -> str:
    """The path of the traits of a provider that has none, at generation 0."""
    for name in (GOLD, SILVER):
        assert api.put(f"/traits/{name}").status == 201
    for uuid in (HOST, OTHER):
        assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    return path(HOST)


def listed(api: ApiClient, query: str = "") -> list[str]:
    answer = api.get(f"/traits?{query}")
    assert answer.status == 200, answer.body
    return sorted(answer.json["traits"])


def put(api: ApiClient, names: list[str], generation: int, uuid: str = HOST) -> Answer:
    body = {"traits": names, "resource_provider_generation": generation}
    return api.put(path(uuid), body)


def generation(api: ApiClient) -> int:
    number: int = api.get(f"/resource_providers/{HOST}").json["generation"]
    return number


def age_of(answer: Answer) -> timedelta:
    return datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])


def make_old(database: Database, *names: str) -> None:
    moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=3)
    statement = (
        update(tables.traits)
        .where(tables.traits.c.name.in_(names))
        .values(created_at=moment, updated_at=None)
    )
    database.write_at_once(lambda connection: connection.execute(statement))


# The names.


@pytest.mark.parametrize("version", ["1.6", "1.39"])
def test_the_standard_traits_are_there_from_the_start(api: ApiClient, version: str) -> None:
    standard = [name for name in os_traits.get_traits() if not name.startswith("CUSTOM_")]
    assert listed(api.at(version)) == sorted(standard)


@pytest.mark.parametrize("version", ["1.6", "1.39"])
def test_a_trait_is_made_once_and_then_confirmed(api: ApiClient, version: str) -> None:
    answers = [api.at(version).put(f"/traits/{GOLD}") for _ in range(3)]
    assert [answer.status for answer in answers] == [201, 204, 204]
    for answer in answers:
        assert answer.body == b""
        assert answer.headers["location"] == f"http://roost.example/traits/{GOLD}"
    assert listed(api).count(GOLD) == 1


@on_sqlite
@pytest.mark.parametrize(
    "name",
    [VMX, "GOLD", "CUSTOM_", "CUSTOM_gold", "CUSTOM_GOLD-1", "CUSTOM_GOLD%20", LONGEST + "X"],
)
def test_a_name_that_is_not_custom_cannot_be_made(api: ApiClient, name: str) -> None:
    answer = api.put(f"/traits/{name}")
    assert answer.status == 400
    assert (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with "
        'the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        in answer.detail
    )


def test_a_name_may_have_255_characters(api: ApiClient) -> None:
    assert api.put(f"/traits/{LONGEST}").status == 201
    assert api.get(f"/traits/{LONGEST}").status == 204


@pytest.mark.parametrize("name", [VMX, GOLD])
def test_a_trait_that_exists_is_confirmed_without_a_body(api: ApiClient, name: str) -> None:
    api.put(f"/traits/{GOLD}")
    answer = api.get(f"/traits/{name}")
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", [GOLD, "HW_NOWHERE", "nonsense"])
def test_a_trait_that_does_not_exist_is_not_found(api: ApiClient, method: str, name: str) -> None:
    answer = api.request(method, f"/traits/{name}")
    assert answer.status == 404
    assert f"No such trait(s): {name}." in answer.detail


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", ["custom_gold", "Custom_Gold", "CUSTOM_GOLD%20", VMX.lower()])
def test_names_are_compared_letter_by_letter(api: ApiClient, method: str, name: str) -> None:
    api.put(f"/traits/{GOLD}")
    assert api.request(method, f"/traits/{name}").status == 404
    assert api.get(f"/traits/{GOLD}").status == 204


def test_a_trait_that_no_provider_has_can_be_deleted(api: ApiClient) -> None:
    api.put(f"/traits/{GOLD}")
    answer = api.delete(f"/traits/{GOLD}")
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(f"/traits/{GOLD}").status == 404


def test_a_standard_trait_cannot_be_deleted(api: ApiClient) -> None:
    answer = api.delete(f"/traits/{VMX}")
    assert answer.status == 400
    assert f"Cannot delete standard trait {VMX}." in answer.detail
    assert api.get(f"/traits/{VMX}").status == 204


def test_a_trait_that_a_provider_has_cannot_be_deleted(api: ApiClient, host: str) -> None:
    put(api, [GOLD], 0)
    answer = api.delete(f"/traits/{GOLD}")
    assert answer.status == 409
    assert f"The trait {GOLD} is in use by a resource provider." in answer.detail
    assert answer.error["code"] == "placement.undefined_code"
    assert api.delete(host).status == 204
    assert api.delete(f"/traits/{GOLD}").status == 204


def test_one_of_many_clients_makes_the_trait_and_all_other_clients_find_it(api: ApiClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda _: api.put(f"/traits/{GOLD}").status, range(8)))
    assert statuses == {201: 1, 204: 7}


# Listing.


@pytest.mark.usefixtures("host")
def test_traits_can_be_listed_by_name_and_by_use(api: ApiClient) -> None:
    put(api, [GOLD, VMX], 0)
    expected = {
        f"name=in:{GOLD},{VMX},HW_NOWHERE": [GOLD, VMX],
        f"name=in:{GOLD}": [GOLD],
        "name=in:": [],
        "name=startswith:CUSTOM_": [GOLD, SILVER],
        "name=startswith:CUSTOM_G": [GOLD],
        "name=startswith:NOTHING": [],
        "associated=true": [GOLD, VMX],
        "associated=TRUE": [GOLD, VMX],
        "name=startswith:CUSTOM_&associated=true": [GOLD],
        "name=startswith:CUSTOM_&associated=false": [SILVER],
        f"name=in:{GOLD},{VMX},{AVX}&associated=False": [AVX],
        # The last value of a repeated key counts.
        f"name=in:{GOLD}&name=in:{SILVER}": [SILVER],
    }
    assert {query: listed(api, query) for query in expected} == expected


def test_an_empty_prefix_and_an_unknown_word_do_not_filter(api: ApiClient) -> None:
    everything = listed(api)
    assert listed(api, "name=startswith:") == everything
    assert listed(api, f"name=like:{VMX}") == everything
    assert listed(api, f"name=:{VMX}") == everything
    assert listed(api, "associated=false") == everything


@on_sqlite
@pytest.mark.parametrize("value", [GOLD, "", "startswith"])
def test_a_name_without_a_colon_is_refused(api: ApiClient, value: str) -> None:
    answer = api.get(f"/traits?name={value}")
    assert answer.status == 400
    assert (
        "Badly formatted name parameter. Expected name query string parameter in form: "
        f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"' in answer.detail
    )


@on_sqlite
@pytest.mark.parametrize("value", ["", "yes", "1", "true,false"])
def test_an_associated_that_is_neither_true_nor_false_is_refused(
    api: ApiClient, value: str
) -> None:
    answer = api.get(f"/traits?associated={value}")
    assert answer.status == 400
    assert 'The query parameter "associated" only accepts "true" or "false"' in answer.detail


@on_sqlite
@pytest.mark.parametrize("query", ["unknown=1", "limit=5", "names=in:A"])
def test_other_keys_are_refused(api: ApiClient, query: str) -> None:
    answer = api.get(f"/traits?{query}")
    assert answer.status == 400
    key = query.partition("=")[0]
    assert (
        "Invalid query string parameters: Additional properties are not allowed "
        f"('{key}' was unexpected)" in answer.detail
    )


# The traits of a provider.


@pytest.mark.parametrize("version", ["1.6", "1.39"])
def test_horizon_reads_the_traits_of_a_provider(api: ApiClient, host: str, version: str) -> None:
    answer = api.at(version).get(host)
    assert answer.status == 200
    assert answer.json == {"traits": [], "resource_provider_generation": 0}
    put(api, [GOLD], 0)
    expected = {"traits": [GOLD], "resource_provider_generation": 1}
    assert api.at(version).get(host).json == expected


def test_the_traits_of_a_provider_can_be_replaced(api: ApiClient, host: str) -> None:
    for number, wanted in enumerate(([GOLD, VMX], [VMX, SILVER], [], [AVX])):
        answer = put(api, wanted, number)
        assert answer.status == 200
        assert sorted(answer.json["traits"]) == sorted(wanted)
        assert answer.json["resource_provider_generation"] == number + 1
        assert sorted(api.get(host).json["traits"]) == sorted(wanted)
        assert generation(api) == number + 1


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("names", [[], [GOLD, VMX]])
def test_the_generation_stays_if_the_set_is_the_same(api: ApiClient, names: list[str]) -> None:
    put(api, names, 0)
    before = generation(api)
    answer = put(api, [*reversed(names), *names], before)
    assert answer.status == 200
    assert answer.json["resource_provider_generation"] == before
    assert sorted(answer.json["traits"]) == sorted(names)
    assert generation(api) == before


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("sent", [0, 2, -1])
@pytest.mark.parametrize("names", [[GOLD], [SILVER]])
def test_a_stale_generation_is_a_conflict(api: ApiClient, sent: int, names: list[str]) -> None:
    put(api, [GOLD], 0)
    answer = put(api, names, sent)
    assert answer.status == 409
    assert (
        "Resource provider's generation already changed. Please update the generation and try "
        "again." in answer.detail
    )
    assert answer.error["code"] == "placement.concurrent_update"
    assert api.get(path(HOST)).json["traits"] == [GOLD]


@pytest.mark.usefixtures("host")
def test_all_unknown_traits_are_named(api: ApiClient) -> None:
    answer = put(api, ["CUSTOM_LEAD", GOLD, "CUSTOM_TIN"], 0)
    assert answer.status == 400
    assert "No such trait CUSTOM_LEAD, CUSTOM_TIN" in answer.detail
    assert api.get(path(HOST)).json == {"traits": [], "resource_provider_generation": 0}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", ["custom_gold", "CUSTOM_GOLD ", "hw_cpu_x86_vmx"])
def test_a_provider_gets_no_trait_of_a_similar_name(api: ApiClient, name: str) -> None:
    answer = put(api, [name], 0)
    assert answer.status == 400
    assert f"No such trait {name}" in answer.detail


@on_sqlite
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"traits": []}, "'resource_provider_generation' is a required property"),
        ({"resource_provider_generation": 0}, "'traits' is a required property"),
        ({"traits": GOLD, "resource_provider_generation": 0}, "is not of type 'array'"),
        ({"traits": [1], "resource_provider_generation": 0}, "1 is not of type 'string'"),
        ({"traits": [""], "resource_provider_generation": 0}, "should be non-empty"),
        ({"traits": ["X" * 256], "resource_provider_generation": 0}, "is too long"),
        ({"traits": [], "resource_provider_generation": "0"}, "'0' is not of type 'integer'"),
        (
            {"traits": [], "resource_provider_generation": 0, "size": 1},
            "Additional properties are not allowed ('size' was unexpected)",
        ),
        ([GOLD], "is not of type 'object'"),
    ],
)
@pytest.mark.parametrize("uuid", [HOST, NOWHERE])
def test_a_bad_body_is_reported_before_a_missing_provider(
    api: ApiClient, uuid: str, body: Any, problem: str
) -> None:
    answer = api.put(path(uuid), body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail


def test_a_provider_can_lose_all_its_traits(api: ApiClient, host: str) -> None:
    put(api, [GOLD, VMX], 0)
    answer = api.delete(host)
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(host).json == {"traits": [], "resource_provider_generation": 2}


def test_a_provider_without_traits_keeps_its_generation_when_they_are_deleted(
    api: ApiClient, host: str
) -> None:
    assert api.delete(host).status == 204
    assert generation(api) == 0


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_missing_provider_has_no_traits(api: ApiClient, method: str) -> None:
    body = {"traits": [], "resource_provider_generation": 0} if method == "PUT" else None
    answer = api.request(method, path(NOWHERE), body)
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found" in answer.detail


@pytest.mark.usefixtures("host")
def test_a_provider_keeps_a_trait_that_another_provider_loses(api: ApiClient) -> None:
    put(api, [GOLD, VMX], 0)
    put(api, [GOLD], 0, OTHER)
    put(api, [], 1)
    assert api.get(path(OTHER)).json["traits"] == [GOLD]


# The header last-modified.


@on_sqlite
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "/traits", None),
        ("GET", f"/traits/{GOLD}", None),
        ("PUT", f"/traits/{GOLD}", None),
        ("PUT", "/traits/CUSTOM_LEAD", None),
        ("GET", path(HOST), None),
        ("PUT", path(HOST), {"traits": [], "resource_provider_generation": 0}),
        ("GET", "/traits?name=in:HW_NOWHERE", None),
    ],
)
def test_answers_have_last_modified_from_1_15_on(
    api: ApiClient, method: str, target: str, body: Any
) -> None:
    before = api.at("1.14").request(method, target, body)
    assert not before.headers.keys() & {"last-modified", "cache-control"}
    after = api.at("1.15").request(method, target, body)
    assert after.status in (200, 201, 204)
    assert after.headers["cache-control"] == "no-cache"
    assert abs(age_of(after)) < timedelta(minutes=5)


def test_last_modified_is_the_time_of_the_newest_trait(
    api: ApiClient, host: str, database: Database
) -> None:
    make_old(database, SILVER, VMX)
    days = timedelta(days=2)
    assert age_of(api.get(f"/traits/{SILVER}")) > days
    assert age_of(api.put(f"/traits/{SILVER}")) > days
    assert age_of(api.get(f"/traits?name=in:{SILVER},{VMX}")) > days
    assert age_of(api.get(f"/traits?name=in:{SILVER},{GOLD}")) < days
    # The time at which the provider gets the traits does not count.
    assert age_of(put(api, [SILVER, VMX], 0)) > days
    assert age_of(api.get(host)) > days
    assert age_of(put(api, [SILVER, GOLD], 1)) < days


@on_sqlite
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("target", [f"/traits/{GOLD}", path(HOST)])
def test_a_deletion_has_no_last_modified(api: ApiClient, target: str) -> None:
    answer = api.delete(target)
    assert answer.status == 204
    assert not answer.headers.keys() & {"last-modified", "cache-control"}
