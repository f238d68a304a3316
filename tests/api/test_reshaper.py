"""`POST /reshaper`: inventories and allocations change together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from support.api_client import ApiClient

Amounts = Mapping[str, int]

# Marks tests of behaviour that does not depend on the kind of database.
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make_provider(api: ApiClient, **totals: int) -> str:
    """A provider at generation 0, or with these inventories at generation 1."""
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    if totals:
        body = new_inventories(0, **totals)
        assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def new_inventories(generation: int, **totals: int | dict[str, Any]) -> dict[str, Any]:
    """A provider's part of the body: inventories by class, all fields or only the total."""
    records = {
        name: given if isinstance(given, dict) else {"total": given}
        for name, given in totals.items()
    }
    return {"resource_provider_generation": generation, "inventories": records}


def claim(
    allocations: Mapping[str, Amounts], generation: int | None = None, **members: Any
) -> dict[str, Any]:
    """A consumer's part of the body, in the form of the latest version."""
    return {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": "a project",
        "user_id": "a user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    } | members


def holder(api: ApiClient, allocations: Mapping[str, Amounts]) -> str:
    consumer = str(uuid4())
    assert api.put(f"/allocations/{consumer}", claim(allocations)).status == 204
    return consumer


def reshape(
    inventories: Mapping[str, Any], allocations: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {"inventories": inventories, "allocations": allocations or {}}


def held(api: ApiClient, consumer: str) -> dict[str, Amounts]:
    found = api.get(f"/allocations/{consumer}").json["allocations"]
    return {uuid: item["resources"] for uuid, item in found.items()}


def totals(api: ApiClient, uuid: str) -> Amounts:
    found = api.get(f"/resource_providers/{uuid}/inventories").json["inventories"]
    return {name: inventory["total"] for name, inventory in found.items()}


def provider_generation(api: ApiClient, uuid: str) -> int:
    found: int = api.get(f"/resource_providers/{uuid}").json["generation"]
    return found


class TestMoves:
    def test_inventory_moves_to_a_child_with_its_allocations(self, api: ApiClient) -> None:
        # Nova sends this request when a host begins to show its NUMA nodes or its GPUs.
        host, child = make_provider(api, VCPU=8, VGPU=4), str(uuid4())
        body = {"name": child, "uuid": child, "parent_provider_uuid": host}
        assert api.post("/resource_providers", body).status == 200
        first, second = (holder(api, {host: {"VCPU": 2, "VGPU": 2}}) for _ in range(2))
        answer = api.post(
            "/reshaper",
            reshape(
                {host: new_inventories(3, VCPU=8), child: new_inventories(0, VGPU=4)},
                {
                    consumer: claim({host: {"VCPU": 2}, child: {"VGPU": 2}}, generation=1)
                    for consumer in (first, second)
                },
            ),
        )
        assert (answer.status, answer.body) == (204, b"")
        assert (totals(api, host), totals(api, child)) == ({"VCPU": 8}, {"VGPU": 4})
        assert held(api, first) == held(api, second) == {host: {"VCPU": 2}, child: {"VGPU": 2}}

    def test_a_class_can_be_exchanged_for_another(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 8}})
        body = reshape(
            {host: new_inventories(2, PCPU=8)}, {consumer: claim({host: {"PCPU": 8}}, generation=1)}
        )
        assert api.post("/reshaper", body).status == 204
        assert (totals(api, host), held(api, consumer)) == ({"PCPU": 8}, {host: {"PCPU": 8}})

    def test_everything_can_move_to_another_provider(self, api: ApiClient) -> None:
        old, new = make_provider(api, VCPU=8), make_provider(api)
        consumer = holder(api, {old: {"VCPU": 8}})
        body = reshape(
            {old: new_inventories(2), new: new_inventories(0, VCPU=8)},
            {consumer: claim({new: {"VCPU": 8}}, generation=1)},
        )
        assert api.post("/reshaper", body).status == 204
        assert (totals(api, old), totals(api, new)) == ({}, {"VCPU": 8})
        assert held(api, consumer) == {new: {"VCPU": 8}}

    def test_all_fields_of_an_inventory_are_replaced(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        fields = {
            "total": 10,
            "reserved": 2,
            "min_unit": 2,
            "max_unit": 6,
            "step_size": 2,
            "allocation_ratio": 1.5,
        }
        assert api.post("/reshaper", reshape({host: new_inventories(1, VCPU=fields)})).status == 204
        found = api.get(f"/resource_providers/{host}/inventories").json["inventories"]
        assert found == {"VCPU": fields}

    def test_fields_that_are_left_out_get_their_defaults(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        fields = {"total": 8, "max_unit": 2, "reserved": 1}
        for generation, given in ((1, fields), (3, {"total": 8})):
            body = reshape({host: new_inventories(generation, VCPU=given)})
            assert api.post("/reshaper", body).status == 204
        assert api.get(f"/resource_providers/{host}/inventories/VCPU").json == {
            "total": 8,
            "reserved": 0,
            "min_unit": 1,
            "max_unit": 2147483647,
            "step_size": 1,
            "allocation_ratio": 1.0,
            "resource_provider_generation": 5,
        }

    def test_providers_and_consumers_outside_the_request_keep_their_rows(
        self, api: ApiClient
    ) -> None:
        host, other = make_provider(api, VCPU=8), make_provider(api, VCPU=8)
        bystander = holder(api, {host: {"VCPU": 2}, other: {"VCPU": 2}})
        assert api.post("/reshaper", reshape({host: new_inventories(2, VCPU=4)})).status == 204
        assert totals(api, other) == {"VCPU": 8}
        assert held(api, bystander) == {host: {"VCPU": 2}, other: {"VCPU": 2}}
        assert api.get(f"/allocations/{bystander}").json["consumer_generation"] == 1

    def test_a_reshape_may_add_a_consumer(self, api: ApiClient) -> None:
        host, consumer = make_provider(api), str(uuid4())
        body = reshape({host: new_inventories(0, VCPU=8)}, {consumer: claim({host: {"VCPU": 8}})})
        assert api.post("/reshaper", body).status == 204
        assert held(api, consumer) == {host: {"VCPU": 8}}

    def test_a_reshape_may_empty_a_consumer(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 8}})
        body = reshape({host: new_inventories(2)}, {consumer: claim({}, generation=1)})
        assert api.post("/reshaper", body).status == 204
        assert api.get(f"/allocations/{consumer}").json == {"allocations": {}}

    def test_owners_are_recorded_as_in_a_claim(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 1}})
        owner = {"project_id": "another", "user_id": "other", "consumer_type": "MIGRATION"}
        body = reshape(
            {host: new_inventories(2, VCPU=8)}, {consumer: claim({host: {"VCPU": 1}}, 1, **owner)}
        )
        assert api.post("/reshaper", body).status == 204
        shown = api.get(f"/allocations/{consumer}").json
        assert {name: shown[name] for name in owner} == owner

    @on_sqlite
    def test_an_inventory_may_reserve_more_than_its_total(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        fields = {"total": 8, "reserved": 9}
        assert api.post("/reshaper", reshape({host: new_inventories(1, VCPU=fields)})).status == 204

    def test_an_over_full_provider_may_be_written_as_it_is(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 8}})
        body = reshape(
            {host: new_inventories(2, VCPU=4)}, {consumer: claim({host: {"VCPU": 8}}, generation=1)}
        )
        assert api.post("/reshaper", body).status == 204

    def test_an_over_full_provider_may_not_be_filled_further(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 7}})
        body = reshape(
            {host: new_inventories(2, VCPU=4)}, {consumer: claim({host: {"VCPU": 8}}, generation=1)}
        )
        answer = api.post("/reshaper", body)
        assert answer.status == 409
        assert "The requested amount would exceed the capacity." in answer.detail

    @on_sqlite
    def test_the_answer_has_no_cache_headers(self, api: ApiClient) -> None:
        headers = api.post("/reshaper", reshape({make_provider(api): new_inventories(0)})).headers
        assert not {"last-modified", "cache-control"} & headers.keys()


