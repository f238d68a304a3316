"""Readers take usages from the journal. They are right after every interleaving of writers.

A claim tells readers the new sums of its providers. A sum that a claim read before another change
of the same provider, and that becomes visible after it, would be wrong for ever. The locks of the
providers prevent that. Each example chooses works for three writers, and in which order they make
their round trips. Readers begin before, between and after the works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from roost.replica.replica import Replica
from roost.search.forest.forest import Forest
from roost.store.database import Database
from roost.store.tables import allocations, inventories, resource_classes, resource_providers
from support.api_client import Answer, ApiClient
from support.client.random_choices import Choices
from support.properties import many
from support.store.interleaving import interleaved
from support.store.table_cleaning import clean_tables

Usages = dict[tuple[str, str], int]

CLASSES = ("VCPU", "MEMORY_MB")
REFUSED = (404, 409)


@dataclass
class TwoHosts:
    """Two providers, and consumers that hold allocations from them at the start."""

    api: ApiClient
    hosts: list[str] = field(default_factory=lambda: [str(uuid4()), str(uuid4())])
    consumers: list[str] = field(default_factory=lambda: [str(uuid4()) for _ in range(3)])

    def make(self) -> None:
        for host in self.hosts:
            assert self.api.post("/resource_providers", {"name": host, "uuid": host}).status == 200
            self.require(self.set_inventories(host, 100))
        for number, consumer in enumerate(self.consumers):
            chosen = self.hosts if number == 2 else self.hosts[number : number + 1]
            self.require(self.claim(consumer, chosen, 5, None))

    @staticmethod
    def require(answer: Answer) -> None:
        assert answer.status in (200, 204), answer.body

    def set_inventories(self, host: str, total: int) -> Answer:
        generation = self.api.get(f"/resource_providers/{host}").json["generation"]
        return self.api.put(
            f"/resource_providers/{host}/inventories", self.inventories(generation, total)
        )

    @staticmethod
    def inventories(generation: int, total: int) -> dict[str, Any]:
        return {
            "resource_provider_generation": generation,
            "inventories": {name: {"total": total} for name in CLASSES},
        }

    def claim(self, consumer: str, hosts: list[str], amount: int, generation: Any) -> Answer:
        return self.api.put(f"/allocations/{consumer}", self.claim_body(hosts, amount, generation))

    @staticmethod
    def claim_body(hosts: list[str], amount: int, generation: Any) -> dict[str, Any]:
        return {
            "allocations": {
                host: {"resources": dict.fromkeys(CLASSES[: 1 + amount % 2], amount)}
                for host in hosts
            },
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }

    def reshape(self, consumer: str, host: str, amount: int) -> Answer:
        """Give a host other inventories, and a consumer other allocations, in one request."""
        generation = self.api.get(f"/resource_providers/{host}").json["generation"]
        known = self.api.get(f"/allocations/{consumer}").json.get("consumer_generation")
        return self.api.post(
            "/reshaper",
            {
                "inventories": {host: self.inventories(generation, 90)},
                "allocations": {consumer: self.claim_body([host], amount, known)},
            },
        )

    def work(self, choices: Choices) -> Callable[[], None]:
        """A random request; it may be refused, because other writers were faster."""
        hosts = choices.one([self.hosts[:1], self.hosts[1:], self.hosts])
        consumer, amount = choices.one(self.consumers), 1 + choices.one(range(8))
        requests: list[Callable[[], Answer]] = [
            lambda: self.claim(str(uuid4()), hosts, amount, None),
            lambda: self.api.delete(f"/allocations/{consumer}"),
            lambda: self.claim(consumer, hosts, amount, 1),
            # Clients before 1.28 send no consumer generation.
            lambda: self.api.at("1.27").put(f"/allocations/{consumer}", _older(hosts, amount)),
            lambda: self.set_inventories(hosts[0], 100 + amount),
            lambda: self.reshape(consumer, hosts[0], amount),
            lambda: self.claim(consumer, [], 0, 1),
        ]
        send = choices.one(requests)

        def send_once() -> None:
            answer = send()
            assert answer.status in (200, 204, *REFUSED), answer.body

        return send_once


def _older(hosts: list[str], amount: int) -> dict[str, Any]:
    body = TwoHosts.claim_body(hosts, amount, None)
    del body["consumer_generation"], body["consumer_type"]
    return body


def usages_of(forest: Forest) -> Usages:
    """The usages in a forest, by provider and resource class."""
    return {
        (block.uuids[index].decode(), forest.vocabulary.class_names[class_id]): used
        for block in forest.blocks
        for class_id, inventory in block.inventories.items()
        for index, used in zip(inventory.indexes.tolist(), inventory.used.tolist(), strict=True)
    }


def stored_usages(connection: Connection) -> Usages:
    """The usages in the tables."""
    total = sa.func.coalesce(sa.func.sum(allocations.c.used), 0)
    query = (
        sa.select(resource_providers.c.uuid, resource_classes.c.name, total)
        .select_from(
            inventories.join(
                resource_providers, resource_providers.c.id == inventories.c.resource_provider_id
            )
            .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
            .outerjoin(
                allocations,
                (allocations.c.resource_provider_id == inventories.c.resource_provider_id)
                & (allocations.c.resource_class_id == inventories.c.resource_class_id),
            )
        )
        .group_by(resource_providers.c.uuid, resource_classes.c.name)
    )
    return {(uuid, name): int(used) for uuid, name, used in connection.execute(query)}


@settings(
    max_examples=many(3),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    works=st.lists(st.binary(min_size=8, max_size=8), min_size=3, max_size=5),
    schedule=st.lists(st.integers(0, 3), min_size=8, max_size=24),
)
def test_readers_agree_with_the_tables_after_every_round_trip(
    api: ApiClient, database: Database, works: list[bytes], schedule: list[int]
) -> None:
    database.write_at_once(clean_tables)
    cloud = TwoHosts(api)
    cloud.make()
    replicas = [Replica(database)]

    def compare() -> None:
        # All writers stand still, or wait for one that stands still. On a busy machine, one may
        # still be on its way.
        found, before, after = [], {("", ""): -1}, database.read(stored_usages)
        while before != after:
            before = after
            found = [usages_of(replica.current()) for replica in replicas]
            after = database.read(stored_usages)
        assert found == [after] * len(replicas)

    compare()
    parts = [[cloud.work(Choices(drawn)) for drawn in works[number::3]] for number in range(3)]
    with interleaved(database, parts) as writers:
        for turn in schedule:
            if turn == len(writers):
                replicas.append(Replica(database))
            else:
                writers[turn].step()
            compare()
    replicas.append(Replica(database))
    compare()
