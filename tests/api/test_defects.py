"""Defects of the reference service, which Roost does not repeat.

The numbers D1 to D14 are those of the list of the reference's defects.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Connection, func, insert, select, update

from roost.store import tables
from roost.store.database import Database
from roost.store.statements import insert_row
from support.api_client import Answer, ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "c0ffee00-0000-0000-0000-000000000001"
OTHER = "c0ffee00-0000-0000-0000-000000000002"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
NORTH = "a66e0000-0000-0000-0000-00000000000a"
PROVIDER = f"/resource_providers/{HOST}"
STALE = (
    "Resource provider's generation already changed. Please update the generation and try again."
)


@pytest.fixture
def host(api: ApiClient) -> None:
    """A provider with 100 VCPU, at generation 1."""
    assert api.post("/resource_providers", {"name": "host", "uuid": HOST}).status == 200
    body = {"resource_class": "VCPU", "total": 100}
    assert api.post(f"{PROVIDER}/inventories", body).status == 201


def claim(provider: str = HOST, number: int | None = None, **more: Any) -> dict[str, Any]:
    """The claim of a consumer for one VCPU."""
    return {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": number,
        "consumer_type": "INSTANCE",
    } | more


def reshape(allocations: dict[str, Any]) -> dict[str, Any]:
    """A reshape that keeps the inventories of the host and writes these allocations."""
    inventories = {"VCPU": {"total": 100}}
    return {
        "inventories": {HOST: {"inventories": inventories, "resource_provider_generation": 1}},
        "allocations": allocations,
    }


def consumers(database: Database) -> int:
    """The number of rows in the table of consumers."""

    def count(connection: Connection) -> int:
        number: int = connection.execute(
            select(func.count()).select_from(tables.consumers)
        ).scalar_one()
        return number

    return database.read(count)


def generation(api: ApiClient) -> int:
    number: int = api.get(PROVIDER).json["generation"]
    return number


# D1: a claim that fails or is empty leaves no consumer behind.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"/allocations/{CONSUMER}", claim(NOWHERE)),
        ("POST", "/allocations", {CONSUMER: claim(NOWHERE)}),
        ("POST", "/reshaper", reshape({CONSUMER: claim(NOWHERE)})),
    ],
    ids=["PUT", "POST", "reshape"],
)
def test_d1_a_claim_on_an_unknown_provider_leaves_no_consumer(
    api: ApiClient, database: Database, method: str, path: str, body: Any
) -> None:
    answer = api.request(method, path, body)
    assert answer.status == 400
    assert f"Allocation for resource provider '{NOWHERE}' that does not exist." in answer.detail
    assert consumers(database) == 0
    assert api.put(f"/allocations/{CONSUMER}", claim()).status == 204


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"/allocations/{CONSUMER}", claim(allocations={})),
        ("POST", "/allocations", {CONSUMER: claim(allocations={})}),
        ("POST", "/reshaper", reshape({CONSUMER: claim(allocations={})})),
    ],
    ids=["PUT", "POST", "reshape"],
)
def test_d1_an_empty_claim_of_an_unknown_consumer_does_nothing(
    api: ApiClient, database: Database, method: str, path: str, body: Any
) -> None:
    assert api.request(method, path, body).status == 204
    assert consumers(database) == 0
    assert api.put(f"/allocations/{CONSUMER}", claim()).status == 204


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("number", [None, 0])
def test_d1_a_consumer_that_the_reference_left_behind_counts_as_new(
    api: ApiClient, database: Database, number: int | None
) -> None:
    def leave(connection: Connection) -> None:
        project = insert_row(connection, tables.projects, {"external_id": "lab"})
        user = insert_row(connection, tables.users, {"external_id": "ann"})
        owner = {"project_id": project, "user_id": user}
        insert_row(connection, tables.consumers, {"uuid": CONSUMER, "generation": 0} | owner)

    database.write_at_once(leave)
    assert api.put(f"/allocations/{CONSUMER}", claim(number=number)).status == 204
    assert api.get(f"/allocations/{CONSUMER}").json["consumer_generation"] == 1
    assert consumers(database) == 1


# D2: clients that race for the traits of a provider.


@pytest.mark.usefixtures("host")
def test_d2_clients_that_lose_the_race_for_traits_get_a_conflict(api: ApiClient) -> None:
    names = [f"CUSTOM_METAL_{number}" for number in range(8)]
    for name in names:
        api.put(f"/traits/{name}")

    def put(name: str) -> Answer:
        body = {"traits": [name], "resource_provider_generation": 1}
        return api.put(f"{PROVIDER}/traits", body)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(put, names))
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 7}
    for answer in answers:
        if answer.status == 409:
            assert STALE in answer.detail
            assert answer.error["code"] == "placement.concurrent_update"
    (winner,) = (answer for answer in answers if answer.status == 200)
    assert api.get(f"{PROVIDER}/traits").json == winner.json


# D3: usages by consumer type, on every database.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "",
            {
                "INSTANCE": {"consumer_count": 2, "VCPU": 2},
                "MIGRATION": {"consumer_count": 1, "VCPU": 1},
                "unknown": {"consumer_count": 1, "VCPU": 1},
            },
        ),
        ("&consumer_type=INSTANCE", {"INSTANCE": {"consumer_count": 2, "VCPU": 2}}),
        ("&consumer_type=all", {"all": {"consumer_count": 4, "VCPU": 4}}),
        ("&consumer_type=unknown", {"unknown": {"consumer_count": 1, "VCPU": 1}}),
        ("&user_id=nobody", {}),
    ],
)
def test_d3_usages_are_grouped_by_type_on_every_database(
    api: ApiClient, query: str, expected: dict[str, Any]
) -> None:
    for number, consumer_type in enumerate(("INSTANCE", "INSTANCE", "MIGRATION")):
        body = claim(consumer_type=consumer_type)
        assert api.put(f"/allocations/{CONSUMER[:-1]}{number}", body).status == 204
    body = claim()
    del body["consumer_type"]
    assert api.at("1.37").put(f"/allocations/{CONSUMER[:-1]}9", body).status == 204
    assert api.get(f"/usages?project_id=lab{query}").json == {"usages": expected}


# D4: the prefix of a trait is compared letter by letter.


def test_d4_a_prefix_has_no_wildcards_and_its_case_matters(api: ApiClient) -> None:
    for name in ("CUSTOM_A_B", "CUSTOM_AXB", "CUSTOM_AB"):
        api.put(f"/traits/{name}")
    expected = {
        "CUSTOM_A": ["CUSTOM_AB", "CUSTOM_AXB", "CUSTOM_A_B"],
        "CUSTOM_A_": ["CUSTOM_A_B"],
        "CUSTOM__": [],
        "CUSTOM%": [],
        "%": [],
        "_USTOM": [],
        "custom_a": [],
        "CUSTOM_A\\_": [],
    }
    found = {
        prefix: sorted(api.get(f"/traits?name=startswith:{quote(prefix)}").json["traits"])
        for prefix in expected
    }
    assert found == expected


# D5: answers have no internals.


@pytest.mark.usefixtures("host")
def test_d5_a_conflict_contains_no_sql(api: ApiClient) -> None:
    answer = api.post(f"{PROVIDER}/inventories", {"resource_class": "VCPU", "total": 1})
    assert answer.status == 409
    assert "Update conflict" in answer.detail
    for word in ("INSERT", "SQL", "sqlalchemy", "psycopg", "created_at", "parameters"):
        assert word not in answer.detail


@on_sqlite
@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/plain;q=0.5"])
def test_d5_a_failure_contains_no_internals(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    def read(*_: object) -> None:
        raise RuntimeError("SELECT the secret of the house")

    monkeypatch.setattr(database, "read", read)
    answer = api.delete(f"{PROVIDER}/x", accept=accept)
    assert answer.status == 404
    answer = api.get("/traits/HW_CPU_X86_VMX", accept=accept)
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert b"RuntimeError" not in answer.body


# D6: a name has no line feed.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resource_classes", {"name": "CUSTOM_B\n"}),
        ("PUT", "/resource_classes/CUSTOM_B%0A", None),
        ("PUT", "/traits/CUSTOM_B%0A", None),
        ("POST", f"{PROVIDER}/inventories", {"resource_class": "DISK_GB\n", "total": 1}),
        (
            "PUT",
            f"{PROVIDER}/inventories",
            {"inventories": {"VCPU\n": {"total": 1}}, "resource_provider_generation": 1},
        ),
        (
            "PUT",
            f"/allocations/{CONSUMER}",
            claim(allocations={HOST: {"resources": {"VCPU\n": 1}}}),
        ),
        (
            "PUT",
            f"/allocations/{CONSUMER}",
            claim(allocations={f"{HOST}\n": {"resources": {"VCPU": 1}}}),
        ),
        ("PUT", f"/allocations/{CONSUMER}", claim(consumer_type="INSTANCE\n")),
        ("PUT", f"/allocations/{CONSUMER}%0A", claim()),
        ("POST", "/allocations", {f"{CONSUMER}\n": claim()}),
        ("GET", "/usages?project_id=lab&consumer_type=INSTANCE%0A", None),
        ("GET", f"/resource_providers?uuid={HOST}%0A", None),
    ],
)
@on_sqlite
def test_d6_a_name_does_not_end_in_a_line_feed(
    api: ApiClient, method: str, path: str, body: Any
) -> None:
    answer = api.request(method, path, body)
    assert answer.status == 400
    assert answer.detail.strip() != ""
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 0}


@on_sqlite
def test_d6_the_new_name_of_a_class_does_not_end_in_a_line_feed(api: ApiClient) -> None:
    api.put("/resource_classes/CUSTOM_A")
    answer = api.at("1.6").put("/resource_classes/CUSTOM_A", {"name": "CUSTOM_B\n"})
    assert answer.status == 400


# D7: a uuid is the same in every spelling.

SPELLINGS = [NORTH.upper(), NORTH.replace("-", ""), f"{{{NORTH}}}", f"urn:uuid:{NORTH}"]


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_d7_an_aggregate_is_kept_in_its_canonical_spelling(api: ApiClient, spelling: str) -> None:
    assert api.at("1.18").put(f"{PROVIDER}/aggregates", [spelling]).status == 200
    assert api.get(f"{PROVIDER}/aggregates").json["aggregates"] == [NORTH]
    assert api.at("1.18").put(f"{PROVIDER}/aggregates", [NORTH]).status == 200
    assert api.get(f"{PROVIDER}/aggregates").json["aggregates"] == [NORTH]


@pytest.mark.usefixtures("host")
def test_d7_two_spellings_are_one_aggregate(api: ApiClient) -> None:
    assert api.at("1.18").put(f"{PROVIDER}/aggregates", [NORTH, *SPELLINGS]).status == 200
    assert api.get(f"{PROVIDER}/aggregates").json["aggregates"] == [NORTH]


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("spelling", [NORTH, *SPELLINGS])
def test_d7_members_are_found_by_any_spelling(api: ApiClient, spelling: str) -> None:
    api.at("1.18").put(f"{PROVIDER}/aggregates", [NORTH])
    for value in (spelling, f"in:{spelling}"):
        answer = api.get(f"/resource_providers?member_of={quote(value)}")
        assert [item["uuid"] for item in answer.json["resource_providers"]] == [HOST]
    answer = api.get(f"/resource_providers?member_of=!{quote(spelling)}")
    assert answer.json["resource_providers"] == []


def store_membership(connection: Connection, spelling: str, provider: str = HOST) -> None:
    """Make a provider a member of an aggregate, and keep the spelling as the reference does."""
    aggregate = insert_row(connection, tables.placement_aggregates, {"uuid": spelling})
    columns = tables.resource_providers.c
    query = select(columns.id).where(columns.uuid == provider)
    connection.execute(
        insert(tables.resource_provider_aggregates),
        {
            "resource_provider_id": connection.execute(query).scalar_one(),
            "aggregate_id": aggregate,
        },
    )


# The spellings that fit into the column, which the reference stores.
STORED = [
    NORTH.upper(),
    NORTH.replace("-", ""),
    NORTH.replace("-", "").upper(),
    NORTH.capitalize().swapcase(),
    f"{{{NORTH.replace('-', '')}}}",
    f"urn:{NORTH.replace('-', '')}",
]


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("stored", STORED)
def test_d7_an_aggregate_in_another_stored_spelling_is_found_by_every_route(
    api: ApiClient, database: Database, stored: str
) -> None:
    database.write_at_once(store_membership, stored)
    for spelling in map(quote, (NORTH, stored, NORTH.upper())):
        for value, expected in ((spelling, [HOST]), (f"!in:{spelling}", [])):
            answer = api.get(f"/resource_providers?member_of={value}")
            assert [item["uuid"] for item in answer.json["resource_providers"]] == expected
            answer = api.get(f"/allocation_candidates?resources=VCPU:1&member_of={value}")
            assert list(answer.json["provider_summaries"]) == expected
    assert api.get(f"{PROVIDER}/aggregates").json["aggregates"] == [stored]
    assert api.at("1.18").put(f"{PROVIDER}/aggregates", [NORTH]).status == 200
    assert len(api.get(f"{PROVIDER}/aggregates").json["aggregates"]) == 1


@pytest.mark.usefixtures("host")
def test_d7_an_aggregate_in_two_rows_is_one_aggregate(api: ApiClient, database: Database) -> None:
    plain = NORTH.replace("-", "")
    assert api.post("/resource_providers", {"name": "other", "uuid": OTHER}).status == 200
    database.write_at_once(store_membership, plain)
    database.write_at_once(store_membership, NORTH, OTHER)
    for spelling in (NORTH, plain):
        answer = api.get(f"/resource_providers?member_of={spelling}")
        assert [item["uuid"] for item in answer.json["resource_providers"]] == [HOST, OTHER]
    assert api.at("1.18").put(f"{PROVIDER}/aggregates", [plain]).status == 200
    assert api.get(f"{PROVIDER}/aggregates").json["aggregates"] == [NORTH]


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("method", ["PUT", "POST", "reshape"])
def test_d7_two_spellings_are_one_consumer(api: ApiClient, database: Database, method: str) -> None:
    spelling = CONSUMER.upper()
    assert api.put(f"/allocations/{CONSUMER}", claim()).status == 204
    again = claim(number=1)
    if method == "PUT":
        answer = api.put(f"/allocations/{spelling}", again)
    elif method == "POST":
        answer = api.post("/allocations", {spelling: again})
    else:
        body = reshape({spelling: again})
        body["inventories"][HOST]["resource_provider_generation"] = generation(api)
        answer = api.post("/reshaper", body)
    assert answer.status == 204
    assert consumers(database) == 1
    assert api.get(f"/allocations/{CONSUMER}").json["consumer_generation"] == 2
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 1}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("stored", [CONSUMER.upper(), CONSUMER.replace("-", "")])
def test_d7_a_consumer_in_another_stored_spelling_is_found(
    api: ApiClient, database: Database, stored: str
) -> None:
    assert api.put(f"/allocations/{CONSUMER}", claim()).status == 204

    def spell(connection: Connection) -> None:
        connection.execute(update(tables.consumers).values(uuid=stored))
        connection.execute(update(tables.allocations).values(consumer_id=stored))

    database.write_at_once(spell)
    shown = api.get(f"/allocations/{CONSUMER}").json
    assert shown["allocations"][HOST]["resources"] == {"VCPU": 1}
    assert api.put(f"/allocations/{CONSUMER}", claim(number=1)).status == 204
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 1}
    assert api.delete(f"/allocations/{CONSUMER}").status == 204
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 0}
    assert consumers(database) == 0


# D8: a provider keeps a name.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_d8_a_provider_cannot_lose_its_name(api: ApiClient, version: str) -> None:
    assert api.at(version).put(PROVIDER, {"name": ""}).status == 400
    assert api.get(PROVIDER).json["name"] == "host"


# D9: the key of an inventory must be the name of a class.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("record", [{}, {"total": 1}, {"total": "x"}, None, [], "nonsense"])
@pytest.mark.parametrize("key", ["vcpu", "", "a b", "VCPU "])
@on_sqlite
def test_d9_an_inventory_whose_key_is_no_class_name_is_refused(
    api: ApiClient, key: str, record: Any
) -> None:
    inventories = {"inventories": {key: record}, "resource_provider_generation": 1}
    assert api.put(f"{PROVIDER}/inventories", inventories).status == 400
    body = {"inventories": {HOST: inventories}, "allocations": {}}
    assert api.post("/reshaper", body).status == 400
    assert list(api.get(f"{PROVIDER}/inventories").json["inventories"]) == ["VCPU"]


# D10: last-modified of a change is the time of the change.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("updated", [True, False], ids=["changed before", "never changed before"])
@pytest.mark.parametrize(
    "body", [{"name": "new"}, {"name": "host"}, {"name": "new", "parent_provider_uuid": OTHER}]
)
def test_d10_last_modified_of_a_changed_provider_is_now(
    api: ApiClient, database: Database, body: dict[str, str], updated: bool
) -> None:
    api.post("/resource_providers", {"name": "other", "uuid": OTHER})
    moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=3)
    statement = update(tables.resource_providers).values(
        created_at=moment, updated_at=moment if updated else None
    )
    database.write_at_once(lambda connection: connection.execute(statement))
    answer = api.put(PROVIDER, body)
    assert answer.status == 200
    age = datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])
    assert abs(age) < timedelta(minutes=5)


# D11: values that a database cannot store.


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("ratio", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@on_sqlite
def test_d11_a_ratio_that_is_not_finite_is_refused(api: ApiClient, ratio: str) -> None:
    body = f'{{"total": 1, "allocation_ratio": {ratio}, "resource_provider_generation": 1}}'
    answer = api.put(f"{PROVIDER}/inventories/VCPU", body.encode())
    assert answer.status == 400
    body = f'{{"resource_class": "DISK_GB", "total": 1, "allocation_ratio": {ratio}}}'
    assert api.post(f"{PROVIDER}/inventories", body.encode()).status == 400


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("ratio", ["-3.5e38", "1e-300", "-1e-300"])
def test_d11_a_ratio_that_a_database_cannot_keep_is_rounded_or_refused(
    api: ApiClient, ratio: str
) -> None:
    body = f'{{"total": 1, "allocation_ratio": {ratio}, "resource_provider_generation": 1}}'
    answer = api.put(f"{PROVIDER}/inventories/VCPU", body.encode())
    assert answer.status in (200, 400)
    assert api.get(f"{PROVIDER}/inventories").status == 200


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resource_providers", {"name": "a\0b"}),
        ("PUT", PROVIDER, {"name": "a\0b"}),
        ("PUT", f"{PROVIDER}/traits", {"traits": ["A\0"], "resource_provider_generation": 1}),
        ("PUT", f"/allocations/{CONSUMER}", claim(project_id="a\0b")),
        ("PUT", f"/allocations/{CONSUMER}", claim(user_id="\0")),
        ("GET", "/resource_providers?name=a%00b", None),
        ("GET", "/resource_providers?required=A%00", None),
        ("GET", "/resource_providers?resources=A%00:1", None),
        ("GET", "/traits?name=startswith:A%00", None),
        ("GET", "/usages?project_id=a%00b", None),
    ],
)
def test_d11_a_text_with_nul_is_refused(api: ApiClient, method: str, path: str, body: Any) -> None:
    assert api.request(method, path, body).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/traits/A%00",
        "/resource_classes/A%00",
        f"/allocations/{CONSUMER}%00",
        "/resource_providers/A%00/inventories/B%00",
    ],
)
def test_d11_a_path_with_nul_is_refused(api: ApiClient, path: str) -> None:
    assert api.get(path).status in (400, 404)


def test_d11_backslash_u0000_in_plain_text_is_accepted(api: ApiClient) -> None:
    answer = api.post("/resource_providers", {"name": "a\\u0000b"})
    assert (answer.status, answer.json["name"]) == (200, "a\\u0000b")


# D12: many clients write at once.


@pytest.mark.usefixtures("host")
def test_d12_clients_that_write_wait_for_each_other(api: ApiClient) -> None:
    def write(number: int) -> int:
        match number % 4:
            case 0:
                return api.put(f"/allocations/{CONSUMER[:-2]}{number:02}", claim()).status
            case 1:
                return api.post("/resource_providers", {"name": f"host {number}"}).status
            case 2:
                return api.put(f"/traits/CUSTOM_METAL_{number}").status
        return api.put(f"/resource_classes/CUSTOM_METAL_{number}").status

    with ThreadPoolExecutor(12) as pool:
        statuses = Counter(pool.map(write, range(48)))
    assert statuses == {204: 12, 200: 12, 201: 24}
    assert api.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 12}


@pytest.mark.usefixtures("host")
def test_d12_clients_that_read_are_answered_while_other_clients_write(api: ApiClient) -> None:
    def act(number: int) -> int:
        if number % 2:
            return api.get("/resource_providers").status
        return api.put(f"/allocations/{CONSUMER[:-2]}{number:02}", claim()).status

    with ThreadPoolExecutor(12) as pool:
        statuses = Counter(pool.map(act, range(40)))
    assert statuses == {200: 20, 204: 20}


# D13: the answer of a failure has a version.


@on_sqlite
@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_d13_the_answer_of_a_failure_has_its_version(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    def read(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(database, "read", read)
    answer = api.at(version).get("/resource_providers")
    assert answer.status == 500
    assert answer.headers["openstack-api-version"] == f"placement {version}"
    assert answer.headers["vary"] == "openstack-api-version"
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]


# D14: Roost keeps this code, because clients may read it.


@pytest.mark.usefixtures("host")
def test_d14_the_deletion_of_an_inventory_in_use_has_the_code_of_a_lost_race(
    api: ApiClient,
) -> None:
    assert api.put(f"/allocations/{CONSUMER}", claim()).status == 204
    answer = api.delete(f"{PROVIDER}/inventories/VCPU")
    assert answer.status == 409
    assert answer.error["code"] == "placement.concurrent_update"
