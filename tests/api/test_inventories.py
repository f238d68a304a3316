"""The inventories of a provider, its usages and its allocations."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from sqlalchemy import update

from roost.store import tables
from roost.store.database import Database
from support.api_client import Answer, ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
PROVIDER = f"/resource_providers/{HOST}"
ALL = f"{PROVIDER}/inventories"
MISSING = f"/resource_providers/{NOWHERE}/inventories"
INTEGER_MAX = 2147483647

DEFAULTS = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": INTEGER_MAX,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


@pytest.fixture(autouse=True)
def host(api: ApiClient) -> None:
    """A provider without inventories, at generation 0."""
    assert api.post("/resource_providers", {"name": "host", "uuid": HOST}).status == 200


def generation(api: ApiClient) -> int:
    number: int = api.get(PROVIDER).json["generation"]
    return number


def replace_all(api: ApiClient, **inventories: Any) -> Answer:
    """Replace the inventories of the provider by these, at the present generation."""
    body = {"inventories": inventories, "resource_provider_generation": generation(api)}
    return api.put(ALL, body)


def shown(api: ApiClient) -> dict[str, Any]:
    found: dict[str, Any] = api.get(ALL).json["inventories"]
    return found


def totals(api: ApiClient) -> dict[str, int]:
    return {name: inventory["total"] for name, inventory in shown(api).items()}


def claim(api: ApiClient, **resources: int) -> None:
    body = {
        "allocations": {HOST: {"resources": resources}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", body).status == 204


def age_of(answer: Answer) -> timedelta:
    return datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])


# Reading.


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_a_provider_without_inventories_shows_none(api: ApiClient, version: str) -> None:
    answer = api.at(version).get(ALL)
    assert answer.status == 200
    assert answer.json == {"resource_provider_generation": 0, "inventories": {}}


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_all_inventories_are_shown_by_class(api: ApiClient, version: str) -> None:
    full = {
        "total": 100,
        "reserved": 7,
        "min_unit": 2,
        "max_unit": 50,
        "step_size": 2,
        "allocation_ratio": 1.5,
    }
    replace_all(api, VCPU=full, DISK_GB={"total": 5})
    assert api.at(version).get(ALL).json == {
        "resource_provider_generation": 1,
        "inventories": {"VCPU": full, "DISK_GB": {"total": 5} | DEFAULTS},
    }


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_one_inventory_is_shown_with_the_generation(api: ApiClient, version: str) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    answer = api.at(version).get(f"{ALL}/VCPU")
    assert answer.status == 200
    assert answer.json == {"total": 5, "resource_provider_generation": 1} | DEFAULTS


@pytest.mark.parametrize("name", ["VCPU", "CUSTOM_NOWHERE", "nonsense", "disk_gb"])
def test_a_missing_inventory_is_reported_with_the_text_that_neutron_matches_on(
    api: ApiClient, name: str
) -> None:
    replace_all(api, DISK_GB={"total": 6})
    answer = api.get(f"{ALL}/{name}")
    assert answer.status == 404
    assert f"No inventory of class {name} for {HOST}" in answer.detail


@on_sqlite
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", MISSING, None),
        ("GET", f"{MISSING}/VCPU", None),
        ("POST", MISSING, {"resource_class": "VCPU", "total": 1}),
        ("PUT", MISSING, {"inventories": {}, "resource_provider_generation": 0}),
        ("PUT", f"{MISSING}/VCPU", {"total": 1, "resource_provider_generation": 0}),
        ("DELETE", MISSING, None),
        ("DELETE", f"{MISSING}/VCPU", None),
    ],
)
def test_a_missing_provider_has_no_inventories(
    api: ApiClient, method: str, path: str, body: Any
) -> None:
    answer = api.request(method, path, body)
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found" in answer.detail


# The fields of an inventory: POST and both PUTs have the same rules.


def write_one(api: ApiClient, method: str, inventory: dict[str, Any]) -> Answer:
    """Add the inventory of VCPU, or replace the present inventory by it."""
    if method == "POST":
        return api.post(ALL, {"resource_class": "VCPU"} | inventory)
    if method == "PUT all":
        return replace_all(api, VCPU=inventory)
    assert api.post(ALL, {"resource_class": "VCPU", "total": 1}).status == 201
    return api.put(f"{ALL}/VCPU", inventory | {"resource_provider_generation": generation(api)})


WAYS = pytest.mark.parametrize("way", ["POST", "PUT all", "PUT one"])


@on_sqlite
@WAYS
@pytest.mark.parametrize(
    ("inventory", "problem", "where"),
    [
        ({}, "'total' is a required property", "required"),
        ({"total": 0}, "0 is less than the minimum of 1", "minimum"),
        ({"total": INTEGER_MAX + 1}, "is greater than the maximum of 2147483647", "maximum"),
        ({"total": 10.5}, "10.5 is not of type 'integer'", "type"),
        ({"total": "10"}, "'10' is not of type 'integer'", "type"),
        ({"total": True}, "True is not of type 'integer'", "type"),
        ({"total": None}, "None is not of type 'integer'", "type"),
        ({"total": 1, "reserved": -1}, "-1 is less than the minimum of 0", "minimum"),
        ({"total": 1, "reserved": INTEGER_MAX + 1}, "greater than the maximum of", "maximum"),
        ({"total": 1, "min_unit": 0}, "0 is less than the minimum of 1", "minimum"),
        ({"total": 1, "min_unit": INTEGER_MAX + 1}, "greater than the maximum of", "maximum"),
        ({"total": 1, "max_unit": 0}, "0 is less than the minimum of 1", "minimum"),
        ({"total": 1, "max_unit": INTEGER_MAX + 1}, "greater than the maximum of", "maximum"),
        ({"total": 1, "step_size": 0}, "0 is less than the minimum of 1", "minimum"),
        ({"total": 1, "step_size": INTEGER_MAX + 1}, "greater than the maximum of", "maximum"),
        ({"total": 1, "allocation_ratio": 3.5e38}, "greater than the maximum of", "maximum"),
        ({"total": 1, "allocation_ratio": "2"}, "'2' is not of type 'number'", "type"),
        ({"total": 1, "allocation_ratio": None}, "None is not of type 'number'", "type"),
        (
            {"total": 1, "size": 1},
            "Additional properties are not allowed ('size' was unexpected)",
            "additionalProperties",
        ),
    ],
)
def test_an_inventory_that_fails_the_schema_is_refused(
    api: ApiClient, way: str, inventory: dict[str, Any], problem: str, where: str
) -> None:
    answer = write_one(api, way, inventory)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail
    assert f"Failed validating '{where}' in schema" in answer.detail
    assert totals(api) == ({"VCPU": 1} if way == "PUT one" else {})


@WAYS
@pytest.mark.parametrize(
    "inventory",
    [
        {
            "total": INTEGER_MAX,
            "reserved": INTEGER_MAX,
            "min_unit": INTEGER_MAX,
            "max_unit": INTEGER_MAX,
            "step_size": INTEGER_MAX,
            "allocation_ratio": 3e38,
        },
        # The server does not compare the units with each other.
        {"total": 1, "min_unit": 50, "max_unit": 2, "step_size": 100},
        {"total": 1, "allocation_ratio": 2},
        {"total": 1},
    ],
    ids=["largest", "odd units", "whole ratio", "defaults"],
)
def test_an_inventory_is_shown_as_it_was_sent(
    api: ApiClient, way: str, inventory: dict[str, Any]
) -> None:
    answer = write_one(api, way, inventory)
    assert answer.status in (200, 201)
    expected = DEFAULTS | inventory
    stored = shown(api)["VCPU"]
    assert stored.pop("allocation_ratio") == pytest.approx(expected.pop("allocation_ratio"))
    assert stored == expected


@WAYS
def test_a_whole_number_may_be_written_with_a_point(api: ApiClient, way: str) -> None:
    answer = write_one(api, way, {"total": 10.0, "reserved": 1.0, "max_unit": 5.0})
    assert answer.status in (200, 201)
    found = shown(api)["VCPU"]
    assert (found["total"], found["reserved"], found["max_unit"]) == (10, 1, 5)
    assert all(isinstance(found[name], int) for name in ("total", "reserved", "max_unit"))


def test_a_ratio_keeps_six_digits_on_every_database(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 1000, "allocation_ratio": 1.23456})
    assert shown(api)["VCPU"]["allocation_ratio"] == pytest.approx(1.23456, rel=1e-6)


FITS = [
    # The inventory, whether it is accepted until 1.25, and whether from 1.26 on.
    ({"total": 10, "reserved": 9}, True, True),
    ({"total": 10, "reserved": 10}, False, True),
    ({"total": 10, "reserved": 11}, False, False),
    ({"total": 10, "allocation_ratio": 0}, False, True),
    ({"total": 10, "allocation_ratio": 0.05}, False, True),
    ({"total": 10, "allocation_ratio": 0.1}, True, True),
    ({"total": 10, "allocation_ratio": -1}, False, False),
    ({"total": 10, "reserved": 11, "allocation_ratio": 0.01}, False, True),
    ({"total": 10, "reserved": 11, "allocation_ratio": 2}, False, False),
]


@on_sqlite
@WAYS
@pytest.mark.parametrize(("inventory", "before", "after"), FITS)
@pytest.mark.parametrize("version", ["1.0", "1.25", "1.26", "1.39"])
def test_an_inventory_may_reserve_everything_from_1_26_on(
    api: ApiClient, *, way: str, version: str, inventory: dict[str, Any], before: bool, after: bool
) -> None:
    late = version in ("1.26", "1.39")
    answer = write_one(api.at(version), way, inventory)
    if after if late else before:
        assert answer.status in (200, 201)
        return
    assert answer.status == 400
    verb = "create" if way == "POST" else "update"
    assert f"Unable to {verb} inventory for resource provider {HOST}: " in answer.detail
    assert ("greater than total" if late else "greater than or equal to total") in answer.detail


# POST: add one inventory.


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_an_inventory_can_be_added(api: ApiClient, version: str) -> None:
    body = {"resource_class": "VCPU", "total": 5, "reserved": 1}
    answer = api.at(version).post(ALL, body)
    assert answer.status == 201
    assert answer.headers["location"] == f"http://roost.example{ALL}/VCPU"
    assert answer.json == DEFAULTS | {
        "total": 5,
        "reserved": 1,
        "resource_provider_generation": 1,
    }
    assert generation(api) == 1
    assert api.post(ALL, {"resource_class": "DISK_GB", "total": 9}).status == 201
    assert totals(api) == {"VCPU": 5, "DISK_GB": 9}
    assert generation(api) == 2


def test_the_generation_is_ignored_when_an_inventory_is_added(api: ApiClient) -> None:
    body = {"resource_class": "VCPU", "total": 5, "resource_provider_generation": 99}
    answer = api.post(ALL, body)
    assert answer.status == 201
    assert answer.json["resource_provider_generation"] == 1


def test_an_inventory_can_be_added_once(api: ApiClient) -> None:
    api.post(ALL, {"resource_class": "VCPU", "total": 5})
    answer = api.post(ALL, {"resource_class": "VCPU", "total": 6})
    assert answer.status == 409
    assert "Update conflict" in answer.detail
    assert answer.error["code"] == "placement.concurrent_update"
    assert (totals(api), generation(api)) == ({"VCPU": 5}, 1)


@on_sqlite
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"total": 5}, "'resource_class' is a required property"),
        ({"resource_class": "", "total": 5}, "'' does not match '^[A-Z0-9_]+$'"),
        ({"resource_class": "vcpu", "total": 5}, "'vcpu' does not match '^[A-Z0-9_]+$'"),
        ({"resource_class": None, "total": 5}, "None is not of type 'string'"),
        (
            {"resource_class": "CUSTOM_NOWHERE", "total": 5},
            f"Unable to create inventory for resource provider {HOST}: "
            "No such resource class CUSTOM_NOWHERE.",
        ),
    ],
)
def test_an_inventory_of_an_unknown_class_cannot_be_added(
    api: ApiClient, body: dict[str, Any], problem: str
) -> None:
    answer = api.post(ALL, body)
    assert answer.status == 400
    assert problem in answer.detail
    assert generation(api) == 0


def test_one_of_many_clients_adds_the_inventory(api: ApiClient) -> None:
    body = {"resource_class": "VCPU", "total": 5}
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda _: api.post(ALL, body).status, range(8)))
    assert statuses == {201: 1, 409: 7}
    assert generation(api) == 1


# PUT: replace all inventories.


def test_cyborg_replaces_all_inventories_without_a_version_header(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5, "reserved": 1}, DISK_GB={"total": 6})
    answer = replace_all(api.at(None), VCPU={"total": 7}, MEMORY_MB={"total": 8})
    assert answer.status == 200
    assert answer.headers["openstack-api-version"] == "placement 1.0"
    assert answer.json == {
        "resource_provider_generation": 2,
        "inventories": {
            "VCPU": DEFAULTS | {"total": 7},
            "MEMORY_MB": DEFAULTS | {"total": 8},
        },
    }
    assert shown(api) == answer.json["inventories"]


@pytest.mark.parametrize("inventories", [{}, {"VCPU": {"total": 5}}])
def test_a_replacement_of_all_moves_the_generation_even_if_it_is_the_same(
    api: ApiClient, inventories: dict[str, Any]
) -> None:
    numbers = [
        replace_all(api, **inventories).json["resource_provider_generation"] for _ in range(3)
    ]
    assert numbers == [1, 2, 3]
    assert generation(api) == 3


@pytest.mark.parametrize("sent", [0, 2, -1, 10**12])
def test_a_stale_generation_has_the_code_that_nova_reads(api: ApiClient, sent: int) -> None:
    replace_all(api, VCPU={"total": 5})
    body = {"inventories": {"VCPU": {"total": 6}}, "resource_provider_generation": sent}
    answer = api.put(ALL, body)
    assert answer.status == 409
    assert "resource provider generation conflict" in answer.detail
    assert answer.error["code"] == "placement.concurrent_update"
    assert (totals(api), generation(api)) == ({"VCPU": 5}, 1)


@on_sqlite
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"inventories": {}}, "'resource_provider_generation' is a required property"),
        ({"resource_provider_generation": 0}, "'inventories' is a required property"),
        (
            {"inventories": {}, "resource_provider_generation": None},
            "None is not of type 'integer'",
        ),
        (
            {"inventories": {}, "resource_provider_generation": "0"},
            "'0' is not of type 'integer'",
        ),
        ({"inventories": [], "resource_provider_generation": 0}, "[] is not of type 'object'"),
        (
            {"inventories": {}, "resource_provider_generation": 0, "size": 1},
            "('size' was unexpected)",
        ),
        (
            {
                "inventories": {"VCPU": {"total": 1, "resource_class": "VCPU"}},
                "resource_provider_generation": 0,
            },
            "('resource_class' was unexpected)",
        ),
    ],
)
def test_a_replacement_of_all_needs_inventories_and_generation(
    api: ApiClient, body: dict[str, Any], problem: str
) -> None:
    answer = api.put(ALL, body)
    assert answer.status == 400
    assert problem in answer.detail


def test_a_generation_inside_a_record_is_ignored(api: ApiClient) -> None:
    answer = replace_all(api, VCPU={"total": 5, "resource_provider_generation": 99})
    assert answer.status == 200


def test_a_replacement_with_an_unknown_class_changes_nothing(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5})
    answer = replace_all(api, DISK_GB={"total": 6}, CUSTOM_NOWHERE={"total": 7})
    assert answer.status == 400
    assert (
        f"Unknown resource class in inventory for resource provider {HOST}: "
        "No such resource class CUSTOM_NOWHERE." in answer.detail
    )
    assert (totals(api), generation(api)) == ({"VCPU": 5}, 1)


def test_an_inventory_in_use_has_the_code_that_nova_reads(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6}, MEMORY_MB={"total": 7})
    claim(api, DISK_GB=1, VCPU=1)
    before = generation(api)
    answer = replace_all(api, MEMORY_MB={"total": 8})
    assert answer.status == 409
    assert (
        f"update conflict: Inventory for 'VCPU, DISK_GB' on resource provider '{HOST}' in use."
        in answer.detail
    )
    assert answer.error["code"] == "placement.inventory.inuse"
    assert totals(api) == {"VCPU": 5, "DISK_GB": 6, "MEMORY_MB": 7}
    assert generation(api) == before


def test_an_inventory_in_use_may_shrink_below_its_usage(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 10})
    claim(api, VCPU=8)
    smaller = {"total": 5, "reserved": 5, "min_unit": 3, "max_unit": 3, "step_size": 3}
    assert replace_all(api, VCPU=smaller).status == 200
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 8}


def test_one_of_many_clients_at_one_generation_replaces_all(api: ApiClient) -> None:
    def put(total: int) -> int:
        inventories = {"VCPU": {"total": total}}
        return api.put(ALL, {"inventories": inventories, "resource_provider_generation": 0}).status

    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(put, range(1, 9)))
    assert statuses == {200: 1, 409: 7}
    assert generation(api) == 1


# PUT: replace one inventory.


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_one_inventory_can_be_replaced(api: ApiClient, version: str) -> None:
    replace_all(api, VCPU={"total": 5, "reserved": 3}, DISK_GB={"total": 6})
    body = {"total": 8, "resource_provider_generation": 1}
    answer = api.at(version).put(f"{ALL}/VCPU", body)
    assert answer.status == 200
    # A field that the body leaves out has its default again.
    assert answer.json == DEFAULTS | {"total": 8, "resource_provider_generation": 2}
    assert api.get(f"{ALL}/VCPU").json == answer.json
    assert totals(api) == {"VCPU": 8, "DISK_GB": 6}


def test_a_replacement_of_one_moves_the_generation_even_if_it_is_the_same(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5})
    body = {"total": 5, "resource_provider_generation": 1}
    assert api.put(f"{ALL}/VCPU", body).json["resource_provider_generation"] == 2
    assert generation(api) == 2


def test_a_replacement_of_one_needs_the_present_generation(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5})
    answer = api.put(f"{ALL}/VCPU", {"total": 6, "resource_provider_generation": 0})
    assert answer.status == 409
    assert "resource provider generation conflict" in answer.detail
    assert answer.error["code"] == "placement.concurrent_update"
    assert totals(api) == {"VCPU": 5}


@on_sqlite
def test_a_replacement_of_one_needs_a_generation(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5})
    answer = api.put(f"{ALL}/VCPU", {"total": 6})
    assert answer.status == 400
    assert "'resource_provider_generation' is a required property" in answer.detail


@on_sqlite
def test_a_replacement_of_one_takes_no_class_in_the_body(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5})
    body = {"total": 6, "resource_class": "VCPU", "resource_provider_generation": 1}
    answer = api.put(f"{ALL}/VCPU", body)
    assert answer.status == 400
    assert "('resource_class' was unexpected)" in answer.detail


@pytest.mark.parametrize("name", ["CUSTOM_NOWHERE", "vcpu"])
def test_an_inventory_of_an_unknown_class_cannot_be_replaced(api: ApiClient, name: str) -> None:
    replace_all(api, VCPU={"total": 5})
    answer = api.put(f"{ALL}/{name}", {"total": 6, "resource_provider_generation": 1})
    assert answer.status == 404
    assert f"No such resource class {name}" in answer.detail


def test_a_missing_inventory_cannot_be_replaced(api: ApiClient) -> None:
    answer = api.put(f"{ALL}/VCPU", {"total": 6, "resource_provider_generation": 0})
    assert answer.status == 400
    assert "No inventory record with resource class" in answer.detail
    assert (totals(api), generation(api)) == ({}, 0)


# DELETE.


def test_one_inventory_can_be_deleted(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    answer = api.delete(f"{ALL}/VCPU")
    assert (answer.status, answer.body) == (204, b"")
    assert (totals(api), generation(api)) == ({"DISK_GB": 6}, 2)


def test_a_missing_inventory_cannot_be_deleted(api: ApiClient) -> None:
    answer = api.delete(f"{ALL}/VCPU")
    assert answer.status == 404
    assert "No inventory of class VCPU found for delete" in answer.detail
    assert generation(api) == 0


@pytest.mark.parametrize("name", ["CUSTOM_NOWHERE", "vcpu"])
def test_an_inventory_of_an_unknown_class_cannot_be_deleted(api: ApiClient, name: str) -> None:
    replace_all(api, VCPU={"total": 5})
    answer = api.delete(f"{ALL}/{name}")
    assert answer.status == 404
    assert (
        f"No inventory of class {name} found for delete: No such resource class {name}."
        in answer.detail
    )
    assert totals(api) == {"VCPU": 5}


def test_an_inventory_in_use_cannot_be_deleted(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    claim(api, VCPU=1)
    answer = api.delete(f"{ALL}/VCPU")
    assert answer.status == 409
    assert (
        "Unable to delete inventory of class VCPU: "
        f"Inventory for 'VCPU' on resource provider '{HOST}' in use." in answer.detail
    )
    assert api.delete(f"{ALL}/DISK_GB").status == 204


@pytest.mark.parametrize("inventories", [{}, {"VCPU": {"total": 5}, "DISK_GB": {"total": 6}}])
def test_all_inventories_can_be_deleted_from_1_5_on(
    api: ApiClient, inventories: dict[str, Any]
) -> None:
    replace_all(api, **inventories)
    answer = api.at("1.5").delete(ALL)
    assert (answer.status, answer.body) == (204, b"")
    assert (totals(api), generation(api)) == ({}, 2)


def test_all_inventories_cannot_be_deleted_while_one_is_in_use(api: ApiClient) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    claim(api, VCPU=1)
    before = generation(api)
    answer = api.delete(ALL)
    assert answer.status == 409
    assert f"Inventory for 'VCPU' on resource provider '{HOST}' in use." in answer.detail
    assert answer.error["code"] == "placement.inventory.inuse"
    assert (totals(api), generation(api)) == ({"VCPU": 5, "DISK_GB": 6}, before)


# Usages and allocations of the provider.


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_usages_name_every_class_of_the_provider(api: ApiClient, version: str) -> None:
    assert api.at(version).get(f"{PROVIDER}/usages").json == {
        "resource_provider_generation": 0,
        "usages": {},
    }
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    claim(api, VCPU=3)
    assert api.at(version).get(f"{PROVIDER}/usages").json == {
        "resource_provider_generation": 2,
        "usages": {"VCPU": 3, "DISK_GB": 0},
    }


def test_usages_can_exceed_32_bits(api: ApiClient) -> None:
    replace_all(api, DISK_GB={"total": INTEGER_MAX, "allocation_ratio": 4.0})
    for number in range(3):
        body = {
            "allocations": {HOST: {"resources": {"DISK_GB": INTEGER_MAX}}},
            "project_id": "lab",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        consumer = f"{CONSUMER[:-1]}{number}"
        assert api.put(f"/allocations/{consumer}", body).status == 204
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"DISK_GB": 3 * INTEGER_MAX}


@pytest.mark.parametrize("version", ["1.0", "1.27", "1.28", "1.39"])
def test_allocations_of_a_provider_are_shown_by_consumer(api: ApiClient, version: str) -> None:
    path = f"{PROVIDER}/allocations"
    assert api.at(version).get(path).json == {
        "allocations": {},
        "resource_provider_generation": 0,
    }
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    claim(api, VCPU=3, DISK_GB=2)
    expected: dict[str, Any] = {"resources": {"VCPU": 3, "DISK_GB": 2}}
    if version in ("1.28", "1.39"):
        expected["consumer_generation"] = 1
    assert api.at(version).get(path).json == {
        "allocations": {CONSUMER: expected},
        "resource_provider_generation": 2,
    }


def test_the_allocations_of_a_missing_provider_are_not_found(
    api: ApiClient,
) -> None:
    answer = api.get(f"/resource_providers/{NOWHERE}/allocations")
    assert answer.status == 404
    assert (
        f"Resource provider '{NOWHERE}' not found: No resource provider with uuid {NOWHERE} found"
        in answer.detail
    )


# The header last-modified.


@on_sqlite
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", ALL, None),
        ("GET", f"{ALL}/VCPU", None),
        ("POST", ALL, {"resource_class": "DISK_GB", "total": 1}),
        (
            "PUT",
            ALL,
            {"inventories": {"VCPU": {"total": 1}}, "resource_provider_generation": 1},
        ),
        ("PUT", f"{ALL}/VCPU", {"total": 1, "resource_provider_generation": 1}),
        ("GET", f"{PROVIDER}/usages", None),
        ("GET", f"{PROVIDER}/allocations", None),
    ],
)
def test_answers_have_last_modified_from_1_15_on(
    api: ApiClient, method: str, path: str, body: Any
) -> None:
    replace_all(api, VCPU={"total": 5})
    before = api.at("1.14").request(method, path, body)
    assert not before.headers.keys() & {"last-modified", "cache-control"}
    api.delete(f"{ALL}/DISK_GB")
    body = body and body | {"resource_provider_generation": generation(api)}
    after = api.at("1.15").request(method, path, body)
    assert after.status in (200, 201)
    assert after.headers["cache-control"] == "no-cache"
    assert abs(age_of(after)) < timedelta(minutes=5)


def test_last_modified_is_the_time_of_the_newest_inventory(
    api: ApiClient, database: Database
) -> None:
    replace_all(api, VCPU={"total": 5}, DISK_GB={"total": 6})
    moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=3)
    statement = update(tables.inventories).values(created_at=moment, updated_at=None)
    database.write_at_once(lambda connection: connection.execute(statement))
    assert age_of(api.get(ALL)) > timedelta(days=2)
    api.put(f"{ALL}/VCPU", {"total": 5, "resource_provider_generation": 1})
    assert age_of(api.get(f"{ALL}/DISK_GB")) > timedelta(days=2)
    assert age_of(api.get(f"{ALL}/VCPU")) < timedelta(minutes=5)
    assert age_of(api.get(ALL)) < timedelta(minutes=5)


@on_sqlite
def test_last_modified_is_absent_without_inventories(api: ApiClient) -> None:
    headers = api.get(ALL).headers
    assert headers["cache-control"] == "no-cache"
    assert "last-modified" not in headers


@on_sqlite
@pytest.mark.parametrize("path", [f"{ALL}/VCPU", ALL])
def test_a_deletion_has_no_last_modified(api: ApiClient, path: str) -> None:
    replace_all(api, VCPU={"total": 5})
    assert not api.delete(path).headers.keys() & {"last-modified", "cache-control"}
