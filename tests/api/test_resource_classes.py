"""Resource classes: the standard classes, and the custom classes that clients make."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import os_resource_classes
import pytest

from support.api_client import ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
GOLD = "/resource_classes/CUSTOM_GOLD"


def representation(name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": f"/resource_classes/{name}"}]}


def listed(api: ApiClient) -> list[str]:
    return [item["name"] for item in api.get("/resource_classes").json["resource_classes"]]


def make_host_with_gold(api: ApiClient) -> str:
    """The path of a new provider with 5 CUSTOM_GOLD."""
    api.put(GOLD)
    api.post("/resource_providers", {"name": "host", "uuid": HOST})
    body = {"resource_class": "CUSTOM_GOLD", "total": 5}
    assert api.post(f"/resource_providers/{HOST}/inventories", body).status == 201
    return f"/resource_providers/{HOST}"


def test_the_standard_classes_are_there_from_the_start(api: ApiClient) -> None:
    assert sorted(listed(api)) == sorted(os_resource_classes.STANDARDS)
    assert len(listed(api)) == 21


@pytest.mark.parametrize("version", ["1.2", "1.7", "1.39"])
def test_a_class_is_shown_by_name_with_a_link_to_itself(api: ApiClient, version: str) -> None:
    answer = api.at(version).get("/resource_classes/VCPU")
    assert answer.status == 200
    assert answer.json == representation("VCPU")
    assert (
        representation("VCPU") in api.at(version).get("/resource_classes").json["resource_classes"]
    )


def test_an_unknown_class_is_not_found(api: ApiClient) -> None:
    answer = api.get(GOLD)
    assert answer.status == 404
    assert "No such resource class CUSTOM_GOLD" in answer.detail


@pytest.mark.parametrize("version", ["1.2", "1.39"])
def test_a_custom_class_can_be_made(api: ApiClient, version: str) -> None:
    answer = api.at(version).post("/resource_classes", {"name": "CUSTOM_GOLD"})
    assert (answer.status, answer.body) == (201, b"")
    assert answer.headers["location"] == f"http://roost.example{GOLD}"
    assert api.get(GOLD).json == representation("CUSTOM_GOLD")
    assert "CUSTOM_GOLD" in listed(api)


def test_a_class_that_exists_cannot_be_made_again(api: ApiClient) -> None:
    api.post("/resource_classes", {"name": "CUSTOM_GOLD"})
    answer = api.post("/resource_classes", {"name": "CUSTOM_GOLD"})
    assert answer.status == 409
    assert "Conflicting resource class already exists" in answer.detail
    assert answer.error["code"] == "placement.undefined_code"


LONGEST = "CUSTOM_" + "X" * 248

INVALID = [
    ({}, "'name' is a required property"),
    ({"name": 5}, "5 is not of type 'string'"),
    ({"name": None}, "None is not of type 'string'"),
    ({"name": "VCPU"}, "'VCPU' does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": "GOLD"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": "CUSTOM_"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": "CUSTOM_gold"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": "CUSTOM_GOLD-1"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": " CUSTOM_GOLD"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": "CUSTOM_\u00c9"}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": ""}, "does not match '^CUSTOM_[A-Z0-9_]+$'"),
    ({"name": LONGEST + "X"}, "is too long"),
    (
        {"name": "CUSTOM_GOLD", "size": 1},
        "Additional properties are not allowed ('size' was unexpected)",
    ),
    ([], "[] is not of type 'object'"),
]


@on_sqlite
@pytest.mark.parametrize(("body", "problem"), INVALID)
def test_a_bad_body_makes_no_class(api: ApiClient, body: Any, problem: str) -> None:
    answer = api.post("/resource_classes", body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail


@on_sqlite
@pytest.mark.parametrize(("body", "problem"), INVALID)
def test_a_bad_body_renames_no_class(api: ApiClient, body: Any, problem: str) -> None:
    # The server checks the body before it looks up the class.
    answer = api.at("1.6").put("/resource_classes/CUSTOM_NOWHERE", body)
    assert answer.status == 400
    assert problem in answer.detail


def test_a_name_may_have_255_characters(api: ApiClient) -> None:
    assert api.post("/resource_classes", {"name": LONGEST}).status == 201
    assert api.get(f"/resource_classes/{LONGEST}").json["name"] == LONGEST


# PUT, 1.2 to 1.6: rename.


@pytest.mark.parametrize("version", ["1.2", "1.6"])
def test_a_class_can_be_renamed(api: ApiClient, version: str) -> None:
    api.put(GOLD)
    answer = api.at(version).put(GOLD, {"name": "CUSTOM_SILVER"})
    assert answer.status == 200
    assert answer.json == representation("CUSTOM_SILVER")
    assert api.get(GOLD).status == 404
    assert api.get("/resource_classes/CUSTOM_SILVER").status == 200


def test_inventories_and_allocations_show_the_new_name_of_a_class(api: ApiClient) -> None:
    host = make_host_with_gold(api)
    claim = {
        "allocations": {HOST: {"resources": {"CUSTOM_GOLD": 2}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", claim).status == 204
    before = api.get(host).json["generation"]
    assert api.at("1.6").put(GOLD, {"name": "CUSTOM_SILVER"}).status == 200
    assert list(api.get(f"{host}/inventories").json["inventories"]) == ["CUSTOM_SILVER"]
    held = api.get(f"/allocations/{CONSUMER}").json["allocations"][HOST]
    assert held["resources"] == {"CUSTOM_SILVER": 2}
    assert api.get(host).json["generation"] == before


def test_a_class_may_be_renamed_to_its_own_name(api: ApiClient) -> None:
    api.put(GOLD)
    answer = api.at("1.6").put(GOLD, {"name": "CUSTOM_GOLD"})
    assert (answer.status, answer.json) == (200, representation("CUSTOM_GOLD"))


def test_an_unknown_class_cannot_be_renamed(api: ApiClient) -> None:
    answer = api.at("1.6").put(GOLD, {"name": "CUSTOM_SILVER"})
    assert answer.status == 404
    assert "No such resource class CUSTOM_GOLD" in answer.detail
    assert "CUSTOM_SILVER" not in listed(api)


def test_a_standard_class_cannot_be_renamed(api: ApiClient) -> None:
    answer = api.at("1.6").put("/resource_classes/VCPU", {"name": "CUSTOM_SILVER"})
    assert answer.status == 400
    assert "Cannot update standard resource class VCPU" in answer.detail


def test_a_class_cannot_be_renamed_to_one_that_exists(api: ApiClient) -> None:
    api.put(GOLD)
    api.put("/resource_classes/CUSTOM_SILVER")
    answer = api.at("1.6").put(GOLD, {"name": "CUSTOM_SILVER"})
    assert answer.status == 409
    assert "Resource class already exists" in answer.detail


# PUT, from 1.7: make or confirm.


@pytest.mark.parametrize("version", ["1.7", "1.39"])
def test_a_class_is_made_once_and_then_confirmed(api: ApiClient, version: str) -> None:
    answers = [api.at(version).put(GOLD) for _ in range(3)]
    assert [answer.status for answer in answers] == [201, 204, 204]
    for answer in answers:
        assert answer.body == b""
        assert answer.headers["location"] == f"http://roost.example{GOLD}"
    assert listed(api).count("CUSTOM_GOLD") == 1


@on_sqlite
@pytest.mark.parametrize(
    "name", ["VCPU", "GOLD", "CUSTOM_", "CUSTOM_gold", "CUSTOM_GOLD%20", "CUSTOM_%C3%89"]
)
def test_a_name_that_is_not_custom_can_neither_be_made_nor_confirmed(
    api: ApiClient, name: str
) -> None:
    answer = api.put(f"/resource_classes/{name}")
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert "does not match '^CUSTOM_" in answer.detail


@on_sqlite
def test_a_name_that_is_too_long_cannot_be_made(api: ApiClient) -> None:
    answer = api.put(f"/resource_classes/{LONGEST}X")
    assert answer.status == 400
    assert "is too long" in answer.detail


# DELETE.


def test_a_class_that_is_not_in_use_can_be_deleted(api: ApiClient) -> None:
    api.put(GOLD)
    answer = api.delete(GOLD)
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(GOLD).status == 404
    assert "CUSTOM_GOLD" not in listed(api)


def test_an_unknown_class_cannot_be_deleted(api: ApiClient) -> None:
    answer = api.delete(GOLD)
    assert answer.status == 404
    assert "No such resource class CUSTOM_GOLD" in answer.detail


def test_a_standard_class_cannot_be_deleted(api: ApiClient) -> None:
    answer = api.delete("/resource_classes/VCPU")
    assert answer.status == 400
    assert (
        "Error in delete resource class: Cannot delete standard resource class VCPU."
        in answer.detail
    )


def test_a_class_with_an_inventory_cannot_be_deleted(api: ApiClient) -> None:
    host = make_host_with_gold(api)
    answer = api.delete(GOLD)
    assert answer.status == 409
    assert "Error in delete resource class: " in answer.detail
    assert "Class is in use in inventory." in answer.detail
    assert answer.error["code"] == "placement.undefined_code"
    assert api.delete(f"{host}/inventories").status == 204
    assert api.delete(GOLD).status == 204


# On every database.


@pytest.mark.parametrize("name", ["custom_gold", "Custom_Gold", "CUSTOM_GOLD%20"])
def test_names_are_compared_letter_by_letter(api: ApiClient, name: str) -> None:
    api.put(GOLD)
    path = f"/resource_classes/{name}"
    assert api.get(path).status == 404
    assert api.delete(path).status == 404
    assert api.at("1.6").put(path, {"name": "CUSTOM_SILVER"}).status == 404
    assert api.get(GOLD).status == 200


def test_many_clients_can_make_different_classes_at_once(api: ApiClient) -> None:
    names = [f"CUSTOM_METAL_{number}" for number in range(12)]
    with ThreadPoolExecutor(len(names)) as pool:
        statuses = list(pool.map(lambda name: api.put(f"/resource_classes/{name}").status, names))
    assert statuses == [201] * len(names)
    assert set(names) <= set(listed(api))


def test_one_of_many_clients_makes_the_class_and_all_other_clients_find_it(api: ApiClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda _: api.put(GOLD).status, range(8)))
    assert statuses == {201: 1, 204: 7}


# The header last-modified.


@pytest.mark.parametrize("path", ["/resource_classes", GOLD])
def test_last_modified_is_the_time_at_which_the_class_was_made(api: ApiClient, path: str) -> None:
    api.put(GOLD)
    assert "last-modified" not in api.at("1.14").get(path).headers
    answer = api.at("1.15").get(path)
    assert answer.headers["cache-control"] == "no-cache"
    age = datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])
    assert abs(age) < timedelta(minutes=5)


@on_sqlite
@pytest.mark.parametrize(
    ("version", "method", "path", "body"),
    [
        ("1.39", "POST", "/resource_classes", {"name": "CUSTOM_SILVER"}),
        ("1.39", "PUT", GOLD, None),
        ("1.39", "PUT", "/resource_classes/CUSTOM_SILVER", None),
        ("1.39", "DELETE", GOLD, None),
    ],
)
def test_writes_have_no_last_modified(
    api: ApiClient, version: str, method: str, path: str, body: Any
) -> None:
    api.put(GOLD)
    answer = api.at(version).request(method, path, body)
    assert answer.status in (201, 204)
    assert not answer.headers.keys() & {"last-modified", "cache-control"}
