"""The capacity of an inventory decides a claim: units, ratio, reserve, amounts in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from support.api_client import Answer, ApiClient

CONSTRAINTS = "The requested amount would violate inventory constraints."
CAPACITY = "The requested amount would exceed the capacity."
LARGEST = 2_147_483_647

Amounts = Mapping[str, int]

# Marks tests of behaviour that does not depend on the kind of database.
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make_provider(api: ApiClient, **inventories: dict[str, Any]) -> str:
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    set_inventories(api, uuid, **inventories)
    return uuid


def set_inventories(api: ApiClient, uuid: str, **inventories: dict[str, Any]) -> None:
    """Make these the provider's inventories, whatever its generation is."""
    path = f"/resource_providers/{uuid}/inventories"
    generation = api.get(path).json["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "inventories": inventories}
    assert api.put(path, body).status == 200


def record(api: ApiClient, consumer: str, allocations: Mapping[str, Amounts]) -> dict[str, Any]:
    """A consumer's claim, with the generation that it has now."""
    generation = api.get(f"/allocations/{consumer}").json.get("consumer_generation")
    return {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": "a project",
        "user_id": "a user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def claim(api: ApiClient, consumer: str, allocations: Mapping[str, Amounts]) -> Answer:
    return api.put(f"/allocations/{consumer}", record(api, consumer, allocations))


def claim_together(api: ApiClient, claims: Mapping[str, Mapping[str, Amounts]]) -> Answer:
    body = {consumer: record(api, consumer, wanted) for consumer, wanted in claims.items()}
    return api.post("/allocations", body)


def holder(api: ApiClient, allocations: Mapping[str, Amounts]) -> str:
    """A new consumer that holds these allocations."""
    consumer = str(uuid4())
    assert claim(api, consumer, allocations).status == 204
    return consumer


def used(api: ApiClient, uuid: str) -> Amounts:
    found: Amounts = api.get(f"/resource_providers/{uuid}/usages").json["usages"]
    return found


class TestSentences:
    @on_sqlite
    @pytest.mark.parametrize(
        ("inventory", "used", "words"),
        [
            (
                {"total": 2**20},
                1,
                "(asked for 1048577; 1 of 1048576 are in use by other consumers)",
            ),
            ({"total": 9, "allocation_ratio": 1.5}, 13, "13 of 13 are in use by other consumers)"),
            ({"total": LARGEST}, LARGEST, f"{LARGEST} of {LARGEST} are in use by"),
        ],
    )
    def test_a_refusal_has_whole_amounts(
        self, api: ApiClient, inventory: dict[str, Any], used: int, words: str
    ) -> None:
        provider = make_provider(api, VCPU=inventory)
        holder(api, {provider: {"VCPU": used}})
        answer = claim(api, str(uuid4()), {provider: {"VCPU": 2**20 + 1}})
        assert answer.status == 409
        assert CAPACITY in answer.detail
        assert words in answer.detail


class TestUnits:
    @on_sqlite
    @pytest.mark.parametrize(
        ("units", "amount", "fits"),
        [
            ({"min_unit": 3}, 2, False),
            ({"min_unit": 3}, 3, True),
            ({"max_unit": 5}, 5, True),
            ({"max_unit": 5}, 6, False),
            ({"step_size": 4}, 8, True),
            ({"step_size": 4}, 6, False),
            ({"step_size": 4}, 2, False),
            # Steps are counted from zero, not from the least unit.
            ({"min_unit": 3, "step_size": 2}, 3, False),
            ({"min_unit": 3, "step_size": 2}, 4, True),
            # The server does not compare the fields with each other. No amount fits these two.
            ({"min_unit": 5, "max_unit": 4}, 4, False),
            ({"min_unit": 5, "max_unit": 4}, 5, False),
            ({"max_unit": 1000}, 16, True),
        ],
    )
    def test_each_amount_keeps_to_the_units(
        self, api: ApiClient, units: dict[str, int], amount: int, fits: bool
    ) -> None:
        provider = make_provider(api, VCPU={"total": 16, **units})
        answer = claim(api, str(uuid4()), {provider: {"VCPU": amount}})
        assert answer.status == (204 if fits else 409)
        assert fits or CONSTRAINTS in answer.detail

    def test_units_bind_each_consumer_not_their_sum(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 16, "max_unit": 5})
        first, second = str(uuid4()), str(uuid4())
        wanted = {first: {provider: {"VCPU": 5}}, second: {provider: {"VCPU": 5}}}
        assert claim_together(api, wanted).status == 204

    @pytest.mark.parametrize("units", [{"min_unit": 5}, {"max_unit": 3}, {"step_size": 3}])
    def test_an_allocation_may_not_be_written_again_under_units_that_forbid_it(
        self, api: ApiClient, units: dict[str, int]
    ) -> None:
        provider = make_provider(api, VCPU={"total": 16})
        consumer = holder(api, {provider: {"VCPU": 4}})
        set_inventories(api, provider, VCPU={"total": 16, **units})
        answer = claim(api, consumer, {provider: {"VCPU": 4}})
        assert answer.status == 409
        assert CONSTRAINTS in answer.detail

    def test_an_allocation_may_always_be_given_back(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 16})
        consumer = holder(api, {provider: {"VCPU": 4}})
        set_inventories(api, provider, VCPU={"total": 1, "max_unit": 1})
        assert claim(api, consumer, {}).status == 204


