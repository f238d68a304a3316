"""Writing to the journal: each change is recorded, in the transaction of the change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.api.routes import ROUTES
from roost.store import tables
from roost.store.database import Database
from roost.store.journal.writing import ChangeDetail, ChangeKind, record_details
from roost.store.transaction import Finished, Transaction
from support.api_client import Answer, ApiClient
from support.store.setup_cache import SetupCache

PROVIDER, INVENTORIES = ChangeKind.PROVIDER, ChangeKind.INVENTORIES
TRAITS, AGGREGATES = ChangeKind.TRAITS, ChangeKind.AGGREGATES
USAGE = ChangeKind.USAGE
RESOURCE_CLASSES, TRAIT_NAMES = ChangeKind.RESOURCE_CLASSES, ChangeKind.TRAIT_NAMES

# Kind of change, and the name of the provider in the trees below.
Change: TypeAlias = tuple[ChangeKind, str | None]


@dataclass(frozen=True)
class TwoTrees:
    """Two trees: `host` over `child` over `grandchild`, and `other`; and two consumers.

    `holder` has allocations from `host` and `child`; `unknown` does not exist. Every provider has
    VCPU, `host` has a trait and an aggregate, `bare` has no inventory.
    """

    api: ApiClient
    uuids: dict[str, str]

    def path(self, name: str, part: str = "") -> str:
        return f"/resource_providers/{self.uuids[name]}{part}"

    def generation(self, name: str) -> dict[str, int]:
        found = self.api.get(self.path(name)).json["generation"]
        return {"resource_provider_generation": found}

    def inventories(self, name: str, **totals: int) -> dict[str, Any]:
        records = {key: {"total": total} for key, total in totals.items()}
        return {"inventories": records} | self.generation(name)

    def claim(self, generation: int | None = None, **amounts: dict[str, int]) -> dict[str, Any]:
        return {
            "allocations": {
                self.uuids[name]: {"resources": resources} for name, resources in amounts.items()
            },
            "project_id": "a project",
            "user_id": "a user",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }

    def put(self, name: str, part: str, body: Any) -> Answer:
        return self.api.put(self.path(name, part), body)

    def put_claim(self, consumer: str, body: Any) -> Answer:
        return self.api.put(f"/allocations/{self.uuids[consumer]}", body)

    def post_claims(self, **claims: Any) -> Answer:
        body = {self.uuids[consumer]: claim for consumer, claim in claims.items()}
        return self.api.post("/allocations", body)

    def adoption(self, provider: str, what: str, **body: Any) -> Answer:
        return self.api.post(f"/roost/providers/{self.uuids[provider]}/{what}", body)

    def declare(self, *providers: dict[str, Any], **parameters: str) -> Answer:
        query = urlencode({"owner": "a", **parameters})
        return self.api.put(f"/roost/trees/host?{query}", {"providers": list(providers)})

    def audit(self, **body: Any) -> Answer:
        return self.api.post("/roost/audit", {"known_consumers": [], **body})

    def reshape(self, inventories: dict[str, Any], **claims: Any) -> Answer:
        body = {
            "inventories": {self.uuids[name]: given for name, given in inventories.items()},
            "allocations": {self.uuids[consumer]: claim for consumer, claim in claims.items()},
        }
        return self.api.post("/reshaper", body)


@pytest.fixture
def world(api: ApiClient, setup_cache: SetupCache) -> TwoTrees:
    return TwoTrees(api, setup_cache.once(make_world, api))


def make_world(api: ApiClient) -> dict[str, str]:
    names = ("host", "child", "grandchild", "other", "bare", "new", "holder", "unknown")
    made = TwoTrees(api, {name: str(uuid4()) for name in names} | {"aggregate": str(uuid4())})
    parents = {"host": None, "child": "host", "grandchild": "child", "other": None, "bare": None}
    for name, parent in parents.items():
        body = {
            "name": name,
            "uuid": made.uuids[name],
            "parent_provider_uuid": parent and made.uuids[parent],
        }
        assert api.post("/resource_providers", body).status == 200
        if name != "bare":
            assert made.put(name, "/inventories", made.inventories(name, VCPU=8)).status == 200
    assert api.put("/traits/CUSTOM_USED").status == 201
    assert api.put("/traits/CUSTOM_FREE").status == 201
    assert api.put("/resource_classes/CUSTOM_FREE").status == 201
    generation = made.generation("host")["resource_provider_generation"]
    for part, members in (("traits", ["CUSTOM_USED"]), ("aggregates", [made.uuids["aggregate"]])):
        sent = {part: members, "resource_provider_generation": generation}
        assert made.put("host", f"/{part}", sent).status == 200
        generation += 1
    claim = made.claim(host={"VCPU": 2}, child={"VCPU": 2})
    assert made.put_claim("holder", claim).status == 204
    return made.uuids


def changes(database: Database) -> list[tuple[int, str, str | None]]:
    """The whole journal, by id."""
    columns = tables.roost_changes.c
    query = sa.select(columns.id, columns.kind, columns.provider_uuid).order_by(columns.id)

    def read(connection: Connection) -> list[tuple[int, str, str | None]]:
        return [(row.id, row.kind, row.provider_uuid) for row in connection.execute(query)]

    return database.read(read)


def dump(database: Database) -> dict[str, frozenset[tuple[Any, ...]]]:
    """All tables."""

    def read(connection: Connection) -> dict[str, frozenset[tuple[Any, ...]]]:
        return {
            table.name: frozenset(map(tuple, connection.execute(sa.select(table))))
            for table in tables.metadata.sorted_tables
        }

    return database.read(read)


@dataclass(frozen=True)
class Write:
    """A request that succeeds, and what the journal must record of it."""

    what: str
    send: Callable[[TwoTrees], Answer]
    expected: frozenset[Change]


def write(what: str, send: Callable[[TwoTrees], Answer], *expected: Change) -> Write:
    return Write(what, send, frozenset(expected))


def new_provider(world: TwoTrees, parent: str | None = None) -> Answer:
    body = {
        "name": "new",
        "uuid": world.uuids["new"],
        "parent_provider_uuid": parent and world.uuids[parent],
    }
    return world.api.post("/resource_providers", body)


def update(world: TwoTrees, name: str, new_name: str, parent: str | None) -> Answer:
    body = {"name": new_name, "parent_provider_uuid": parent and world.uuids[parent]}
    return world.api.put(world.path(name), body)


def old_claim(world: TwoTrees, **amounts: dict[str, int]) -> Answer:
    entries = [
        {"resource_provider": {"uuid": world.uuids[name]}, "resources": resources}
        for name, resources in amounts.items()
    ]
    path = f"/allocations/{world.uuids['holder']}"
    return world.api.at("1.0").put(path, {"allocations": entries})


def declared_child(world: TwoTrees) -> dict[str, Any]:
    return {"name": "new", "uuid": world.uuids["new"], "parent": "host", "inventories": {"VCPU": 1}}


def declare_and_withdraw(world: TwoTrees) -> Answer:
    aggregate = {"name": "host", "aggregates": [str(uuid4())]}
    declared = world.declare(aggregate, declared_child(world))
    return world.declare() if declared.status == 200 else declared


# Every route that writes, with every kind of request.
WRITES = (
    # Providers
    write("a new root", new_provider, (PROVIDER, "new")),
    write("a new child", lambda world: new_provider(world, "host"), (PROVIDER, "new")),
    write("another name", lambda world: update(world, "host", "renamed", None), (PROVIDER, "host")),
    write("the same name and parent", lambda world: update(world, "child", "child", "host")),
    write(
        "another parent, with all descendants",
        lambda world: update(world, "child", "child", "other"),
        (PROVIDER, "child"),
        (PROVIDER, "grandchild"),
    ),
    write(
        "no parent any more, with all descendants",
        lambda world: update(world, "child", "child", None),
        (PROVIDER, "child"),
        (PROVIDER, "grandchild"),
    ),
    write(
        "a whole tree below another",
        lambda world: update(world, "host", "host", "other"),
        (PROVIDER, "host"),
        (PROVIDER, "child"),
        (PROVIDER, "grandchild"),
    ),
    write(
        "a parent in the same tree",
        lambda world: update(world, "grandchild", "grandchild", "host"),
        (PROVIDER, "grandchild"),
    ),
    write(
        "a provider deleted",
        lambda world: world.api.delete(world.path("other")),
        (PROVIDER, "other"),
    ),
    # Inventories
    write(
        "one more inventory",
        lambda world: world.api.post(
            world.path("host", "/inventories"), {"resource_class": "DISK_GB", "total": 5}
        ),
        (INVENTORIES, "host"),
    ),
    write(
        "other inventories",
        lambda world: world.put("other", "/inventories", world.inventories("other", DISK_GB=5)),
        (INVENTORIES, "other"),
    ),
    write(
        "the same inventories",
        lambda world: world.put("other", "/inventories", world.inventories("other", VCPU=8)),
        (INVENTORIES, "other"),
    ),
    write(
        "no inventories instead of some",
        lambda world: world.put("other", "/inventories", world.inventories("other")),
        (INVENTORIES, "other"),
    ),
    write(
        "no inventories instead of none",
        lambda world: world.put("bare", "/inventories", world.inventories("bare")),
        (INVENTORIES, "bare"),
    ),
    write(
        "one inventory changed",
        lambda world: world.put(
            "host", "/inventories/VCPU", {"total": 9} | world.generation("host")
        ),
        (INVENTORIES, "host"),
    ),
    write(
        "one inventory less",
        lambda world: world.api.delete(world.path("other", "/inventories/VCPU")),
        (INVENTORIES, "other"),
    ),
    write(
        "all inventories deleted",
        lambda world: world.api.delete(world.path("other", "/inventories")),
        (INVENTORIES, "other"),
    ),
    # The generation increases, so the provider has changed.
    write(
        "all of no inventories deleted",
        lambda world: world.api.delete(world.path("bare", "/inventories")),
        (INVENTORIES, "bare"),
    ),
    # Traits
    write(
        "other traits",
        lambda world: world.put(
            "host", "/traits", {"traits": ["CUSTOM_FREE"]} | world.generation("host")
        ),
        (TRAITS, "host"),
    ),
    write(
        "the same traits",
        lambda world: world.put(
            "host", "/traits", {"traits": ["CUSTOM_USED"]} | world.generation("host")
        ),
    ),
    write(
        "no traits", lambda world: world.api.delete(world.path("host", "/traits")), (TRAITS, "host")
    ),
    write("still no traits", lambda world: world.api.delete(world.path("other", "/traits"))),
    # Aggregates
    write(
        "other aggregates",
        lambda world: world.put(
            "host", "/aggregates", {"aggregates": []} | world.generation("host")
        ),
        (AGGREGATES, "host"),
    ),
    write(
        "the same aggregates, which increases the generation",
        lambda world: world.put(
            "host",
            "/aggregates",
            {"aggregates": [world.uuids["aggregate"]]} | world.generation("host"),
        ),
        (AGGREGATES, "host"),
    ),
    write(
        "other aggregates below 1.19",
        lambda world: world.api.at("1.1").put(world.path("host", "/aggregates"), []),
        (AGGREGATES, "host"),
    ),
    write(
        "the same aggregates below 1.19, which changes nothing",
        lambda world: world.api.at("1.1").put(
            world.path("host", "/aggregates"), [world.uuids["aggregate"]]
        ),
    ),
    # Names
    write(
        "a new class",
        lambda world: world.api.post("/resource_classes", {"name": "CUSTOM_NEW"}),
        (RESOURCE_CLASSES, None),
    ),
    write(
        "a new class by PUT",
        lambda world: world.api.put("/resource_classes/CUSTOM_NEW"),
        (RESOURCE_CLASSES, None),
    ),
    write(
        "a class that exists",
        lambda world: world.api.put("/resource_classes/CUSTOM_FREE"),
    ),
    write(
        "a class renamed",
        lambda world: world.api.at("1.6").put(
            "/resource_classes/CUSTOM_FREE", {"name": "CUSTOM_NEW"}
        ),
        (RESOURCE_CLASSES, None),
    ),
    write(
        "a class that keeps its name",
        lambda world: world.api.at("1.6").put(
            "/resource_classes/CUSTOM_FREE", {"name": "CUSTOM_FREE"}
        ),
    ),
    write(
        "a class deleted",
        lambda world: world.api.delete("/resource_classes/CUSTOM_FREE"),
        (RESOURCE_CLASSES, None),
    ),
    write("a new trait", lambda world: world.api.put("/traits/CUSTOM_NEW"), (TRAIT_NAMES, None)),
    write("a trait that is there already", lambda world: world.api.put("/traits/CUSTOM_FREE")),
    write(
        "a trait less", lambda world: world.api.delete("/traits/CUSTOM_FREE"), (TRAIT_NAMES, None)
    ),
    # Claims
    write(
        "a first claim",
        lambda world: world.put_claim("unknown", world.claim(host={"VCPU": 1}, other={"VCPU": 1})),
        (USAGE, "host"),
        (USAGE, "other"),
    ),
    write(
        "a claim like the one before",
        lambda world: world.put_claim(
            "holder", world.claim(1, host={"VCPU": 2}, child={"VCPU": 2})
        ),
        (USAGE, "host"),
        (USAGE, "child"),
    ),
    write(
        "a claim that leaves providers for another",
        lambda world: world.put_claim("holder", world.claim(1, other={"VCPU": 1})),
        (USAGE, "host"),
        (USAGE, "child"),
        (USAGE, "other"),
    ),
    write(
        "a claim in an old form",
        lambda world: old_claim(world, other={"VCPU": 1}),
        (USAGE, "host"),
        (USAGE, "child"),
        (USAGE, "other"),
    ),
    write(
        "an empty claim",
        lambda world: world.put_claim("holder", world.claim(1)),
        (USAGE, "host"),
        (USAGE, "child"),
    ),
    write(
        "an empty claim of an unknown consumer",
        lambda world: world.put_claim("unknown", world.claim()),
    ),
    write(
        "all allocations deleted",
        lambda world: world.api.delete(f"/allocations/{world.uuids['holder']}"),
        (USAGE, "host"),
        (USAGE, "child"),
    ),
    write(
        "allocations moved to another consumer",
        lambda world: world.post_claims(
            holder=world.claim(1), unknown=world.claim(child={"VCPU": 2}, other={"VCPU": 2})
        ),
        (USAGE, "host"),
        (USAGE, "child"),
        (USAGE, "other"),
    ),
    # Reshapes
    write(
        "inventory moved with its allocations",
        lambda world: world.reshape(
            {
                "child": world.inventories("child"),
                "grandchild": world.inventories("grandchild", VCPU=8),
            },
            holder=world.claim(1, host={"VCPU": 2}, grandchild={"VCPU": 2}),
        ),
        (INVENTORIES, "child"),
        (INVENTORIES, "grandchild"),
        (USAGE, "host"),
        (USAGE, "child"),
        (USAGE, "grandchild"),
    ),
    write(
        "inventory reshaped without claims",
        lambda world: world.reshape({"other": world.inventories("other", VCPU=7)}),
        (INVENTORIES, "other"),
    ),
    # The generation increases, so the provider has changed.
    write(
        "no inventories reshaped to none",
        lambda world: world.reshape({"bare": world.inventories("bare")}),
        (INVENTORIES, "bare"),
    ),
    # Adoptions, and the audit
    write(
        "another uuid",
        lambda world: world.adoption("other", "adopt", uuid=world.uuids["new"]),
        (PROVIDER, "new"),
    ),
    write(
        "another name, also below",
        lambda world: world.adoption("host", "rename", name="renamed", descendants=True),
        (PROVIDER, "host"),
    ),
    write(
        "a provider merged into another one",
        lambda world: world.adoption("host", "merge", into="other"),
        (PROVIDER, "host"),
        (PROVIDER, "child"),
        (PROVIDER, "grandchild"),
        (USAGE, "other"),
        (TRAITS, "other"),
        (AGGREGATES, "other"),
    ),
    write(
        "a merge tried",
        lambda world: world.adoption("host", "merge", into="other", dry_run=True),
    ),
    # Declarations
    write(
        "a tree declared",
        lambda world: world.declare(
            {"name": "host", "traits": ["CUSTOM_FREE"]}, declared_child(world)
        ),
        # The new provider gets the trait of its owner.
        (TRAIT_NAMES, None),
        (TRAITS, "host"),
        (PROVIDER, "new"),
        (INVENTORIES, "new"),
        (TRAITS, "new"),
    ),
    write(
        "a tree declared with a new class",
        lambda world: world.declare({"name": "host", "inventories": {"CUSTOM_NEW": 1}}),
        (RESOURCE_CLASSES, None),
        (INVENTORIES, "host"),
    ),
    write(
        "a tree declared as it is",
        lambda world: world.declare({"name": "host", "traits": ["CUSTOM_USED"]}),
    ),
    write(
        "a declaration tried",
        lambda world: world.declare({"name": "host", "inventories": {"VCPU": 9}}, dry_run="true"),
    ),
    write(
        "a tree declared and withdrawn",
        declare_and_withdraw,
        (TRAIT_NAMES, None),
        (AGGREGATES, "host"),
        (PROVIDER, "new"),
        (INVENTORIES, "new"),
        (TRAITS, "new"),
    ),
    write(
        "orphans deleted",
        lambda world: world.audit(delete=True, at_most_percent=100),
        (USAGE, "host"),
        (USAGE, "child"),
    ),
    write(
        "a deletion of orphans tried",
        lambda world: world.audit(delete=True, at_most_percent=100, dry_run=True),
    ),
)

# One request for each refusal that a route may give after it has begun to write.
REFUSALS: tuple[tuple[str, Callable[[TwoTrees], Answer]], ...] = (
    (
        "a name that is taken",
        lambda world: world.api.post("/resource_providers", {"name": "host"}),
    ),
    (
        "a name that is taken, and a valid parent",
        lambda world: update(world, "child", "host", "other"),
    ),
    ("a loop", lambda world: update(world, "host", "host", "grandchild")),
    ("a parent deleted", lambda world: world.api.delete(world.path("child"))),
    (
        "an inventory that exists",
        lambda world: world.api.post(
            world.path("host", "/inventories"), {"resource_class": "VCPU", "total": 5}
        ),
    ),
    (
        "an inventory in use replaced by another",
        lambda world: world.put("host", "/inventories", world.inventories("host", DISK_GB=1)),
    ),
    (
        "a stale generation",
        lambda world: world.put(
            "host", "/inventories/VCPU", {"total": 9, "resource_provider_generation": 77}
        ),
    ),
    (
        "an inventory in use deleted",
        lambda world: world.api.delete(world.path("host", "/inventories/VCPU")),
    ),
    (
        "inventories in use deleted",
        lambda world: world.api.delete(world.path("host", "/inventories")),
    ),
    (
        "an unknown trait",
        lambda world: world.put(
            "host", "/traits", {"traits": ["CUSTOM_GHOST"]} | world.generation("host")
        ),
    ),
    (
        "stale aggregates",
        lambda world: world.put(
            "host", "/aggregates", {"aggregates": [], "resource_provider_generation": 77}
        ),
    ),
    (
        "a class that exists already",
        lambda world: world.api.post("/resource_classes", {"name": "CUSTOM_FREE"}),
    ),
    ("a standard class deleted", lambda world: world.api.delete("/resource_classes/VCPU")),
    ("a trait in use deleted", lambda world: world.api.delete("/traits/CUSTOM_USED")),
    (
        "a claim of too much",
        lambda world: world.put_claim("holder", world.claim(1, other={"VCPU": 9})),
    ),
    (
        "a claim with a stale generation",
        lambda world: world.put_claim("holder", world.claim(5, other={"VCPU": 1})),
    ),
    (
        "one claim of several of too much",
        lambda world: world.post_claims(
            holder=world.claim(1), unknown=world.claim(other={"VCPU": 9})
        ),
    ),
    (
        "no allocations to delete",
        lambda world: world.api.delete(f"/allocations/{world.uuids['unknown']}"),
    ),
    (
        "a declaration with an unknown trait",
        lambda world: world.declare(
            {"name": "host", "inventories": {"CUSTOM_NEW": 1}, "traits": ["HW_GHOST"]}
        ),
    ),
    (
        "a reshape of an inventory in use",
        lambda world: world.reshape(
            {"other": world.inventories("other", VCPU=7), "host": world.inventories("host")},
            unknown=world.claim(other={"VCPU": 1}),
        ),
    ),
    (
        "a reshape for too much",
        lambda world: world.reshape(
            {"other": world.inventories("other", VCPU=7)}, unknown=world.claim(other={"VCPU": 8})
        ),
    ),
)


@pytest.mark.parametrize("done", [pytest.param(write, id=write.what) for write in WRITES])
def test_a_write_is_journalled_with_exactly_its_changes(
    world: TwoTrees, database: Database, done: Write
) -> None:
    before = changes(database)
    answer = done.send(world)
    assert answer.status < 300, answer.body
    new = [change for change in changes(database) if change not in before]
    names: dict[str | None, str] = {uuid: name for name, uuid in world.uuids.items()}
    assert {(kind, names.get(uuid)) for _, kind, uuid in new} == done.expected


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("send", [pytest.param(send, id=what) for what, send in REFUSALS])
def test_a_refused_request_is_not_journalled(
    world: TwoTrees, database: Database, send: Callable[[TwoTrees], Answer]
) -> None:
    before = changes(database)
    assert 400 <= send(world).status < 500
    assert changes(database) == before


@contextmanager
def broken_journal(database: Database) -> Iterator[None]:
    """Refuse all writes to the journal in the block."""

    def rename(old: str, new: str) -> None:
        database.write_at_once(
            lambda connection: connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")
        )

    rename("roost_changes", "hidden")
    try:
        yield
    finally:
        rename("hidden", "roost_changes")


@pytest.mark.parametrize(
    "done", [pytest.param(write, id=write.what) for write in WRITES if write.expected]
)
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_write_fails_with_its_journal_row(
    world: TwoTrees, database: Database, done: Write
) -> None:
    before = dump(database)
    with broken_journal(database):
        assert done.send(world).status == 503
    assert dump(database) == before


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_requests_use_every_route_that_writes(world: TwoTrees) -> None:
    sent: set[tuple[str, str]] = set()
    inner = world.api.send

    def note(method: str, path: str, body: bytes, headers: Any) -> Answer:
        sent.add((method, path))
        return inner(method, path, body, headers)

    noting = TwoTrees(ApiClient(note), world.uuids)
    for done in WRITES:
        done.send(noting)
    for route in ROUTES:
        pattern = re.sub(r"\{\w+\}", "[^/]+", route.path)
        if route.writes:
            tried = any(
                method == route.method and re.fullmatch(pattern, path) for method, path in sent
            )
            assert tried, f"{route.method} {route.path}"


def test_the_row_of_a_deleted_provider_has_its_id_and_uuid(
    world: TwoTrees, database: Database
) -> None:
    def ids(connection: Connection) -> dict[str, int]:
        query = sa.select(tables.resource_providers.c.uuid, tables.resource_providers.c.id)
        return {row.uuid: row.id for row in connection.execute(query)}

    def newest(connection: Connection) -> tuple[int | None, str | None]:
        columns = tables.roost_changes.c
        query = sa.select(columns.provider_id, columns.provider_uuid).order_by(columns.id.desc())
        row = connection.execute(query.limit(1)).one()
        return row.provider_id, row.provider_uuid

    uuid = world.uuids["other"]
    id_ = database.read(ids)[uuid]
    assert world.api.delete(world.path("other")).status == 204
    assert database.read(newest) == (id_, uuid)


def test_a_change_of_very_many_classes_names_none_of_them(database: Database) -> None:
    """The journal bounds the length of a row. Then a follower takes it that any class changed."""
    uuid = str(uuid4())

    def record(transaction: Transaction) -> Finished[None]:
        details: list[ChangeDetail] = [{"classes": [1, 2]}, {"classes": list(range(20_000))}]
        record_details(transaction, INVENTORIES, [(1, uuid, detail) for detail in details])
        return transaction.finish()

    database.write(record)
    query = sa.select(tables.roost_changes.c.detail).order_by(tables.roost_changes.c.id.desc())
    last = database.read(lambda connection: connection.execute(query.limit(2)).scalars().all())
    assert last == ["{}", '{"classes": [1, 2]}']