class TestGenerations:
    @on_sqlite
    @pytest.mark.parametrize(
        ("before", "after", "touched", "steps"),
        [
            ({}, {"VCPU": 8}, False, 2),
            ({"VCPU": 8}, {"VCPU": 8}, False, 2),
            ({"VCPU": 8}, {"VCPU": 4}, False, 2),
            ({"VCPU": 8, "DISK_GB": 8}, {"VCPU": 8}, False, 2),
            ({"VCPU": 8}, {"VCPU": 8}, True, 3),
            ({}, {"VCPU": 8}, True, 3),
            ({"VCPU": 8}, {}, False, 1),
            ({}, {}, False, 1),
        ],
    )
    def test_a_provider_with_new_inventories_moves(
        self,
        api: ApiClient,
        before: dict[str, int],
        after: dict[str, int],
        touched: bool,
        steps: int,
    ) -> None:
        host = make_provider(api, **before)
        generation = provider_generation(api, host)
        claims = {str(uuid4()): claim({host: {"VCPU": 1}})} if touched else {}
        body = reshape({host: new_inventories(generation, **after)}, claims)
        assert api.post("/reshaper", body).status == 204
        assert provider_generation(api, host) == generation + steps

    def test_a_provider_that_loses_everything_to_an_emptied_consumer_moves_twice(
        self, api: ApiClient
    ) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 8}})
        body = reshape({host: new_inventories(2)}, {consumer: claim({}, generation=1)})
        assert api.post("/reshaper", body).status == 204
        assert provider_generation(api, host) == 4

    def test_a_provider_that_its_consumer_leaves_moves_for_its_inventories_only(
        self, api: ApiClient
    ) -> None:
        old, new = make_provider(api, VCPU=8), make_provider(api)
        consumer = holder(api, {old: {"VCPU": 8}})
        body = reshape(
            {old: new_inventories(2), new: new_inventories(0, VCPU=8)},
            {consumer: claim({new: {"VCPU": 8}}, generation=1)},
        )
        assert api.post("/reshaper", body).status == 204
        assert (provider_generation(api, old), provider_generation(api, new)) == (3, 3)

    def test_a_provider_that_is_only_claimed_from_moves_by_one(self, api: ApiClient) -> None:
        host, other = make_provider(api), make_provider(api, VCPU=8)
        body = reshape({host: new_inventories(0)}, {str(uuid4()): claim({other: {"VCPU": 1}})})
        assert api.post("/reshaper", body).status == 204
        assert provider_generation(api, other) == 2

    def test_a_consumer_moves_by_one(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 1}})
        body = reshape(
            {host: new_inventories(2, VCPU=8)}, {consumer: claim({host: {"VCPU": 1}}, generation=1)}
        )
        assert api.post("/reshaper", body).status == 204
        assert api.get(f"/allocations/{consumer}").json["consumer_generation"] == 2

    @on_sqlite
    @pytest.mark.parametrize("given", [0, 2, 77])
    def test_another_generation_than_the_present_is_a_conflict(
        self, api: ApiClient, given: int
    ) -> None:
        host = make_provider(api, VCPU=8)
        answer = api.post("/reshaper", reshape({host: new_inventories(given, VCPU=4)}))
        assert answer.status == 409
        assert answer.error["code"] == "placement.concurrent_update"
        expected = (
            f"resource provider generation conflict for provider {host}: actual: 1, given: {given}"
        )
        assert expected in answer.detail
        assert totals(api, host) == {"VCPU": 8}

    @on_sqlite
    @pytest.mark.parametrize(("sent", "shown"), [(None, "None"), (0, "0"), (2, "2")])
    def test_a_stale_consumer_generation_is_a_conflict(
        self, api: ApiClient, sent: int | None, shown: str
    ) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 1}})
        body = reshape(
            {host: new_inventories(2, VCPU=8)}, {consumer: claim({host: {"VCPU": 1}}, sent)}
        )
        answer = api.post("/reshaper", body)
        assert answer.status == 409
        assert answer.error["code"] == "placement.concurrent_update"
        assert f"consumer generation conflict - expected 1 but got {shown}" in answer.detail


