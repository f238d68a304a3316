"""Reading trees from the tables: the same trees as the API shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from roost.search.forest.rows import (
    NO_PARENT,
    AllocationRows,
    ForestRows,
    MembershipRows,
    UsageRows,
)
from roost.search.forest.vocabulary import Vocabulary
from roost.store import tables
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database
from roost.store.forest import reading
from roost.store.forest.reading import (
    read_allocations,
    read_forest,
    read_trees,
    read_usages,
    read_vocabulary,
)
from support.api_client import ApiClient
from support.store.setup_cache import SetupCache

LARGEST = 2_147_483_647
# More ids than two statements may have.
MANY = 2500
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")

Amounts = Mapping[str, int]


@dataclass
class Seen:
    """All that the API shows of one provider."""

    parent: str | None
    root: str
    inventories: dict[str, dict[str, float]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


Forest = dict[str, Seen]


class ApiProviders:
    """Providers that are made over the API, and what the API shows of them."""

    def __init__(self, api: ApiClient, database: Database) -> None:
        self.api = api
        self.database = database

    def make(self, parent: str | None = None, **totals: int) -> str:
        uuid = str(uuid4())
        body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
        assert self.api.post("/resource_providers", body).status == 200
        if totals:
            records = {name: {"total": total} for name, total in totals.items()}
            self.put(uuid, "inventories", records)
        return uuid

    def put(self, uuid: str, part: str, value: Any) -> None:
        """Replace the inventories, traits or aggregates of a provider."""
        path = f"/resource_providers/{uuid}"
        generation = self.api.get(path).json["generation"]
        body = {"resource_provider_generation": generation, part: value}
        answer = self.api.put(f"{path}/{part}", body)
        assert answer.status == 200, answer.body

    def claim(self, allocations: Mapping[str, Amounts]) -> str:
        consumer = str(uuid4())
        body = {
            "allocations": {uuid: {"resources": held} for uuid, held in allocations.items()},
            "project_id": "a project",
            "user_id": "a user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        answer = self.api.put(f"/allocations/{consumer}", body)
        assert answer.status == 204, answer.body
        return consumer

    def move(self, uuid: str, parent: str | None) -> None:
        body = {"name": uuid, "parent_provider_uuid": parent}
        assert self.api.put(f"/resource_providers/{uuid}", body).status == 200

    def delete(self, uuid: str) -> None:
        assert self.api.delete(f"/resource_providers/{uuid}").status == 204

    def shown(self, *roots: str) -> Forest:
        """What the API shows of these trees."""
        return {uuid: seen for uuid, seen in self.all_shown().items() if seen.root in roots}

    def all_shown(self) -> Forest:
        found = self.api.get("/resource_providers").json["resource_providers"]
        return {provider["uuid"]: self._seen(provider) for provider in found}

    def ids(self, *uuids: str) -> list[int]:
        """The internal ids, in the same order."""
        columns = tables.resource_providers.c
        query = sa.select(columns.uuid, columns.id).where(columns.uuid.in_(uuids))
        found = dict(self.database.read(lambda connection: connection.execute(query).all()))
        return [found[uuid] for uuid in uuids]

    def _seen(self, provider: Mapping[str, Any]) -> Seen:
        path = f"/resource_providers/{provider['uuid']}"
        usages = self.api.get(f"{path}/usages").json["usages"]
        return Seen(
            parent=provider["parent_provider_uuid"],
            root=provider["root_provider_uuid"],
            inventories=self.api.get(f"{path}/inventories").json["inventories"],
            used={name: used for name, used in usages.items() if used},
            traits=set(self.api.get(f"{path}/traits").json["traits"]),
            aggregates=set(self.api.get(f"{path}/aggregates").json["aggregates"]),
        )


@pytest.fixture
def cloud(api: ApiClient, database: Database) -> ApiProviders:
    return ApiProviders(api, database)


@pytest.fixture
def world(cloud: ApiProviders, setup_cache: SetupCache) -> dict[str, str]:
    return setup_cache.once(make_world, cloud)


@pytest.fixture
def vocabulary(database: Database) -> Vocabulary:
    """The standard names, which are the same in all tests."""
    return database.read(read_vocabulary)


def as_shown(rows: ForestRows, vocabulary: Vocabulary) -> Forest:
    """The rows in the form of the API."""
    providers, inventories = rows.providers, rows.inventories
    ids = providers.ids.tolist()
    uuids = {id_: uuid.decode() for id_, uuid in zip(ids, providers.uuids, strict=True)}
    assert len(uuids) == len(ids), "a provider has two rows"
    forest = {
        uuids[id_]: Seen(None if parent == NO_PARENT else uuids[parent], uuids[root])
        for id_, parent, root in zip(
            ids, providers.parent_ids.tolist(), providers.root_ids.tolist(), strict=True
        )
    }
    records = zip(*(getattr(inventories, name).tolist() for name in FIELDS), strict=True)
    keys = pairs(inventories.provider_ids, inventories.class_ids)
    for (id_, class_id), values in zip(keys, records, strict=True):
        record = dict(zip(FIELDS, values, strict=True))
        forest[uuids[id_]].inventories[vocabulary.class_names[class_id]] = record
    for (id_, name), used in usages_as_shown(rows.usages, vocabulary).items():
        forest[uuids[id_]].used[name] = used
    for id_, members in members_of(rows.traits).items():
        forest[uuids[id_]].traits = {vocabulary.trait_names[int(member)] for member in members}
    for id_, members in members_of(rows.aggregates).items():
        forest[uuids[id_]].aggregates = members
    return forest


def usages_as_shown(rows: UsageRows, vocabulary: Vocabulary) -> dict[tuple[int, str], int]:
    """(provider's id, name of the class) -> usage."""
    keys = pairs(rows.provider_ids, rows.class_ids)
    return {
        (id_, vocabulary.class_names[class_id]): used
        for (id_, class_id), used in zip(keys, rows.used.tolist(), strict=True)
    }


def members_of(rows: MembershipRows) -> dict[int, set[str]]:
    ids = rows.provider_ids.tolist()
    assert len(set(ids)) == len(ids), "a provider has two rows"
    return {id_: set(text.split(",")) for id_, text in zip(ids, rows.members, strict=True)}


def pairs(firsts: Any, seconds: Any) -> list[tuple[int, int]]:
    found = list(zip(firsts.tolist(), seconds.tolist(), strict=True))
    assert len(set(found)) == len(found), "two rows have one key"
    return found


@contextmanager
def counted(connection: Connection) -> Iterator[list[str]]:
    """The queries in the block."""
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        statement: str = arguments[2]
        if not statement.startswith("SET SESSION"):
            statements.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(connection, "before_cursor_execute", note)


def insert_providers(connection: Connection, count: int, *, one_tree: bool) -> list[int]:
    """Insert providers with one inventory each, as one tree or each as a root; their ids."""
    rows = [{"uuid": str(uuid4()), "name": str(uuid4()), "generation": 0} for _ in range(count)]
    table = tables.resource_providers
    connection.execute(sa.insert(table), rows)
    ids = list(connection.scalars(sa.select(table.c.id).order_by(table.c.id)))
    root = {"root_provider_id": ids[0] if one_tree else table.c.id}
    connection.execute(sa.update(table).values(root))
    if one_tree:
        below = sa.update(table).where(table.c.id != ids[0])
        connection.execute(below.values(parent_provider_id=ids[0]))
    amounts = dict.fromkeys(FIELDS, 1)
    connection.execute(
        sa.insert(tables.inventories),
        [{"resource_provider_id": id_, "resource_class_id": 0, **amounts} for id_ in ids],
    )
    connection.execute(
        sa.insert(tables.allocations),
        [
            {
                "resource_provider_id": id_,
                "resource_class_id": 0,
                "consumer_id": consumer,
                "used": id_,
            }
            for id_ in ids
            for consumer in ("one", "two")
        ],
    )
    return ids


class TestForest:
    def test_a_forest_without_providers_has_empty_columns(self, database: Database) -> None:
        rows = database.read(read_forest)
        assert rows.providers.ids.tolist() == rows.providers.uuids == []
        assert rows.inventories.allocation_ratio.tolist() == rows.usages.used.tolist() == []
        assert rows.traits.members == rows.aggregates.members == []
        assert all(
            column.dtype == np.int64
            for column in (rows.providers.ids, rows.inventories.total, rows.usages.used)
        )

    @pytest.mark.usefixtures("world")
    def test_a_forest_is_what_the_api_shows(
        self, cloud: ApiProviders, vocabulary: Vocabulary
    ) -> None:
        forest = as_shown(cloud.database.read(read_forest), vocabulary)
        assert len(forest) == 8
        assert forest == cloud.all_shown()

    @pytest.mark.usefixtures("world")
    def test_a_forest_can_be_read_in_a_snapshot(
        self, cloud: ApiProviders, vocabulary: Vocabulary
    ) -> None:
        rows = cloud.database.snapshot(read_forest)
        assert as_shown(rows, vocabulary) == cloud.all_shown()

    def test_a_forest_follows_moved_and_deleted_providers(
        self, cloud: ApiProviders, world: dict[str, str], vocabulary: Vocabulary
    ) -> None:
        cloud.move(world["numa"], None)
        cloud.move(world["other"], world["host"])
        cloud.delete(world["bare"])
        forest = as_shown(cloud.database.read(read_forest), vocabulary)
        assert forest[world["device"]].root == world["numa"]
        assert forest == cloud.all_shown()

    @pytest.mark.usefixtures("world")
    def test_a_forest_takes_one_statement_for_each_table(self, cloud: ApiProviders) -> None:
        with cloud.database.reader.connect() as connection, counted(connection) as statements:
            read_forest(connection)
        assert len(statements) == 5

    def test_a_forest_holds_the_largest_amounts(
        self, cloud: ApiProviders, vocabulary: Vocabulary
    ) -> None:
        provider = cloud.make()
        record = dict.fromkeys(FIELDS[:5], LARGEST) | {"min_unit": 1, "reserved": LARGEST - 1}
        records = {
            "VCPU": record | {"allocation_ratio": 3.3},
            "DISK_GB": {"total": LARGEST, "max_unit": LARGEST, "allocation_ratio": 1000.0},
        }
        cloud.put(provider, "inventories", records)
        for _ in range(3):
            cloud.claim({provider: {"DISK_GB": LARGEST}})
        forest = as_shown(cloud.database.read(read_forest), vocabulary)
        assert forest[provider].used == {"DISK_GB": 3 * LARGEST}
        assert forest == cloud.all_shown()

    def test_a_provider_may_have_all_traits_and_many_aggregates(
        self, cloud: ApiProviders, vocabulary: Vocabulary
    ) -> None:
        names = sorted(vocabulary.trait_ids)
        for first in (0, 5):
            provider = cloud.make()
            cloud.put(provider, "traits", names[first:])
            cloud.put(provider, "aggregates", [str(uuid4()) for _ in range(60)])
        rows = cloud.database.read(read_forest)
        texts = [*rows.traits.members, *rows.aggregates.members]
        assert min(map(len, texts)) > 1024
        assert as_shown(rows, vocabulary) == cloud.all_shown()

    def test_equal_sets_of_traits_are_one_text(self, cloud: ApiProviders) -> None:
        for _ in range(2):
            cloud.put(cloud.make(), "traits", ["HW_CPU_X86_AVX", "HW_CPU_X86_SSE"])
        first, second = cloud.database.read(read_forest).traits.members
        assert first is second

    def test_aggregates_have_their_canonical_spelling(self, cloud: ApiProviders) -> None:
        provider, aggregate = cloud.make(), str(uuid4())
        cloud.put(provider, "aggregates", [aggregate])
        respelt = sa.update(tables.placement_aggregates).values(uuid=aggregate.upper())
        cloud.database.write_at_once(lambda connection: connection.execute(respelt))
        assert cloud.database.read(read_forest).aggregates.members == [aggregate]

    def test_rows_of_invisible_providers_are_left_out(
        self, cloud: ApiProviders, world: dict[str, str], vocabulary: Vocabulary
    ) -> None:
        lost = cloud.make(VCPU=1)
        cloud.claim({lost: {"VCPU": 1}})
        cloud.put(lost, "traits", ["HW_CPU_X86_AVX"])
        (lost_id,) = cloud.ids(lost)
        columns = tables.resource_providers.c
        rootless = sa.update(tables.resource_providers).where(columns.id == lost_id)
        cloud.database.write_at_once(
            lambda connection: connection.execute(rootless.values(root_provider_id=None))
        )
        orphan = {"resource_provider_id": lost_id + 1, "resource_class_id": 0}
        cloud.database.write_at_once(
            lambda connection: connection.execute(
                sa.insert(tables.inventories), orphan | dict.fromkeys(FIELDS, 1)
            )
        )
        forest = as_shown(cloud.database.read(read_forest), vocabulary)
        assert lost not in forest
        assert world["host"] in forest
        assert forest == cloud.all_shown()
        assert cloud.database.read(read_trees, [lost_id, lost_id + 1], []).providers.uuids == []

    def test_a_forest_may_have_many_providers(self, database: Database) -> None:
        ids = database.write_at_once(insert_providers, MANY, one_tree=False)
        rows = database.read(read_forest)
        assert sorted(rows.providers.ids.tolist()) == ids
        assert sorted(rows.inventories.provider_ids.tolist()) == ids
        used = dict(zip(rows.usages.provider_ids.tolist(), rows.usages.used.tolist(), strict=True))
        assert used == {id_: 2 * id_ for id_ in ids}

    @pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
    def test_a_truncated_answer_is_refused(self, database: Database) -> None:
        database.write_at_once(insert_providers, 100, one_tree=False)
        with database.reader.connect() as connection:
            read_forest(connection)
            connection.exec_driver_sql("SET SESSION group_concat_max_len = 1024")
            with pytest.raises(DatabaseUnusable, match="max_allowed_packet"):
                read_forest(connection)
            connection.invalidate()
        assert len(database.read(read_forest).providers.uuids) == 100


def make_world(cloud: ApiProviders) -> dict[str, str]:
    """Two trees, a provider without inventory, a sharing provider, and several consumers."""
    host = cloud.make(DISK_GB=1000)
    numa = cloud.make(host, VCPU=16, MEMORY_MB=4096)
    device = cloud.make(numa, SRIOV_NET_VF=8)
    second_device = cloud.make(numa, SRIOV_NET_VF=8)
    other = cloud.make(VCPU=8, MEMORY_MB=1024)
    other_device = cloud.make(other, VGPU=4)
    bare = cloud.make()
    storage = cloud.make(DISK_GB=100_000)
    cloud.put(host, "traits", ["HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "COMPUTE_NODE"])
    cloud.put(device, "traits", ["HW_CPU_X86_AVX"])
    cloud.put(storage, "traits", ["MISC_SHARES_VIA_AGGREGATE"])
    near, far = str(uuid4()), str(uuid4())
    cloud.put(host, "aggregates", [near, far])
    cloud.put(storage, "aggregates", [near])
    records = {
        "VCPU": {
            "total": 8,
            "reserved": 2,
            "min_unit": 2,
            "max_unit": 4,
            "step_size": 2,
            "allocation_ratio": 16.5,
        },
        "MEMORY_MB": {"total": 1024, "allocation_ratio": 1.1},
    }
    cloud.put(other, "inventories", records)
    cloud.claim({host: {"DISK_GB": 10}, numa: {"VCPU": 2, "MEMORY_MB": 512}})
    cloud.claim({numa: {"VCPU": 3}, device: {"SRIOV_NET_VF": 1}})
    cloud.claim({other: {"VCPU": 4}})
    return {
        "host": host,
        "numa": numa,
        "device": device,
        "second device": second_device,
        "other": other,
        "other device": other_device,
        "bare": bare,
        "storage": storage,
    }


class TestTrees:
    @pytest.fixture
    def trees(self, cloud: ApiProviders, vocabulary: Vocabulary) -> Callable[..., Forest]:
        """Reads the trees of some ids, in the form of the API."""

        def read(provider_ids: Collection[int], old_root_ids: Collection[int] = ()) -> Forest:
            rows = cloud.database.read(read_trees, provider_ids, old_root_ids)
            return as_shown(rows, vocabulary)

        return read

    @pytest.mark.parametrize("name", ["host", "numa", "second device"])
    def test_any_provider_stands_for_its_tree(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest], name: str
    ) -> None:
        forest = trees(cloud.ids(world[name]))
        assert len(forest) == 4
        assert forest == cloud.shown(world["host"])

    def test_each_tree_is_read_once(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest]
    ) -> None:
        asked = cloud.ids(*(world[name] for name in ("numa", "device", "bare", "numa")))
        forest = trees(asked, cloud.ids(world["host"], world["other"]))
        assert forest == cloud.shown(world["host"], world["other"], world["bare"])

    def test_a_moved_provider_is_in_its_new_tree(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest]
    ) -> None:
        cloud.move(world["numa"], world["other"])
        asked = cloud.ids(world["numa"], world["device"], world["second device"])
        forest = trees(asked, cloud.ids(world["host"]))
        assert forest[world["device"]].root == world["other"]
        assert forest == cloud.shown(world["host"], world["other"])

    def test_a_root_that_moved_is_in_its_new_tree(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest]
    ) -> None:
        cloud.move(world["other"], world["numa"])
        forest = trees(cloud.ids(world["other device"]), cloud.ids(world["other"]))
        assert forest == cloud.shown(world["host"])
        assert len(forest) == 6

    def test_a_deleted_provider_is_in_no_tree(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest]
    ) -> None:
        gone = cloud.ids(world["second device"])
        cloud.delete(world["second device"])
        assert trees(gone) == {}
        forest = trees(gone, cloud.ids(world["host"]))
        assert len(forest) == 3
        assert forest == cloud.shown(world["host"])

    def test_a_deleted_tree_is_not_read(
        self, cloud: ApiProviders, world: dict[str, str], trees: Callable[..., Forest]
    ) -> None:
        gone = cloud.ids(world["bare"])
        cloud.delete(world["bare"])
        assert trees(gone, gone) == {}

    def test_no_ids_are_no_trees(self, world: dict[str, str], trees: Callable[..., Forest]) -> None:
        assert trees([], []) == {}

    @pytest.mark.usefixtures("world")
    @pytest.mark.parametrize("asked", [1, 2, 5, 300])
    def test_trees_take_few_statements(self, database: Database, kind: str, asked: int) -> None:
        with database.reader.connect() as connection, counted(connection) as statements:
            read_trees(connection, range(asked), range(3))
        assert len(statements) == (5 if kind == "sqlite" else 1)

    def test_many_trees_can_be_read(self, database: Database) -> None:
        ids = database.write_at_once(insert_providers, MANY, one_tree=False)
        rows = database.read(read_trees, ids[:-2], ids[-1:])
        wanted = [*ids[:-2], ids[-1]]
        assert sorted(rows.providers.ids.tolist()) == wanted
        assert len(rows.providers.uuids) == len(set(rows.providers.uuids)) == len(wanted)
        assert sorted(rows.inventories.provider_ids.tolist()) == wanted
        assert sorted(rows.usages.used.tolist()) == [2 * id_ for id_ in wanted]

    def test_one_tree_of_many_providers_is_read_once(self, database: Database) -> None:
        ids = database.write_at_once(insert_providers, MANY, one_tree=True)
        rows = database.read(read_trees, ids[10:], [])
        assert sorted(rows.providers.ids.tolist()) == ids
        assert sorted(rows.inventories.provider_ids.tolist()) == ids
        assert sorted(rows.providers.parent_ids.tolist()) == [NO_PARENT] + [ids[0]] * (MANY - 1)


