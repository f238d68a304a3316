"""Requests with thousands of members need few statements, and keep to a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pymysql
import pytest
from sqlalchemy import Connection, event, select

from roost.model.limits import Limits
from roost.store import tables, transaction
from roost.store.database import Database
from roost.store.rows.providers import lock_providers
from roost.store.transaction import Transaction
from support.api_client import Answer, ApiClient, limited_client
from support.store.bulk_rows import numbered_uuid, write_providers, write_rows

HOST = str(uuid4())
PROVIDER = f"/resource_providers/{HOST}"
# The rows of each kind that large requests name: more than two chunks of a statement.
ROWS = 1200

Send: TypeAlias = Callable[[ApiClient, int], Answer]

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def write_names(connection: Connection, count: int) -> None:
    """Custom classes and traits."""
    numbers = range(count)
    names = ({"id": 20_000 + i, "name": f"CUSTOM_C{i}"} for i in numbers)
    write_rows(connection, tables.resource_classes, names)
    write_rows(connection, tables.traits, ({"name": f"CUSTOM_T{i}"} for i in numbers))


def make_host(api: ApiClient) -> None:
    body = {"name": "host", "uuid": HOST}
    assert api.post("/resource_providers", body).status == 200
    assert put(api, "inventories", {"VCPU": {"total": 1_000_000}}).status == 200


def generation(api: ApiClient, provider: str = HOST) -> int:
    number: int = api.get(f"/resource_providers/{provider}").json["generation"]
    return number


def put(api: ApiClient, part: str, members: Any) -> Answer:
    body = {part: members, "resource_provider_generation": generation(api)}
    return api.put(f"{PROVIDER}/{part}", body)


def record(
    allocations: dict[str, Any], owner: str = "one", seen: int | None = None
) -> dict[str, Any]:
    return {
        "allocations": allocations,
        "project_id": owner,
        "user_id": owner,
        "consumer_generation": seen,
        "consumer_type": "INSTANCE",
    }


def inventories(count: int) -> dict[str, Any]:
    return {f"CUSTOM_C{number}": {"total": 10} for number in range(count)}


def aggregates(api: ApiClient, count: int) -> Answer:
    return put(api, "aggregates", [str(uuid4()) for _ in range(count)])


def traits(api: ApiClient, count: int) -> Answer:
    return put(api, "traits", [f"CUSTOM_T{number}" for number in range(count)])


def all_inventories(api: ApiClient, count: int) -> Answer:
    return put(api, "inventories", inventories(count))


def consumers(api: ApiClient, count: int) -> Answer:
    held = {HOST: {"resources": {"VCPU": 1}}}
    body = {str(uuid4()): record(held, f"owner{number}") for number in range(count)}
    return api.post("/allocations", body)


def providers(api: ApiClient, count: int) -> Answer:
    held = {numbered_uuid(number): {"resources": {"VCPU": 1}} for number in range(count)}
    return api.put(f"/allocations/{uuid4()}", record(held))


def reshape(api: ApiClient, count: int, *, claims: int = 0, empty: bool = False) -> Answer:
    """Replace the inventory of many providers, and claim from them."""
    new = {} if empty else {"DISK_GB": {"total": 5}}
    held = ({numbered_uuid(number): {"resources": {"DISK_GB": 1}}} for number in range(claims))
    seen = generation(api, numbered_uuid(0))
    body = {
        "inventories": {
            numbered_uuid(number): {"resource_provider_generation": seen, "inventories": new}
            for number in range(count)
        },
        "allocations": {str(uuid4()): record(one) for one in held},
    }
    return api.post("/reshaper", body)


def reshape_all(api: ApiClient, count: int) -> Answer:
    return reshape(api, count, claims=count)


LARGE: dict[str, Send] = {
    "aggregates": aggregates,
    "traits": traits,
    "inventories": all_inventories,
    "POST allocations": consumers,
    "PUT allocations": providers,
    "reshape": reshape_all,
}
large = pytest.mark.parametrize("name", LARGE)


@pytest.fixture
def world(api: ApiClient, database: Database) -> ApiClient:
    """A host, and the classes, traits and providers that large requests name."""
    make_host(api)
    database.write_at_once(write_names, ROWS)
    database.write_at_once(write_providers, range(ROWS), total=10)
    return api


class Statements:
    """A count of the statements that the database gets after the count is made."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.per_thousand = PER_THOUSAND[database.engine.dialect.name]
        if database.engine.dialect.name == "sqlite":
            event.listen(database.engine, "before_cursor_execute", self._note)
            # Transactions hand their statements to the driver themselves.
            monkeypatch.setattr(transaction, "log_statements", self._note_all)
            return
        # pymysql sends the rows of an UPDATE one by one, and SQLAlchemy counts one statement.
        query = pymysql.connections.Connection.query

        def counted(connection: Any, *arguments: Any, **named: Any) -> Any:
            self.count += 1
            return query(connection, *arguments, **named)

        monkeypatch.setattr(pymysql.connections.Connection, "query", counted)

    def _note(self, *_arguments: Any) -> None:
        self.count += 1

    def _note_all(self, _connection: object, *texts: str) -> None:
        self.count += len(texts)


