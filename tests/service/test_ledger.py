"""The service against a model of its rules: random inventories, claims and reshapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection

from roost.store.database import Database
from roost.store.journal.writing import ChangeKind
from roost.store.tables import roost_changes
from support.api_client import ApiClient
from support.properties import many
from support.store.table_cleaning import clean_tables

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
PROVIDERS = range(3)
CONSUMERS = range(4)
UNKNOWN_PROVIDER = "00000000-0000-0000-0000-00000000dead"

# Provider -> resource class -> amount.
Allocations: TypeAlias = Mapping[str, Mapping[str, int]]
# Kind of the change and uuid of its provider.
Change: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Inventory:
    """One inventory."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio

    def gives(self, amount: int) -> bool:
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


@dataclass
class Provider:
    generation: int = 0
    inventories: dict[str, Inventory] = field(default_factory=dict)


@dataclass
class Consumer:
    generation: int
    allocations: Allocations


class Model:
    """The rules of claims: simple, slow, and written independently of the service."""

    def __init__(self, uuids: list[str]) -> None:
        self.providers = {uuid: Provider() for uuid in uuids}
        self.consumers: dict[str, Consumer] = {}

    def used(self, provider: str, name: str, claims: Mapping[str, Allocations]) -> int:
        """How much is in use after the claims are granted."""
        held = {uuid: consumer.allocations for uuid, consumer in self.consumers.items()}
        return sum(
            allocations.get(provider, {}).get(name, 0)
            for allocations in {**held, **claims}.values()
        )

    def fit(
        self, claims: Mapping[str, Allocations], inventories: Mapping[str, dict[str, Inventory]]
    ) -> bool:
        """Whether all claims can be granted together."""
        for allocations in claims.values():
            for provider, resources in allocations.items():
                for name, amount in resources.items():
                    inventory = inventories[provider].get(name)
                    if inventory is None or not inventory.gives(amount):
                        return False
                    after = self.used(provider, name, claims)
                    if after > inventory.capacity and after > self.used(provider, name, {}):
                        return False
        return True

    def generations_agree(
        self, claims: Mapping[str, Allocations], sent: Mapping[str, int | None]
    ) -> bool:
        return all(
            sent[uuid] == (self.consumers[uuid].generation if uuid in self.consumers else None)
            for uuid in claims
            if uuid in sent
        )

    def touched(self, claims: Mapping[str, Allocations]) -> set[str]:
        """The providers with allocations of these consumers, before or after the claims."""
        held = [self.consumers[uuid].allocations for uuid in claims if uuid in self.consumers]
        return {provider for allocations in (*held, *claims.values()) for provider in allocations}

    def moved(self, claims: Mapping[str, Allocations]) -> set[str]:
        """The providers whose generation the claims move."""
        freed = {
            provider
            for uuid, allocations in claims.items()
            if not allocations and uuid in self.consumers
            for provider in self.consumers[uuid].allocations
        }
        return freed | {provider for allocations in claims.values() for provider in allocations}

    def grant(self, claims: Mapping[str, Allocations]) -> None:
        for provider in self.moved(claims):
            self.providers[provider].generation += 1
        for uuid, allocations in claims.items():
            if not allocations:
                self.consumers.pop(uuid, None)
            else:
                old = self.consumers.get(uuid, Consumer(0, {}))
                self.consumers[uuid] = Consumer(old.generation + 1, allocations)


one_inventory = st.builds(
    Inventory,
    total=st.sampled_from([20, 16, 12, 8, 4, 1]),
    reserved=st.sampled_from([0, 0, 0, 1, 5]),
    min_unit=st.sampled_from([1, 1, 1, 1, 2]),
    max_unit=st.sampled_from([2_147_483_647, 2_147_483_647, 2_147_483_647, 4, 2]),
    step_size=st.sampled_from([1, 1, 1, 1, 2]),
    # Binary fractions: the model does not round.
    allocation_ratio=st.sampled_from([1.0, 1.0, 1.5, 2.0, 0.5]),
)
# Most providers have an inventory of each class.
inventories = st.fixed_dictionaries(
    {name: st.one_of(*[one_inventory] * 3, st.none()) for name in CLASSES}
).map(lambda given: {name: inventory for name, inventory in given.items() if inventory is not None})
resources = st.dictionaries(
    st.sampled_from(CLASSES), st.sampled_from([2, 1, 4, 3, 8]), min_size=1, max_size=2
)
# Providers and consumers by their numbers.
wanted: st.SearchStrategy[dict[int, dict[str, int]]] = st.one_of(
    st.dictionaries(st.sampled_from(PROVIDERS), resources, min_size=1, max_size=2), st.just({})
)
wanted_by_several = st.dictionaries(st.sampled_from(CONSUMERS), wanted, min_size=1, max_size=3)
# The error of a generation that a client sends. Most generations are right.
errors = st.sampled_from([0] * 12 + [-1, 1])