class TestUsages:
    def test_usage_is_read_for_the_given_providers(
        self, cloud: ApiProviders, world: dict[str, str], vocabulary: Vocabulary
    ) -> None:
        numa, device, bare = cloud.ids(world["numa"], world["device"], world["bare"])
        rows = cloud.database.read(read_usages, {numa, device, bare})
        assert usages_as_shown(rows, vocabulary) == {
            (numa, "VCPU"): 5,
            (numa, "MEMORY_MB"): 512,
            (device, "SRIOV_NET_VF"): 1,
        }

    def test_deleted_allocations_are_not_in_use(
        self, cloud: ApiProviders, vocabulary: Vocabulary
    ) -> None:
        provider = cloud.make(VCPU=8)
        (id_,) = cloud.ids(provider)
        first, second = (cloud.claim({provider: {"VCPU": amount}}) for amount in (1, 2))
        assert cloud.api.delete(f"/allocations/{first}").status == 204
        rows = cloud.database.read(read_usages, [id_])
        assert usages_as_shown(rows, vocabulary) == {(id_, "VCPU"): 2}
        assert cloud.api.delete(f"/allocations/{second}").status == 204
        assert cloud.database.read(read_usages, [id_]).used.tolist() == []

    @pytest.mark.usefixtures("world")
    def test_no_ids_are_no_usage(self, cloud: ApiProviders) -> None:
        assert cloud.database.read(read_usages, []).used.tolist() == []

    @pytest.mark.parametrize("asked", [1, 3, 700])
    def test_usage_takes_one_statement(self, database: Database, asked: int) -> None:
        database.write_at_once(insert_providers, 10, one_tree=False)
        with database.reader.connect() as connection, counted(connection) as statements:
            read_usages(connection, range(asked))
        assert len(statements) == 1

    def test_usage_of_many_providers_can_be_read(self, database: Database) -> None:
        ids = database.write_at_once(insert_providers, MANY, one_tree=False)
        rows = database.read(read_usages, set(ids[1:]))
        found = dict(zip(rows.provider_ids.tolist(), rows.used.tolist(), strict=True))
        assert found == {id_: 2 * id_ for id_ in ids[1:]}


