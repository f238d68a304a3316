"""`POST /allocations`: the allocations of several consumers are replaced as one change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from roost.store.database import Database
from support.api_client import ApiClient, limited_client

Amounts = Mapping[str, int]

# Marks tests of behaviour that does not depend on the kind of database.
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make_provider(api: ApiClient, **totals: int) -> str:
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    records = {name: {"total": total} for name, total in totals.items()}
    body = {"resource_provider_generation": 0, "inventories": records}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def record(
    allocations: Mapping[str, Amounts], version: str = "1.39", **members: Any
) -> dict[str, Any]:
    """One consumer's part of the body, in the form of the version."""
    minor = int(version.split(".")[1])
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": dict(held)} for uuid, held in allocations.items()},
        "project_id": "a project",
        "user_id": "a user",
    }
    if minor >= 28:
        body["consumer_generation"] = None
    if minor >= 38:
        body["consumer_type"] = "INSTANCE"
    return body | members


def holder(api: ApiClient, allocations: Mapping[str, Amounts]) -> str:
    """A new consumer that holds these allocations."""
    consumer = str(uuid4())
    assert api.put(f"/allocations/{consumer}", record(allocations)).status == 204
    return consumer


def held(api: ApiClient, consumer: str) -> dict[str, Amounts]:
    found = api.get(f"/allocations/{consumer}").json["allocations"]
    return {uuid: item["resources"] for uuid, item in found.items()}


def provider_generation(api: ApiClient, uuid: str) -> int:
    found: int = api.get(f"/resource_providers/{uuid}").json["generation"]
    return found


def consumer_generation(api: ApiClient, consumer: str) -> int | None:
    found: int | None = api.get(f"/allocations/{consumer}").json.get("consumer_generation")
    return found