class TestRoom:
    @pytest.mark.parametrize(
        ("inventory", "most"),
        [
            ({"total": 10}, 10),
            ({"total": 10, "reserved": 4}, 6),
            ({"total": 10, "allocation_ratio": 2.0}, 20),
            ({"total": 10, "allocation_ratio": 16.0, "reserved": 2}, 128),
            ({"total": 10, "allocation_ratio": 0.5}, 5),
            # 13.5 and 5.25: amounts are whole numbers, so the fraction is lost.
            ({"total": 9, "allocation_ratio": 1.5}, 13),
            ({"total": 21, "allocation_ratio": 0.25}, 5),
            ({"total": LARGEST}, LARGEST),
        ],
    )
    @pytest.mark.parametrize("in_excess", [0, 1])
    def test_capacity_is_total_less_reserved_times_ratio(
        self, api: ApiClient, inventory: dict[str, Any], most: int, in_excess: int
    ) -> None:
        # Two claims share the amount, so that neither breaks the units.
        provider = make_provider(api, VCPU=inventory)
        half = most // 2
        holder(api, {provider: {"VCPU": half}})
        answer = claim(api, str(uuid4()), {provider: {"VCPU": most - half + in_excess}})
        assert answer.status == (409 if in_excess else 204)
        assert not in_excess or CAPACITY in answer.detail

    @pytest.mark.parametrize(
        "inventory", [{"total": 10, "reserved": 10}, {"total": 10, "allocation_ratio": 0.05}]
    )
    def test_an_inventory_without_capacity_refuses_every_claim(
        self, api: ApiClient, inventory: dict[str, Any]
    ) -> None:
        provider = make_provider(api, VCPU=inventory)
        answer = claim(api, str(uuid4()), {provider: {"VCPU": 1}})
        assert answer.status == 409
        assert CAPACITY in answer.detail

    def test_many_small_claims_fill_a_provider_exactly(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 5})
        statuses = [claim(api, str(uuid4()), {provider: {"VCPU": 1}}).status for _ in range(7)]
        assert statuses == [204] * 5 + [409] * 2
        assert used(api, provider) == {"VCPU": 5}

    def test_the_sum_in_use_may_be_larger_than_any_single_amount(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": LARGEST, "allocation_ratio": 3.0})
        for _ in range(3):
            holder(api, {provider: {"VCPU": LARGEST}})
        assert used(api, provider) == {"VCPU": 3 * LARGEST}
        assert claim(api, str(uuid4()), {provider: {"VCPU": 1}}).status == 409

    def test_the_old_amount_of_the_consumer_does_not_count_against_its_new_amount(
        self, api: ApiClient
    ) -> None:
        provider = make_provider(api, VCPU={"total": 10})
        consumer = holder(api, {provider: {"VCPU": 8}})
        assert claim(api, consumer, {provider: {"VCPU": 10}}).status == 204
        assert claim(api, consumer, {provider: {"VCPU": 11}}).status == 409

    def test_each_class_needs_capacity_of_its_own(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 2}, DISK_GB={"total": 100})
        answer = claim(api, str(uuid4()), {provider: {"DISK_GB": 50, "VCPU": 3}})
        assert answer.status == 409
        assert "'VCPU'" in answer.detail

    def test_a_deletion_frees_the_room_of_its_consumer(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 10})
        consumer = holder(api, {provider: {"VCPU": 10}})
        assert api.delete(f"/allocations/{consumer}").status == 204
        assert claim(api, str(uuid4()), {provider: {"VCPU": 10}}).status == 204

    def test_a_claim_that_one_provider_refuses_takes_from_no_provider(self, api: ApiClient) -> None:
        roomy = make_provider(api, VCPU={"total": 10})
        full = make_provider(api, VCPU={"total": 1})
        wanted = {roomy: {"VCPU": 1}, full: {"VCPU": 2}}
        assert claim(api, str(uuid4()), wanted).status == 409
        assert used(api, roomy) == {"VCPU": 0}