def allocations_as_shown(
    rows: AllocationRows, vocabulary: Vocabulary
) -> list[list[tuple[int, str, int]]]:
    """What each consumer holds: provider's id, name of the class, amount."""
    held: dict[int, list[tuple[int, str, int]]] = {}
    for id_, class_id, used, consumer in zip(
        rows.provider_ids.tolist(),
        rows.class_ids.tolist(),
        rows.used.tolist(),
        rows.consumers.tolist(),
        strict=True,
    ):
        held.setdefault(consumer, []).append((id_, vocabulary.class_names[class_id], used))
    return sorted(sorted(its) for its in held.values())


class TestAllocations:
    @pytest.mark.parametrize("length", [1, 2, 7, 4096])
    def test_all_pages_together_have_what_each_consumer_holds(
        self,
        cloud: ApiProviders,
        vocabulary: Vocabulary,
        monkeypatch: pytest.MonkeyPatch,
        length: int,
    ) -> None:
        monkeypatch.setattr(reading, "_ALLOCATIONS_AT_ONCE", length)
        one, two = cloud.make(VCPU=8, DISK_GB=LARGEST), cloud.make(VCPU=8)
        cloud.claim({one: {"VCPU": 1, "DISK_GB": LARGEST}, two: {"VCPU": 2}})
        cloud.claim({two: {"VCPU": 3}})
        cloud.api.delete(f"/allocations/{cloud.claim({two: {'VCPU': 1}})}")
        cloud.claim({one: {"VCPU": 3}})
        first, second = cloud.ids(one, two)
        pauses: list[None] = []
        rows = cloud.database.survey(read_allocations, lambda: pauses.append(None))
        assert allocations_as_shown(rows, vocabulary) == sorted(
            [
                sorted([(first, "VCPU", 1), (first, "DISK_GB", LARGEST), (second, "VCPU", 2)]),
                [(second, "VCPU", 3)],
                [(first, "VCPU", 3)],
            ]
        )
        assert len(pauses) == 5 // length + 1

    def test_all_pages_are_of_one_moment_and_hold_no_shared_connection(
        self, cloud: ApiProviders, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_ALLOCATIONS_AT_ONCE", 1)
        host = cloud.make(VCPU=8)
        for _ in range(3):
            cloud.claim({host: {"VCPU": 1}})
        open_at_pauses: list[int] = []

        def pause() -> None:
            # Another request writes and reads while the survey waits.
            cloud.claim({host: {"VCPU": 1}})
            open_at_pauses.append(cloud.database.surveyors.opened)

        rows = cloud.database.survey(read_allocations, pause)
        (id_,) = cloud.ids(host)
        assert allocations_as_shown(rows, vocabulary) == [[(id_, "VCPU", 1)]] * 3
        assert open_at_pauses == [1] * 4
        assert cloud.database.surveyors.opened == 0

    def test_a_cloud_without_consumers_has_none(self, database: Database) -> None:
        rows = database.survey(read_allocations, lambda: None)
        assert [len(values) for values in (rows.provider_ids, rows.consumers)] == [0, 0]


class TestVocabulary:
    def test_the_vocabulary_is_what_the_api_shows(self, api: ApiClient, database: Database) -> None:
        assert api.put("/resource_classes/CUSTOM_GOLD").status == 201
        assert api.put("/traits/CUSTOM_SHINY").status == 201
        vocabulary = database.read(read_vocabulary)
        classes = api.get("/resource_classes").json["resource_classes"]
        assert vocabulary.class_ids.keys() == {record["name"] for record in classes}
        assert vocabulary.trait_ids.keys() == set(api.get("/traits").json["traits"])
        assert vocabulary.class_names[vocabulary.class_ids["CUSTOM_GOLD"]] == "CUSTOM_GOLD"
        assert vocabulary.trait_names[vocabulary.trait_ids["CUSTOM_SHINY"]] == "CUSTOM_SHINY"
        assert vocabulary.class_ids["VCPU"] == 0