# The most statements for a request without rows, and for a thousand rows more. A statement of
# SQLite is no round trip, and has sixteen rows at most.
PER_REQUEST = 60
PER_THOUSAND = {"sqlite": 320, "mysql": 60}


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"], indirect=True)
@large
@pytest.mark.slow
def test_many_rows_need_few_statements(
    world: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    statements = Statements(database, monkeypatch)
    answer = LARGE[name](world, ROWS)
    assert answer.status in (200, 204), answer.body
    assert 0 < statements.count <= PER_REQUEST + statements.per_thousand * ROWS / 1000


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"], indirect=True)
def test_many_changed_inventories_need_few_statements(
    world: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all_inventories(world, 1000).status == 200
    statements = Statements(database, monkeypatch)
    changed = {
        name: {"total": 10 + number, "reserved": number % 3, "allocation_ratio": 1.5}
        for number, name in enumerate(inventories(1000))
    }
    assert put(world, "inventories", changed).status == 200
    assert statements.count <= PER_REQUEST + statements.per_thousand
    found = world.get(f"{PROVIDER}/inventories").json["inventories"]
    assert {
        name: {key: item[key] for key in ("total", "reserved", "allocation_ratio")}
        for name, item in found.items()
    } == changed


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"], indirect=True)
def test_many_consumers_with_new_owners_need_few_statements(
    world: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuids = [str(uuid4()) for _ in range(1000)]
    held = {HOST: {"resources": {"VCPU": 1}}}
    assert world.post("/allocations", {uuid: record(held) for uuid in uuids}).status == 204
    statements = Statements(database, monkeypatch)
    moved = {uuid: record(held, f"owner{i % 99}", seen=1) for i, uuid in enumerate(uuids)}
    assert world.post("/allocations", moved).status == 204
    assert statements.count <= PER_REQUEST + statements.per_thousand
    for number in (0, 500, 999):
        shown = world.get(f"/allocations/{uuids[number]}").json
        assert (shown["project_id"], shown["user_id"]) == (f"owner{number % 99}",) * 2


@large
@pytest.mark.slow
def test_all_members_of_a_large_request_are_stored(world: ApiClient, name: str) -> None:
    answer = LARGE[name](world, 1100)
    assert answer.status in (200, 204), answer.body
    if name not in ("PUT allocations", "reshape"):
        part = name.removeprefix("POST ")
        assert len(world.get(f"{PROVIDER}/{part}").json[part]) == 1100
        return
    usages, seen = ({"VCPU": 1}, 1) if name == "PUT allocations" else ({"DISK_GB": 1}, 3)
    for number in (0, 511, 512, 1099):
        uuid = numbered_uuid(number)
        assert world.get(f"/resource_providers/{uuid}/usages").json["usages"] == usages
        assert generation(world, uuid) == seen


@pytest.mark.parametrize("part", ["aggregates", "traits", "inventories"])
def test_members_that_a_replacement_leaves_out_are_gone(world: ApiClient, part: str) -> None:
    assert LARGE[part](world, 1100).status == 200
    members: Any = {"VCPU": {"total": 1}} if part == "inventories" else []
    assert put(world, part, members).status == 200
    assert len(world.get(f"{PROVIDER}/{part}").json[part]) == len(members)


def test_consumers_that_give_up_everything_are_gone(world: ApiClient) -> None:
    assert consumers(world, 1100).status == 204
    held = world.get(f"{PROVIDER}/allocations").json["allocations"]
    nothing = {uuid: record({}, seen=1) for uuid in held}
    assert world.post("/allocations", nothing).status == 204
    assert world.get(f"{PROVIDER}/allocations").json["allocations"] == {}
    assert world.get(f"{PROVIDER}/usages").json["usages"] == {"VCPU": 0}


def test_a_consumer_of_many_providers_can_be_deleted(world: ApiClient) -> None:
    assert providers(world, 1100).status == 204
    path = f"/resource_providers/{numbered_uuid(7)}"
    (holder,) = world.get(f"{path}/allocations").json["allocations"]
    assert world.delete(f"/allocations/{holder}").status == 204
    assert world.get(f"{path}/usages").json["usages"] == {"VCPU": 0}


def test_a_reshape_of_many_names_the_first_provider_in_use(world: ApiClient) -> None:
    used = (8, 600, 601)
    held = {numbered_uuid(number): {"resources": {"VCPU": 1}} for number in used}
    assert world.put(f"/allocations/{uuid4()}", record(held)).status == 204
    body = {
        "inventories": {
            numbered_uuid(number): {
                "resource_provider_generation": 1 if number in used else 0,
                "inventories": {"VCPU": {"total": 9}} if number == 8 else {},
            }
            for number in range(700)
        },
        "allocations": {},
    }
    answer = world.post("/reshaper", body)
    assert answer.status == 409
    sentence = f"Inventory for 'VCPU' on resource provider '{numbered_uuid(600)}' in use"
    assert sentence in answer.detail
    assert generation(world, numbered_uuid(0)) == 0


def test_owners_that_the_database_compares_as_equal_are_one(
    world: ApiClient, database: Database
) -> None:
    held = {HOST: {"resources": {"VCPU": 1}}}
    body = {str(uuid4()): record(held, owner) for owner in ("Abc", "aBc", "abC", "other")}
    assert world.post("/allocations", body).status == 204
    same = database.engine.dialect.name in ("mysql", "mariadb")
    api = world.at("1.9")
    assert api.get("/usages?project_id=abc").json["usages"] == ({"VCPU": 3} if same else {})
    assert api.get("/usages?project_id=other").json["usages"] == {"VCPU": 1}


# Locks.


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_a_claim_from_many_providers_locks_no_other_provider(
    world: ApiClient, database: Database
) -> None:
    # Most of the table: a database that scans all of it would lock the rest as well.
    claimed = [numbered_uuid(number) for number in range(ROWS - 60)]
    held = {numbered_uuid(ROWS - 30): {"resources": {"VCPU": 1}}}
    with database.engine.begin() as connection:
        assert len(lock_providers(Transaction(connection), claimed)) == ROWS - 60
        # The claim has a connection of its own, and does not wait for these locks.
        assert world.put(f"/allocations/{uuid4()}", record(held)).status == 204


# Limits.

MEMBERS = ["aggregates", "traits", "inventories", "reshape"]


@on_sqlite
@large
def test_a_request_above_the_limit_is_refused(
    database: Database, tmp_path: Path, name: str
) -> None:
    api = limited_client(database, tmp_path, max_provider_members=20, max_allocations=20)
    make_host(api)
    database.write_at_once(write_names, 30)
    database.write_at_once(write_providers, range(30), total=10)
    before = generation(api)
    answer = LARGE[name](api, 21)
    assert answer.status == 400
    option = "max_provider_members" if name in MEMBERS else "max_allocations"
    what = "inventories" if name == "reshape" else name.rsplit(maxsplit=1)[-1]
    assert f"21 {what}" in answer.detail
    assert f"[roost]{option}" in answer.detail
    assert generation(api) == before
    assert LARGE[name](api, 20).status in (200, 204)


@pytest.mark.long
@large
def test_the_largest_request_lets_other_requests_write(
    api: ApiClient, database: Database, name: str
) -> None:
    count = Limits().max_allocations
    make_host(api)
    database.write_at_once(write_names, count)
    database.write_at_once(write_providers, range(count + 1), total=10**6)
    held = {numbered_uuid(count): {"resources": {"VCPU": 1}}}
    answers: list[Answer] = []
    done = threading.Event()

    def claim_meanwhile() -> None:
        while not done.wait(0.05):
            answers.append(api.put(f"/allocations/{uuid4()}", record(held)))

    # The owner of the claims exists already, so that no claim waits for the row of the owner.
    assert api.put(f"/allocations/{uuid4()}", record(held)).status == 204
    other = threading.Thread(target=claim_meanwhile)
    other.start()
    began = time.monotonic()
    try:
        answer = LARGE[name](api, count)
    finally:
        seconds = time.monotonic() - began
        done.set()
        other.join()
    assert answer.status in (200, 204), answer.body
    assert {other.status for other in answers} <= {204}
    # An idle machine needs a few seconds.
    assert seconds < 25


@on_sqlite
def test_consumers_that_give_up_everything_count_against_the_limit(
    database: Database, tmp_path: Path
) -> None:
    api = limited_client(database, tmp_path, max_allocations=20)
    body = {str(uuid4()): record({}) for _ in range(21)}
    assert "21 allocations" in api.post("/allocations", body).detail


@on_sqlite
def test_providers_that_lose_everything_count_against_the_limit(
    database: Database, tmp_path: Path
) -> None:
    api = limited_client(database, tmp_path, max_provider_members=20)
    database.write_at_once(write_providers, range(30), total=10)
    assert "21 inventories" in reshape(api, 21, empty=True).detail
    assert reshape(api, 20, empty=True).status == 204


@on_sqlite
def test_the_allocations_of_a_reshape_count_against_the_limit(
    database: Database, tmp_path: Path
) -> None:
    api = limited_client(database, tmp_path, max_allocations=20)
    database.write_at_once(write_providers, range(30), total=10)
    assert "21 allocations" in reshape(api, 30, claims=21).detail
    assert reshape(api, 30, claims=20).status == 204


@on_sqlite
def test_the_entries_of_a_list_below_1_12_count_against_the_limit(
    database: Database, tmp_path: Path
) -> None:
    api = limited_client(database, tmp_path, max_allocations=20)
    entries = [
        {"resource_provider": {"uuid": numbered_uuid(number)}, "resources": {"VCPU": 1}}
        for number in range(21)
    ]
    body = {"allocations": entries, "project_id": "p", "user_id": "u"}
    answer = api.at("1.11").put(f"/allocations/{uuid4()}", body)
    assert "21 allocations" in answer.detail


# More names than a database takes as the parameters of one statement.

TOO_MANY = 66_000
more_than_postgresql_binds = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


@on_sqlite
def test_a_request_may_name_ten_thousand_owners(api: ApiClient) -> None:
    make_host(api)
    assert consumers(api, 10_000).status == 204
    assert api.at("1.9").get("/usages?project_id=owner9999").json["usages"] == {"VCPU": 1}


def test_a_query_names_a_thousand_traits_at_most(api: ApiClient, database: Database) -> None:
    make_host(api)
    database.write_at_once(write_names, 1000)
    names = ",".join(f"CUSTOM_T{number}" for number in range(1000))
    for value in (names, f"in:{names}"):
        answer = api.get(f"/resource_providers?required={value}")
        assert answer.status == 200, answer.body[:500]
        assert answer.json["resource_providers"] == []
        refused = api.get(f"/resource_providers?required={value},CUSTOM_T1000")
        assert refused.status == 400
        assert "'required' names 1001 traits" in refused.detail
        assert "1000 are allowed" in refused.detail


@pytest.mark.long
@more_than_postgresql_binds
def test_a_query_may_name_tens_of_thousands_of_aggregates(
    api: ApiClient, database: Database
) -> None:
    make_host(api)
    uuids = [numbered_uuid(number) for number in range(TOO_MANY)]
    database.write_at_once(
        write_rows, tables.placement_aggregates, [{"uuid": uuid} for uuid in uuids]
    )
    assert put(api, "aggregates", uuids[-1:]).status == 200
    answer = api.get(f"/resource_providers?member_of=in:{','.join(uuids)}")
    assert answer.status == 200, answer.body[:500]
    assert [item["uuid"] for item in answer.json["resource_providers"]] == [HOST]


@on_sqlite
def test_a_query_names_two_hundred_classes_at_most(api: ApiClient, database: Database) -> None:
    database.write_at_once(write_names, 900)
    names = [f"CUSTOM_C{number}:1" for number in range(900)]
    answer = api.get(f"/resource_providers?resources={','.join(names)}")
    assert answer.status == 400
    assert "'resources' names 900 classes" in answer.detail
    assert "200 are allowed" in answer.detail
    assert api.get(f"/resource_providers?resources={','.join(names[:200])}").status == 200


@pytest.mark.long
@more_than_postgresql_binds
def test_a_tree_of_any_size_can_be_moved(api: ApiClient, database: Database) -> None:
    make_host(api)
    root = str(uuid4())
    assert api.post("/resource_providers", {"name": "root", "uuid": root}).status == 200
    columns = tables.resource_providers.c
    host_id = database.read(
        lambda connection: connection.execute(
            select(columns.id).where(columns.uuid == HOST)
        ).scalar_one()
    )
    database.write_at_once(write_providers, range(TOO_MANY), root=host_id)
    body = {"name": "host", "parent_provider_uuid": root}
    assert api.put(PROVIDER, body).status == 200
    last = api.get(f"/resource_providers/{numbered_uuid(TOO_MANY - 1)}").json
    assert last["root_provider_uuid"] == root