class TestRefusals:
    # The faults of a request, in the order in which the server notices them.
    FAULTS = (
        (400, "placement.undefined_code", "('extra' was unexpected)"),
        (
            400,
            "placement.resource_provider.not_found",
            "Resource provider {ghost} in inventories not found: "
            "No resource provider with uuid {ghost} found",
        ),
        (
            409,
            "placement.concurrent_update",
            "resource provider generation conflict for provider {stale}: actual: 1, given: 7",
        ),
        (
            409,
            "placement.concurrent_update",
            "consumer generation conflict - expected null but got 5",
        ),
        (
            400,
            "placement.undefined_code",
            "Allocation for resource provider '{ghost}' that does not exist.",
        ),
        (
            400,
            "placement.undefined_code",
            "malformed reshaper data: No such resource class CUSTOM_GHOST.",
        ),
        (
            409,
            "placement.undefined_code",
            "Unable to allocate inventory: Unable to create allocation for 'VCPU' on resource "
            "provider '{host}'. The requested amount would exceed the capacity.",
        ),
        (
            409,
            "placement.inventory.inuse",
            "update conflict: Inventory for 'VCPU' on resource provider '{used}' in use.",
        ),
    )

    @on_sqlite
    @pytest.mark.parametrize("place", ["inventories", "allocations"])
    @pytest.mark.parametrize("first", range(len(FAULTS)))
    def test_the_first_fault_hides_all_later_ones(
        self, api: ApiClient, first: int, place: str
    ) -> None:
        """The unknown class stands in the inventories or in the allocations."""
        host, stale, used = (make_provider(api, VCPU=8) for _ in range(3))
        ghost = str(uuid4())
        holder(api, {used: {"VCPU": 1}})
        inventories = {used: new_inventories(2), host: new_inventories(1, VCPU=8)}
        claims: dict[str, Any] = {}
        if first <= 6:
            claims[str(uuid4())] = claim({host: {"VCPU": 9}})
        if first <= 5 and place == "allocations":
            claims[str(uuid4())] = claim({host: {"CUSTOM_GHOST": 1}})
        if first <= 5 and place == "inventories":
            inventories[host]["inventories"]["CUSTOM_GHOST"] = {"total": 1}
        if first <= 4:
            claims[str(uuid4())] = claim({ghost: {"VCPU": 1}})
        if first <= 3:
            claims[str(uuid4())] = claim({host: {"VCPU": 1}}, generation=5)
        # The server checks the providers one by one, in the order of the request.
        if first == 2:
            inventories[stale] = new_inventories(7)
            inventories[ghost] = new_inventories(0)
        if first <= 1:
            inventories[ghost] = new_inventories(0)
            inventories[stale] = new_inventories(7)
        body = reshape(inventories, claims)
        if first == 0:
            body["extra"] = 1
        answer = api.post("/reshaper", body)
        status, code, text = self.FAULTS[first]
        assert (answer.status, answer.error["code"]) == (status, code)
        assert text.format(host=host, stale=stale, used=used, ghost=ghost) in answer.detail

    def test_an_inventory_that_is_in_use_cannot_disappear(self, api: ApiClient) -> None:
        # Nova reads the code and shows the text.
        host = make_provider(api, VCPU=8, DISK_GB=8)
        holder(api, {host: {"VCPU": 1, "DISK_GB": 1}})
        answer = api.post("/reshaper", reshape({host: new_inventories(2, DISK_GB=8)}))
        assert answer.status == 409
        assert answer.error["code"] == "placement.inventory.inuse"
        expected = f"update conflict: Inventory for 'VCPU' on resource provider '{host}' in use."
        assert expected in answer.detail

    def test_claims_are_checked_against_the_new_inventories(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        body = reshape(
            {host: new_inventories(1, VCPU=4)}, {str(uuid4()): claim({host: {"VCPU": 5}})}
        )
        assert api.post("/reshaper", body).status == 409

    def test_claims_keep_to_the_units_of_the_new_inventories(self, api: ApiClient) -> None:
        host = make_provider(api, VCPU=8)
        consumer = holder(api, {host: {"VCPU": 5}})
        fields = {"total": 8, "max_unit": 4}
        body = reshape(
            {host: new_inventories(2, VCPU=fields)},
            {consumer: claim({host: {"VCPU": 5}}, generation=1)},
        )
        answer = api.post("/reshaper", body)
        assert answer.status == 409
        assert "The requested amount would violate inventory constraints." in answer.detail

    @pytest.mark.parametrize("fault", ["room", "in use", "class", "provider", "consumer"])
    def test_a_refused_reshape_changes_nothing(self, api: ApiClient, fault: str) -> None:
        host, other = make_provider(api, VCPU=8), make_provider(api, VCPU=8)
        consumer, bystander = (holder(api, {host: {"VCPU": 2}}) for _ in range(2))
        paths = [f"/resource_providers/{uuid}" for uuid in (host, other)]
        paths += [f"{path}/{part}" for path in paths for part in ("inventories", "allocations")]
        paths += [f"/allocations/{uuid}" for uuid in (consumer, bystander)]
        before = [api.get(path).json for path in paths]
        body = reshape(
            {other: new_inventories(1, VCPU=4, DISK_GB=4), host: new_inventories(3, VCPU=9)},
            {consumer: claim({other: {"VCPU": 2, "DISK_GB": 2}}, generation=1)},
        )
        if fault == "room":
            body["allocations"][consumer] = claim({other: {"VCPU": 5}}, generation=1)
        elif fault == "in use":
            body["inventories"][host] = new_inventories(3, DISK_GB=1)
        elif fault == "class":
            body["inventories"][host] = new_inventories(3, VCPU=9, CUSTOM_GHOST=1)
        elif fault == "provider":
            body["allocations"][str(uuid4())] = claim({str(uuid4()): {"VCPU": 1}})
        else:
            body["allocations"][consumer]["consumer_generation"] = 4
        assert api.post("/reshaper", body).status in (400, 409)
        assert [api.get(path).json for path in paths] == before

    def test_new_consumers_of_a_refused_reshape_stay_new(self, api: ApiClient) -> None:
        host, consumer = make_provider(api, VCPU=8), str(uuid4())
        body = reshape(
            {host: new_inventories(1, VCPU=8)},
            {
                consumer: claim({host: {"VCPU": 1}}),
                str(uuid4()): claim({str(uuid4()): {"VCPU": 1}}),
            },
        )
        assert api.post("/reshaper", body).status == 400
        assert api.put(f"/allocations/{consumer}", claim({host: {"VCPU": 1}})).status == 204

    def test_a_provider_spelt_in_capitals_is_found_or_refused(self, api: ApiClient) -> None:
        """Databases differ in whether the spelling names the same provider. No answer is 409."""
        host = make_provider(api, VCPU=8)
        body = reshape({host.upper(): new_inventories(1, VCPU=4)})
        assert api.post("/reshaper", body).status in (204, 400)


@on_sqlite
class TestForm:
    """The schema of the body, which is checked before the database is read."""

    @pytest.mark.parametrize("version", ["1.0", "1.29"])
    def test_the_route_is_unknown_below_1_30(self, api: ApiClient, version: str) -> None:
        assert api.at(version).post("/reshaper", {}).status == 404

    @pytest.mark.parametrize("member", ["inventories", "allocations"])
    def test_both_parts_are_required(self, api: ApiClient, member: str) -> None:
        body = reshape({make_provider(api): new_inventories(0)})
        del body[member]
        answer = api.post("/reshaper", body)
        assert answer.status == 400
        assert f"'{member}' is a required property" in answer.detail

    def test_at_least_one_provider_is_named(self, api: ApiClient) -> None:
        answer = api.post("/reshaper", reshape({}))
        assert answer.status == 400
        assert "should be non-empty" in answer.detail

    @pytest.mark.parametrize("key", ["nothing", "0" * 32, f"{'0' * 36}\n"])
    def test_a_provider_key_has_36_hexadecimal_digits_and_dashes(
        self, api: ApiClient, key: str
    ) -> None:
        assert api.post("/reshaper", reshape({key: new_inventories(0)})).status == 400

    @pytest.mark.parametrize("member", ["resource_provider_generation", "inventories"])
    def test_a_provider_must_have_generation_and_inventories(
        self, api: ApiClient, member: str
    ) -> None:
        part = new_inventories(0)
        del part[member]
        answer = api.post("/reshaper", reshape({make_provider(api): part}))
        assert answer.status == 400
        assert f"'{member}' is a required property" in answer.detail

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"total": 0},
            {"total": 2147483648},
            {"total": 1, "reserved": -1},
            {"total": 1, "step_size": 0},
            {"total": 1, "allocation_ratio": "1"},
            {"total": 1, "extra": 1},
        ],
    )
    @pytest.mark.parametrize("name", ["VCPU", "not a class"])
    def test_an_inventory_outside_the_bounds_is_refused(
        self, api: ApiClient, name: str, fields: dict[str, Any]
    ) -> None:
        body = reshape({make_provider(api): new_inventories(0, **{name: fields})})
        assert api.post("/reshaper", body).status == 400

    @pytest.mark.parametrize("version", ["1.30", "1.33", "1.34", "1.37", "1.38", "1.39"])
    def test_consumers_have_the_form_of_the_version(self, api: ApiClient, version: str) -> None:
        host = make_provider(api)
        part = claim({host: {"VCPU": 1}})
        if version in ("1.30", "1.33", "1.34", "1.37"):
            del part["consumer_type"]
        if version not in ("1.30", "1.33"):
            part["mappings"] = {"1": [host]}
        body = reshape({host: new_inventories(0, VCPU=1)}, {str(uuid4()): part})
        assert api.at(version).post("/reshaper", body).status == 204

    @pytest.mark.parametrize(
        ("version", "member"), [("1.33", "mappings"), ("1.37", "consumer_type")]
    )
    def test_a_member_that_the_version_does_not_know_is_refused(
        self, api: ApiClient, version: str, member: str
    ) -> None:
        host = make_provider(api)
        part = claim({host: {"VCPU": 1}}, mappings={"1": [host]})
        for other in {"mappings", "consumer_type"} - {member}:
            del part[other]
        body = reshape({host: new_inventories(0, VCPU=1)}, {str(uuid4()): part})
        answer = api.at(version).post("/reshaper", body)
        assert answer.status == 400
        assert f"('{member}' was unexpected)" in answer.detail

    def test_a_guest_may_not_reshape(self, api: ApiClient) -> None:
        answer = api.request("POST", "/reshaper", {}, {"x-auth-token": "guest"})
        assert answer.status == 403