@on_sqlite
class TestForm:
    """The schema of the body, which is checked before the database is read."""

    @pytest.mark.parametrize("version", ["1.0", "1.12"])
    def test_the_route_is_unknown_below_1_13(self, api: ApiClient, version: str) -> None:
        assert api.at(version).post("/allocations", {}).status == 404

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_the_route_allows_only_post(self, api: ApiClient, method: str) -> None:
        answer = api.request(method, "/allocations")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")

    @pytest.mark.parametrize("version", ["1.13", "1.28", "1.34", "1.38"])
    def test_at_least_one_consumer_is_named(self, api: ApiClient, version: str) -> None:
        answer = api.at(version).post("/allocations", {})
        assert answer.status == 400
        assert "should be non-empty" in answer.detail

    @pytest.mark.parametrize("key", ["nobody", "0" * 35, "0" * 32, "x" * 36, f"{'0' * 36}\n"])
    def test_a_consumer_key_has_36_hexadecimal_digits_and_dashes(
        self, api: ApiClient, key: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        assert api.post("/allocations", {key: record({provider: {"VCPU": 1}})}).status == 400

    @pytest.mark.parametrize(
        ("version", "member"),
        [
            ("1.13", "allocations"),
            ("1.13", "project_id"),
            ("1.13", "user_id"),
            ("1.28", "consumer_generation"),
            ("1.34", "consumer_generation"),
            ("1.38", "consumer_type"),
        ],
    )
    def test_a_member_that_the_version_requires_must_be_there(
        self, api: ApiClient, version: str, member: str
    ) -> None:
        part = record({make_provider(api, VCPU=8): {"VCPU": 1}}, version)
        del part[member]
        answer = api.at(version).post("/allocations", {str(uuid4()): part})
        assert answer.status == 400
        assert f"'{member}' is a required property" in answer.detail

    @pytest.mark.parametrize(
        ("version", "member", "value"),
        [
            ("1.27", "consumer_generation", None),
            ("1.33", "mappings", {"1": [str(uuid4())]}),
            ("1.37", "consumer_type", "INSTANCE"),
            ("1.39", "anything", 1),
        ],
    )
    def test_a_member_that_the_version_does_not_know_is_refused(
        self, api: ApiClient, version: str, member: str, value: Any
    ) -> None:
        part = record({make_provider(api, VCPU=8): {"VCPU": 1}}, version, **{member: value})
        answer = api.at(version).post("/allocations", {str(uuid4()): part})
        assert answer.status == 400
        assert f"('{member}' was unexpected)" in answer.detail

    def test_a_body_with_one_bad_part_is_refused_as_a_whole(self, api: ApiClient) -> None:
        good, bad = str(uuid4()), str(uuid4())
        provider = make_provider(api, VCPU=8)
        part = record({provider: {"VCPU": 1}})
        answer = api.post("/allocations", {good: part, bad: part | {"project_id": ""}})
        assert answer.status == 400
        assert held(api, good) == {}


class TestGrantedRequests:
    @pytest.mark.parametrize("version", ["1.13", "1.27", "1.28", "1.34", "1.38", "1.39"])
    def test_all_consumers_get_what_they_ask_for(self, api: ApiClient, version: str) -> None:
        left, right = make_provider(api, VCPU=8), make_provider(api, VCPU=8, DISK_GB=8)
        wanted: dict[str, dict[str, Amounts]] = {
            str(uuid4()): {left: {"VCPU": 2}, right: {"DISK_GB": 3}},
            str(uuid4()): {right: {"VCPU": 4, "DISK_GB": 5}},
        }
        body = {consumer: record(claim, version) for consumer, claim in wanted.items()}
        answer = api.at(version).post("/allocations", body)
        assert (answer.status, answer.body) == (204, b"")
        assert {consumer: held(api, consumer) for consumer in wanted} == wanted

    def test_each_consumer_has_an_owner_of_its_own(self, api: ApiClient) -> None:
        provider, first, second = make_provider(api, VCPU=8), str(uuid4()), str(uuid4())
        owners = {
            first: {"project_id": "p1", "user_id": "u1", "consumer_type": "T1"},
            second: {"project_id": "p2", "user_id": "u2", "consumer_type": "T2"},
        }
        body = {
            consumer: record({provider: {"VCPU": 1}}, **owner) for consumer, owner in owners.items()
        }
        assert api.post("/allocations", body).status == 204
        for consumer, owner in owners.items():
            shown = api.get(f"/allocations/{consumer}").json
            assert {name: shown[name] for name in owner} == owner

    @pytest.mark.parametrize("version", ["1.13", "1.27", "1.28", "1.39"])
    def test_an_empty_part_empties_its_consumer_at_every_version(
        self, api: ApiClient, version: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = holder(api, {provider: {"VCPU": 8}})
        part = record({}, version)
        if "consumer_generation" in part:
            part["consumer_generation"] = 1
        assert api.at(version).post("/allocations", {consumer: part}).status == 204
        assert held(api, consumer) == {}

    @pytest.mark.parametrize("version", ["1.13", "1.28", "1.39"])
    def test_an_empty_part_of_an_unknown_consumer_does_nothing(
        self, api: ApiClient, version: str
    ) -> None:
        provider, unknown = make_provider(api, VCPU=8), str(uuid4())
        part = record({provider: {"VCPU": 1}}, version)
        body = {unknown: record({}, version), str(uuid4()): part}
        assert api.at(version).post("/allocations", body).status == 204
        # A claim without a generation is granted only to a consumer that does not exist.
        good = record({provider: {"VCPU": 1}}, consumer_generation=None)
        assert api.put(f"/allocations/{unknown}", good).status == 204

    def test_new_old_and_leaving_consumers_may_be_mixed(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        leaving, staying = (holder(api, {provider: {"VCPU": 4}}) for _ in range(2))
        new = str(uuid4())
        body = {
            leaving: record({}, consumer_generation=1),
            staying: record({provider: {"VCPU": 3}}, consumer_generation=1),
            new: record({provider: {"VCPU": 5}}),
        }
        assert api.post("/allocations", body).status == 204
        assert [held(api, consumer) for consumer in (leaving, staying, new)] == [
            {},
            {provider: {"VCPU": 3}},
            {provider: {"VCPU": 5}},
        ]

    def test_a_consumer_key_may_be_spelt_in_capitals_and_is_the_same(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = holder(api, {provider: {"VCPU": 4}})
        part = record({provider: {"VCPU": 5}}, consumer_generation=1)
        assert api.post("/allocations", {consumer.upper(): part}).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 5}}

    @on_sqlite
    def test_the_answer_has_no_cache_headers(self, api: ApiClient) -> None:
        body = {str(uuid4()): record({make_provider(api, VCPU=8): {"VCPU": 1}})}
        headers = api.post("/allocations", body).headers
        assert not {"last-modified", "cache-control"} & headers.keys()

    def test_hundreds_of_consumers_are_one_change(self, api: ApiClient) -> None:
        providers = [make_provider(api, VCPU=100) for _ in range(3)]
        body = {str(uuid4()): record({providers[number % 3]: {"VCPU": 1}}) for number in range(300)}
        assert api.post("/allocations", body).status == 204
        usages = [api.get(f"/resource_providers/{uuid}/usages").json for uuid in providers]
        assert usages == [{"resource_provider_generation": 2, "usages": {"VCPU": 100}}] * 3


class TestGenerations:
    def test_a_provider_moves_by_one_however_many_consumers_claim_from_it(
        self, api: ApiClient
    ) -> None:
        provider = make_provider(api, VCPU=8)
        body = {str(uuid4()): record({provider: {"VCPU": 1}}) for _ in range(3)}
        assert api.post("/allocations", body).status == 204
        assert provider_generation(api, provider) == 2

    def test_a_provider_that_one_consumer_empties_and_another_takes_moves_by_one(
        self, api: ApiClient
    ) -> None:
        provider = make_provider(api, VCPU=8)
        old = holder(api, {provider: {"VCPU": 8}})
        body = {
            old: record({}, consumer_generation=1),
            str(uuid4()): record({provider: {"VCPU": 8}}),
        }
        assert api.post("/allocations", body).status == 204
        assert provider_generation(api, provider) == 3

    def test_a_provider_that_a_replacement_leaves_keeps_its_generation(
        self, api: ApiClient
    ) -> None:
        left, taken = make_provider(api, VCPU=8), make_provider(api, VCPU=8)
        consumer = holder(api, {left: {"VCPU": 1}})
        body = {consumer: record({taken: {"VCPU": 1}}, consumer_generation=1)}
        assert api.post("/allocations", body).status == 204
        assert (provider_generation(api, left), provider_generation(api, taken)) == (2, 2)

    def test_a_provider_that_is_emptied_moves(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = holder(api, {provider: {"VCPU": 1}})
        body = {consumer: record({}, consumer_generation=1)}
        assert api.post("/allocations", body).status == 204
        assert provider_generation(api, provider) == 3

    def test_each_consumer_moves_by_one(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        old, new = holder(api, {provider: {"VCPU": 1}}), str(uuid4())
        part = record({provider: {"VCPU": 1}})
        body = {old: part | {"consumer_generation": 1}, new: part}
        assert api.post("/allocations", body).status == 204
        assert (consumer_generation(api, old), consumer_generation(api, new)) == (2, 1)

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.13", "1.27"])
    def test_consumer_generations_are_not_compared_below_1_28(
        self, api: ApiClient, version: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = holder(api, {provider: {"VCPU": 1}})
        body = {consumer: record({provider: {"VCPU": 2}}, version)}
        assert api.at(version).post("/allocations", body).status == 204
        assert consumer_generation(api, consumer) == 2

    @on_sqlite
    @pytest.mark.parametrize(("sent", "shown"), [(None, "None"), (0, "0"), (7, "7")])
    def test_a_stale_consumer_generation_is_a_conflict(
        self, api: ApiClient, sent: int | None, shown: str
    ) -> None:
        # Nova recognizes this conflict by its text.
        provider = make_provider(api, VCPU=8)
        consumer = holder(api, {provider: {"VCPU": 1}})
        body = {
            str(uuid4()): record({provider: {"VCPU": 1}}),
            consumer: record({provider: {"VCPU": 2}}, consumer_generation=sent),
        }
        answer = api.post("/allocations", body)
        assert answer.status == 409
        assert answer.error["code"] == "placement.concurrent_update"
        assert f"consumer generation conflict - expected 1 but got {shown}" in answer.detail

    def test_the_first_of_several_stale_consumer_generations_is_named(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        body = {
            str(uuid4()): record({provider: {"VCPU": 1}}, consumer_generation=number)
            for number in (6, 4, 5)
        }
        answer = api.post("/allocations", body)
        assert answer.status == 409
        assert "consumer generation conflict - expected null but got 6" in answer.detail


class TestRefusedRequests:
    # The faults of a request, in the order in which the server notices them.
    FAULTS = (
        (400, "Additional properties are not allowed ('extra' was unexpected)"),
        (409, "consumer generation conflict - expected null but got 5"),
        (400, "Allocation for resource provider '{ghost}' that does not exist."),
        (400, "Unable to allocate inventory No such resource class CUSTOM_GHOST."),
        (409, "on resource provider '{bare}' invalid."),
        (409, "The requested amount would exceed the capacity."),
    )

    @on_sqlite
    @pytest.mark.parametrize("first", range(len(FAULTS)))
    def test_the_first_fault_hides_all_later_ones(self, api: ApiClient, first: int) -> None:
        host, bare, ghost = make_provider(api, VCPU=8), make_provider(api, PCPU=8), str(uuid4())
        # Each fault is in a consumer of its own. The fault that the server notices last stands
        # first in the request.
        faults: list[dict[str, Any]] = [
            record({host: {"VCPU": 9}}),
            record({bare: {"VCPU": 1}}),
            record({host: {"CUSTOM_GHOST": 1}}),
            record({ghost: {"VCPU": 1}}),
            record({host: {"VCPU": 1}}, consumer_generation=5),
            record({host: {"VCPU": 1}}, extra=1),
        ]
        body = {str(uuid4()): fault for fault in faults[: len(faults) - first]}
        answer = api.post("/allocations", body)
        status, text = self.FAULTS[first]
        assert answer.status == status
        assert text.format(ghost=ghost, bare=bare) in answer.detail

    @pytest.mark.parametrize("fault", ["generation", "provider", "class", "inventory", "room"])
    def test_a_refused_part_leaves_every_consumer_as_it_was(
        self, api: ApiClient, fault: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        known, new = holder(api, {provider: {"VCPU": 1}}), str(uuid4())
        before = api.get(f"/allocations/{known}").json
        bad = {
            "generation": record({provider: {"VCPU": 1}}, consumer_generation=5),
            "provider": record({str(uuid4()): {"VCPU": 1}}),
            "class": record({provider: {"CUSTOM_GHOST": 1}}),
            "inventory": record({provider: {"DISK_GB": 1}}),
            "room": record({provider: {"VCPU": 8}}),
        }
        good = record({provider: {"VCPU": 2}}, project_id="another", consumer_type="ANOTHER")
        body = {
            known: good | {"consumer_generation": 1},
            new: good,
            str(uuid4()): bad[fault],
        }
        assert api.post("/allocations", body).status in (400, 409)
        assert api.get(f"/allocations/{known}").json == before
        assert held(api, new) == {}
        assert provider_generation(api, provider) == 2

    @on_sqlite
    @pytest.mark.parametrize("fault", ["generation", "provider", "class", "inventory", "room"])
    def test_new_consumers_of_a_refused_request_stay_new(self, api: ApiClient, fault: str) -> None:
        provider, new, bad = make_provider(api, VCPU=8), str(uuid4()), str(uuid4())
        faulty = {
            "generation": record({provider: {"VCPU": 1}}, consumer_generation=5),
            "provider": record({str(uuid4()): {"VCPU": 1}}),
            "class": record({provider: {"CUSTOM_GHOST": 1}}),
            "inventory": record({provider: {"DISK_GB": 1}}),
            "room": record({provider: {"VCPU": 8}}),
        }
        good = record({provider: {"VCPU": 1}})
        assert api.post("/allocations", {new: good, bad: faulty[fault]}).status in (400, 409)
        assert api.post("/allocations", {new: good, bad: good}).status == 204

    def test_a_refused_claim_has_no_special_code(self, api: ApiClient) -> None:
        body = {str(uuid4()): record({make_provider(api, VCPU=8): {"VCPU": 9}})}
        answer = api.post("/allocations", body)
        assert answer.error["code"] == "placement.undefined_code"

    def test_a_consumer_outside_the_request_keeps_its_allocations(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        outside = holder(api, {provider: {"VCPU": 4}})
        body = {str(uuid4()): record({provider: {"VCPU": 4}})}
        assert api.post("/allocations", body).status == 204
        assert held(api, outside) == {provider: {"VCPU": 4}}

    @pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
    def test_tens_of_thousands_of_unknown_providers_are_a_bad_request(
        self, database: Database, tmp_path: Path
    ) -> None:
        api = limited_client(database, tmp_path, max_allocations=100_000)
        # PostgreSQL takes fewer parameters in one statement.
        ghosts = {f"{number:036x}": {"VCPU": 1} for number in range(70_000)}
        answer = api.put(f"/allocations/{uuid4()}", record(ghosts))
        assert answer.status == 400
        assert "that does not exist." in answer.detail