class TestOverFullProviders:
    """Inventories may shrink below the amounts in use. A claim may then lower the use only."""

    @staticmethod
    def shrunk(api: ApiClient, amount: int, **inventory: Any) -> tuple[str, str]:
        """A provider, and a consumer that holds more than the capacity of the provider."""
        provider = make_provider(api, VCPU={"total": 100})
        consumer = holder(api, {provider: {"VCPU": amount}})
        set_inventories(api, provider, VCPU=inventory)
        return provider, consumer

    @on_sqlite
    @pytest.mark.parametrize(
        "inventory",
        [
            {"total": 4},
            {"total": 100, "reserved": 96},
            {"total": 100, "allocation_ratio": 0.04},
            {"total": 100, "reserved": 100},
        ],
    )
    @pytest.mark.parametrize(("amount", "status"), [(9, 204), (10, 204), (11, 409)])
    def test_a_holder_may_claim_less_or_as_much_but_not_more(
        self, api: ApiClient, inventory: dict[str, Any], amount: int, status: int
    ) -> None:
        provider, consumer = self.shrunk(api, 10, **inventory)
        assert claim(api, consumer, {provider: {"VCPU": amount}}).status == status

    def test_a_new_consumer_is_refused(self, api: ApiClient) -> None:
        provider, _ = self.shrunk(api, 10, total=4)
        answer = claim(api, str(uuid4()), {provider: {"VCPU": 1}})
        assert answer.status == 409
        assert CAPACITY in answer.detail

    def test_a_holder_that_gave_back_may_not_take_it_again(self, api: ApiClient) -> None:
        provider, consumer = self.shrunk(api, 10, total=4)
        assert claim(api, consumer, {provider: {"VCPU": 9}}).status == 204
        assert claim(api, consumer, {provider: {"VCPU": 10}}).status == 409

    def test_holders_may_exchange_their_amounts_in_one_request(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 100})
        first, second = (holder(api, {provider: {"VCPU": amount}}) for amount in (3, 7))
        set_inventories(api, provider, VCPU={"total": 4})
        wanted = {first: {provider: {"VCPU": 7}}, second: {provider: {"VCPU": 3}}}
        assert claim_together(api, wanted).status == 204
        assert used(api, provider) == {"VCPU": 10}

    def test_holders_may_not_exchange_for_a_larger_sum(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 100})
        first, second = (holder(api, {provider: {"VCPU": amount}}) for amount in (3, 7))
        set_inventories(api, provider, VCPU={"total": 4})
        wanted = {first: {provider: {"VCPU": 7}}, second: {provider: {"VCPU": 4}}}
        assert claim_together(api, wanted).status == 409
        assert used(api, provider) == {"VCPU": 10}

    def test_a_holder_may_hand_over_to_a_new_consumer(self, api: ApiClient) -> None:
        provider, old = self.shrunk(api, 10, total=4)
        new = str(uuid4())
        assert claim_together(api, {new: {provider: {"VCPU": 10}}, old: {}}).status == 204
        assert used(api, provider) == {"VCPU": 10}

    def test_a_holder_may_move_away(self, api: ApiClient) -> None:
        provider, consumer = self.shrunk(api, 10, total=4)
        refuge = make_provider(api, VCPU={"total": 10})
        assert claim(api, consumer, {refuge: {"VCPU": 10}}).status == 204
        assert (used(api, provider), used(api, refuge)) == ({"VCPU": 0}, {"VCPU": 10})

    def test_a_holder_may_not_grow_by_what_another_holder_gave_back(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 100})
        large, small = (holder(api, {provider: {"VCPU": amount}}) for amount in (9, 1))
        set_inventories(api, provider, VCPU={"total": 4})
        assert claim(api, small, {provider: {"VCPU": 2}}).status == 409
        assert claim(api, large, {provider: {"VCPU": 8}}).status == 204
        # The claim would raise the use from 8 + 1 to 8 + 2. The first sum of 10 does not count.
        assert claim(api, small, {provider: {"VCPU": 2}}).status == 409

    def test_each_class_is_checked_by_itself(self, api: ApiClient) -> None:
        plenty = {"total": 100}
        provider = make_provider(api, VCPU=plenty, DISK_GB=plenty)
        consumer = holder(api, {provider: {"VCPU": 10, "DISK_GB": 10}})
        set_inventories(api, provider, VCPU={"total": 4}, DISK_GB=plenty)
        assert claim(api, consumer, {provider: {"VCPU": 10, "DISK_GB": 90}}).status == 204
        assert claim(api, consumer, {provider: {"VCPU": 11, "DISK_GB": 10}}).status == 409