class Ledger(RuleBasedStateMachine):
    """Makes the same changes in the service and in the model, and compares the results."""

    def __init__(self, api: ApiClient, database: Database) -> None:
        super().__init__()
        self.api = api
        self.database = database
        database.write_at_once(clean_tables)
        # Sorted: a choice by position then means the same in every run of one example.
        self.uuids = sorted(str(uuid4()) for _ in PROVIDERS)
        self.consumers = sorted(str(uuid4()) for _ in CONSUMERS)
        self.model = Model(self.uuids)
        for uuid in self.uuids:
            assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
        self.read_up_to = self.newest_change()

    @initialize(given=st.tuples(inventories, inventories, st.just({})))
    def set_first_inventories(self, given: tuple[dict[str, Inventory], ...]) -> None:
        for number in PROVIDERS:
            self.set_inventories(number, given[number], error=0)

    # --- requests of clients

    @rule(number=st.sampled_from(PROVIDERS), given=inventories, error=errors)
    def set_inventories(self, number: int, given: dict[str, Inventory], error: int) -> None:
        uuid = self.uuids[number]
        provider = self.model.providers[uuid]
        dropped = provider.inventories.keys() - given.keys()
        if error:
            status = 409
        elif any(int(inventory.capacity) < 0 for inventory in given.values()):
            status = 400
        else:
            status = 409 if any(self.model.used(uuid, name, {}) for name in dropped) else 200
        answer = self.api.put(
            f"/resource_providers/{uuid}/inventories",
            inventories_body(provider.generation + error, given),
        )
        assert answer.status == status
        if status == 200:
            provider.generation += 1
            provider.inventories = given
        self.check_journal({(ChangeKind.INVENTORIES, uuid)} if status == 200 else set())

    @precondition(lambda self: self.model.consumers)
    @rule(number=st.sampled_from(PROVIDERS))
    def delete_inventories(self, number: int) -> None:
        uuid = self.uuids[number]
        provider = self.model.providers[uuid]
        in_use = any(self.model.used(uuid, name, {}) for name in provider.inventories)
        answer = self.api.delete(f"/resource_providers/{uuid}/inventories")
        assert answer.status == (409 if in_use else 204)
        if not in_use:
            provider.generation += 1
            provider.inventories = {}
        self.check_journal(set() if in_use else {(ChangeKind.INVENTORIES, uuid)})

    @rule(
        number=st.sampled_from(CONSUMERS),
        given=wanted,
        error=errors,
        names_unknown_provider=st.sampled_from([False] * 12 + [True]),
        version=st.sampled_from(["1.39", "1.39", "1.12"]),
    )
    def claim(
        self,
        number: int,
        given: dict[int, Any],
        error: int,
        names_unknown_provider: bool,
        version: str,
    ) -> None:
        consumer, claims = self.consumers[number], self.claims({number: given})
        sent = self.generations(claims, error) if version == "1.39" else {}
        body = claim_body(claims[consumer], sent, consumer)
        if names_unknown_provider:
            body["allocations"][UNKNOWN_PROVIDER] = {"resources": {"VCPU": 1}}
        answer = self.api.at(version).put(f"/allocations/{consumer}", body)
        if version == "1.12" and not body["allocations"]:
            assert answer.status == 400
            self.check_journal(set())
        else:
            self.settle(claims, sent, answer.status, names_unknown_provider=names_unknown_provider)

    @precondition(lambda self: any(one.inventories for one in self.model.providers.values()))
    @rule(data=st.data(), numbers=st.sets(st.sampled_from(CONSUMERS), min_size=1, max_size=2))
    def claim_the_least(self, data: st.DataObject, numbers: set[int]) -> None:
        """Claim the smallest amounts that the units allow. Most of these claims are granted."""
        there = [
            (uuid, name, inventory.step_size * -(-inventory.min_unit // inventory.step_size))
            for uuid, provider in self.model.providers.items()
            for name, inventory in provider.inventories.items()
        ]
        claims: dict[str, Allocations] = {}
        for number in sorted(numbers):
            uuid, name, amount = data.draw(st.sampled_from(there))
            claims[self.consumers[number]] = {uuid: {name: amount}}
        sent = self.generations(claims, error=0)
        body = {uuid: claim_body(claims[uuid], sent, uuid) for uuid in claims}
        self.settle(claims, sent, self.api.post("/allocations", body).status)

    @rule(given=wanted_by_several, error=errors, version=st.sampled_from(["1.39", "1.39", "1.13"]))
    def claim_for_several(self, given: dict[int, Any], error: int, version: str) -> None:
        claims = self.claims(given)
        sent = self.generations(claims, error) if version == "1.39" else {}
        body = {uuid: claim_body(claims[uuid], sent, uuid) for uuid in claims}
        answer = self.api.at(version).post("/allocations", body)
        self.settle(claims, sent, answer.status)

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data())
    def shrink(self, data: st.DataObject) -> None:
        """All inventories of a provider in use shrink. Most usages then exceed the capacity."""
        consumer = data.draw(st.sampled_from(sorted(self.model.consumers)))
        uuid = data.draw(st.sampled_from(sorted(self.model.consumers[consumer].allocations)))
        small = {
            name: replace(inventory, total=1, reserved=0)
            for name, inventory in self.model.providers[uuid].inventories.items()
        }
        self.set_inventories(self.uuids.index(uuid), small, error=0)

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data(), step=st.sampled_from([0, -1, 1]))
    def write_again(self, data: st.DataObject, step: int) -> None:
        """A consumer claims what it holds, or a little less or more."""
        consumer = data.draw(st.sampled_from(sorted(self.model.consumers)))
        held = self.model.consumers[consumer].allocations
        uuid = data.draw(st.sampled_from(sorted(held)))
        name = data.draw(st.sampled_from(sorted(held[uuid])))
        amount = max(1, held[uuid][name] + step)
        claims = {consumer: {**held, uuid: {**held[uuid], name: amount}}}
        sent = self.generations(claims, error=0)
        body = claim_body(claims[consumer], sent, consumer)
        self.settle(claims, sent, self.api.put(f"/allocations/{consumer}", body).status)

    @precondition(lambda self: len(self.model.consumers) > 1)
    @rule(data=st.data())
    def exchange(self, data: st.DataObject) -> None:
        """Two consumers exchange their allocations."""
        pair = data.draw(st.permutations(sorted(self.model.consumers)))[:2]
        held = [self.model.consumers[uuid].allocations for uuid in pair]
        claims = dict(zip(pair, reversed(held), strict=True))
        sent = self.generations(claims, error=0)
        body = {uuid: claim_body(claims[uuid], sent, uuid) for uuid in claims}
        self.settle(claims, sent, self.api.post("/allocations", body).status)

    @precondition(lambda self: self.model.consumers)
    @rule(number=st.sampled_from(CONSUMERS))
    def release(self, number: int) -> None:
        consumer = self.consumers[number]
        held = self.model.consumers.pop(consumer, None)
        answer = self.api.delete(f"/allocations/{consumer}")
        assert answer.status == (404 if held is None else 204)
        # A release changes the usage of its providers, but not their generations.
        touched = set() if held is None else set(held.allocations)
        self.check_journal({(ChangeKind.USAGE, provider) for provider in touched})

    @rule(
        given=st.dictionaries(st.sampled_from(PROVIDERS), inventories, min_size=1, max_size=2),
        claimed=st.one_of(st.just({}), wanted_by_several),
        error=errors,
        provider_error=errors,
    )
    def reshape(
        self,
        given: dict[int, dict[str, Inventory]],
        claimed: dict[int, Any],
        error: int,
        provider_error: int,
    ) -> None:
        new = {self.uuids[number]: inventories for number, inventories in given.items()}
        self.check_reshape(new, self.claims(claimed), error, provider_error)

    @rule(origin=st.sampled_from(PROVIDERS), destination=st.sampled_from(PROVIDERS))
    def move_everything(self, origin: int, destination: int) -> None:
        """All inventories of a provider, with their allocations, move to a second provider."""
        if origin == destination:
            return
        old, new = self.uuids[origin], self.uuids[destination]
        merged = self.model.providers[new].inventories | self.model.providers[old].inventories
        claims: dict[str, Allocations] = {}
        for uuid, consumer in self.model.consumers.items():
            if old in consumer.allocations:
                kept = {key: held for key, held in consumer.allocations.items() if key != old}
                both = {**kept.get(new, {}), **consumer.allocations[old]}
                claims[uuid] = kept | {new: both}
        self.check_reshape({old: {}, new: merged}, claims, error=0, provider_error=0)

    # --- checks after each request

    @invariant()
    def providers_are_as_in_the_model(self) -> None:
        for uuid, provider in self.model.providers.items():
            assert self.api.get(f"/resource_providers/{uuid}/usages").json == {
                "resource_provider_generation": provider.generation,
                "usages": {name: self.model.used(uuid, name, {}) for name in provider.inventories},
            }

    @invariant()
    def consumers_are_as_in_the_model(self) -> None:
        for uuid in self.consumers:
            shown = self.api.get(f"/allocations/{uuid}").json
            consumer = self.model.consumers.get(uuid)
            held = {key: item["resources"] for key, item in shown["allocations"].items()}
            assert held == ({} if consumer is None else consumer.allocations)
            generation = None if consumer is None else consumer.generation
            assert shown.get("consumer_generation") == generation

    def settle(
        self,
        claims: Mapping[str, Allocations],
        sent: Mapping[str, int | None],
        status: int,
        names_unknown_provider: bool = False,
    ) -> None:
        """The service has granted the claims if and only if the model grants them."""
        inventories = {
            uuid: provider.inventories for uuid, provider in self.model.providers.items()
        }
        if not self.model.generations_agree(claims, sent):
            assert status == 409
        elif names_unknown_provider:
            assert status == 400
        elif not self.model.fit(claims, inventories):
            assert status == 409
        else:
            assert status == 204
            touched = self.model.touched(claims)
            self.model.grant(claims)
            self.check_journal({(ChangeKind.USAGE, uuid) for uuid in touched})
            return
        self.check_journal(set())

    def check_reshape(
        self,
        new: Mapping[str, dict[str, Inventory]],
        claims: Mapping[str, Allocations],
        error: int,
        provider_error: int,
    ) -> None:
        sent = self.generations(claims, error)
        body = {
            "inventories": {
                uuid: inventories_body(
                    self.model.providers[uuid].generation + provider_error, inventories
                )
                for uuid, inventories in new.items()
            },
            "allocations": {uuid: claim_body(claims[uuid], sent, uuid) for uuid in claims},
        }
        present = {uuid: provider.inventories for uuid, provider in self.model.providers.items()}
        after = {**present, **new}
        orphaned = any(
            self.model.used(uuid, name, claims)
            for uuid in new
            for name in self.model.providers[uuid].inventories.keys() - new[uuid].keys()
        )
        granted = (
            not provider_error
            and self.model.generations_agree(claims, sent)
            and self.model.fit(claims, after)
            and not orphaned
        )
        assert self.api.post("/reshaper", body).status == (204 if granted else 409)
        if not granted:
            self.check_journal(set())
            return
        changes: set[Change] = {(ChangeKind.USAGE, uuid) for uuid in self.model.touched(claims)}
        self.model.grant(claims)
        for uuid, inventories in new.items():
            self.model.providers[uuid].generation += 2 if inventories else 1
            self.model.providers[uuid].inventories = inventories
            changes.add((ChangeKind.INVENTORIES, uuid))
        self.check_journal(changes)

    def check_journal(self, expected: set[Change]) -> None:
        """The last request journalled exactly these changes."""
        before = self.read_up_to

        def read(connection: Connection) -> set[Change]:
            query = sa.select(roost_changes.c.kind, roost_changes.c.provider_uuid)
            return {
                (row.kind, row.provider_uuid)
                for row in connection.execute(query.where(roost_changes.c.id > before))
            }

        assert self.database.read(read) == expected
        self.read_up_to = self.newest_change()

    # --- helpers

    def newest_change(self) -> int:
        query = sa.select(sa.func.coalesce(sa.func.max(roost_changes.c.id), 0))
        found: int = self.database.read(lambda connection: connection.execute(query).scalar_one())
        return found

    def claims(self, given: Mapping[int, Any]) -> dict[str, Allocations]:
        return {
            self.consumers[number]: {self.uuids[at]: held for at, held in allocations.items()}
            for number, allocations in given.items()
        }

    def generations(self, claims: Mapping[str, Allocations], error: int) -> dict[str, int | None]:
        """The consumer generations that clients send; an error makes them wrong."""
        known = self.model.consumers
        return {
            uuid: known[uuid].generation + error if uuid in known else error or None
            for uuid in claims
        }


def inventories_body(generation: int, given: Mapping[str, Inventory]) -> dict[str, Any]:
    return {
        "resource_provider_generation": generation,
        "inventories": {name: vars(inventory) for name, inventory in given.items()},
    }


def claim_body(
    allocations: Allocations, sent: Mapping[str, int | None], consumer: str
) -> dict[str, Any]:
    """The body of a claim. Without generations, it has the form of old microversions."""
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": dict(held)} for uuid, held in allocations.items()},
        "project_id": "a project",
        "user_id": "a user",
    }
    if sent:
        body |= {"consumer_generation": sent[consumer], "consumer_type": "INSTANCE"}
    return body


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_service_agrees_with_the_model(api: ApiClient, database: Database) -> None:
    class Machine(Ledger):
        def __init__(self) -> None:
            super().__init__(api, database)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=many(10),
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        ),
    )