class TestSeveralConsumersTogether:
    def test_the_sum_of_all_consumers_must_fit(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 10})
        wanted = {str(uuid4()): {provider: {"VCPU": 4}} for _ in range(3)}
        answer = claim_together(api, wanted)
        assert answer.status == 409
        assert CAPACITY in answer.detail
        assert used(api, provider) == {"VCPU": 0}

    def test_a_sum_that_fits_exactly_is_granted(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 12})
        wanted = {str(uuid4()): {provider: {"VCPU": 4}} for _ in range(3)}
        assert claim_together(api, wanted).status == 204

    def test_the_amounts_of_other_consumers_count_besides_the_sum(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 12})
        holder(api, {provider: {"VCPU": 5}})
        wanted = {str(uuid4()): {provider: {"VCPU": 4}} for _ in range(2)}
        assert claim_together(api, wanted).status == 409

    def test_a_full_provider_lets_its_consumers_exchange_amounts(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 10})
        first, second = (holder(api, {provider: {"VCPU": amount}}) for amount in (4, 6))
        wanted = {first: {provider: {"VCPU": 6}}, second: {provider: {"VCPU": 4}}}
        assert claim_together(api, wanted).status == 204

    def test_two_full_providers_let_their_consumers_change_places(self, api: ApiClient) -> None:
        left, right = (make_provider(api, VCPU={"total": 10}) for _ in range(2))
        first, second = holder(api, {left: {"VCPU": 10}}), holder(api, {right: {"VCPU": 10}})
        wanted = {first: {right: {"VCPU": 10}}, second: {left: {"VCPU": 10}}}
        assert claim_together(api, wanted).status == 204

    @pytest.mark.parametrize("emptied_first", [False, True])
    def test_a_consumer_may_take_the_room_that_another_consumer_gives_up(
        self, api: ApiClient, emptied_first: bool
    ) -> None:
        # Nova moves the allocations of a server to its migration record in this way.
        provider = make_provider(api, VCPU={"total": 10})
        old, new = holder(api, {provider: {"VCPU": 10}}), str(uuid4())
        wanted: list[tuple[str, dict[str, Amounts]]] = [(new, {provider: {"VCPU": 10}}), (old, {})]
        if emptied_first:
            wanted.reverse()
        assert claim_together(api, dict(wanted)).status == 204
        assert used(api, provider) == {"VCPU": 10}
