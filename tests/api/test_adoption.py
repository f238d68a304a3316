"""`/roost/providers/{provider}/...`: a reinstalled host keeps its provider and its allocations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete

from roost.store.database import Database
from roost.store.tables import consumers
from support.api_client import Answer, ApiClient
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import build_world

NEW = "c0ffee00-0000-4000-8000-0000000000aa"
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def hold(api: ApiClient, number: int, held: dict[str, dict[str, int]]) -> str:
    """Let a consumer hold these amounts, by provider."""
    uuid = str(UUID(int=number))
    body = {
        "allocations": {
            provider_uuid(name): {"resources": amounts} for name, amounts in held.items()
        },
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    answer = api.put(f"/allocations/{uuid}", body)
    assert answer.status == 204, answer.body
    return uuid


def held(api: ApiClient, consumer: str) -> dict[str, dict[str, int]]:
    """What the consumer holds, by the name of the provider."""
    found = api.get(f"/roost/consumers/{consumer}").json["allocations"]
    return {entry["provider"]["name"]: entry["resources"] for entry in found}


def send(api: ApiClient, provider: str, what: str, **body: Any) -> Any:
    answer = api.post(f"/roost/providers/{provider}/{what}", body)
    assert answer.status == 200, answer.body
    return answer.json


def refused(answer: Answer, status: int, code: str) -> str:
    """The sentence of a refusal."""
    assert answer.status == status, answer.body
    error = answer.json["errors"][0]
    assert error["code"] == code
    sentence: str = error["detail"]
    return sentence


def everything(api: ApiClient) -> dict[str, Any]:
    """All that Placement tells of all providers, by name."""
    found: dict[str, Any] = {}
    for provider in api.get("/resource_providers").json["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}"
        parts = ("inventories", "usages", "traits", "aggregates", "allocations")
        found[provider["name"]] = (
            provider,
            [api.get(f"{path}/{part}").json for part in parts],
        )
    return found


class TestAdopt:
    def test_the_provider_has_the_new_uuid_and_keeps_the_rest(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8, agg A, T1), N1<H1(MEM 100)")
        consumer = hold(api, 1, {"H1": {"VCPU": 2}, "N1": {"MEMORY_MB": 10}})
        before = everything(api)
        answer = send(api, "H1", "adopt", uuid=NEW.upper())
        assert answer == {
            "provider": {"uuid": NEW, "name": "H1"},
            "was": {"uuid": provider_uuid("H1"), "name": "H1"},
        }
        assert held(api, consumer) == {"H1": {"VCPU": 2}, "N1": {"MEMORY_MB": 10}}
        host, parts = everything(api)["H1"]
        assert host["uuid"] == host["root_provider_uuid"] == NEW
        assert host["generation"] == before["H1"][0]["generation"] + 1
        generations = {"resource_provider_generation": host["generation"]}
        assert parts == [part | generations for part in before["H1"][1]]
        assert everything(api)["N1"][0]["parent_provider_uuid"] == NEW
        assert api.get(f"/resource_providers/{provider_uuid('H1')}").status == 404
        # The forest knows, too.
        query = f"/allocation_candidates?resources=VCPU:1&in_tree={NEW}"
        (request,) = api.get(query).json["allocation_requests"]
        assert list(request["allocations"]) == [NEW]

    @on_sqlite
    def test_a_provider_may_be_named_by_any_spelling_of_its_uuid(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        spelt = provider_uuid("H1").replace("-", "").upper()
        assert send(api, spelt, "adopt", uuid=NEW)["provider"]["uuid"] == NEW

    @on_sqlite
    def test_a_repeated_adoption_changes_nothing(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        send(api, "H1", "adopt", uuid=NEW)
        before = everything(api)
        assert send(api, "H1", "adopt", uuid=NEW)["provider"]["uuid"] == NEW
        assert everything(api) == before

    def test_a_uuid_that_is_taken_is_refused_with_its_provider(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8), H2(VCPU 8)")
        answer = api.post("/roost/providers/H1/adopt", {"uuid": provider_uuid("H2")})
        assert "'H2'" in refused(answer, 409, "roost.uuid_taken")

    def test_a_dry_run_writes_nothing(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        before = everything(api)
        answer = send(api, "H1", "adopt", uuid=NEW, dry_run=True)
        assert answer["provider"]["uuid"] == NEW
        assert everything(api) == before

    @on_sqlite
    def test_an_unknown_provider_is_told(self, api: ApiClient) -> None:
        answer = api.post("/roost/providers/nowhere/adopt", {"uuid": NEW})
        assert "'nowhere'" in refused(answer, 404, "roost.no_such_provider")

    @on_sqlite
    @pytest.mark.parametrize("body", [{}, {"uuid": "x"}, {"uuid": NEW, "name": "H2"}])
    def test_a_bad_body_is_refused(self, api: ApiClient, body: dict[str, str]) -> None:
        build_world(api, "H1(VCPU 8)")
        assert api.post("/roost/providers/H1/adopt", body).status == 400


class TestRename:
    @pytest.fixture
    def host(self, api: ApiClient) -> ApiClient:
        parent = api.post("/resource_providers", {"name": "a"}).json["uuid"]
        for name in ("a_x", "a_x_x", "ab", "b"):
            child = {"name": name, "parent_provider_uuid": parent}
            assert api.post("/resource_providers", child).status == 200
        return api

    def names(self, api: ApiClient) -> list[str]:
        listed = api.get("/resource_providers").json["resource_providers"]
        return sorted(provider["name"] for provider in listed)

    def test_only_the_provider_gets_another_name(self, host: ApiClient) -> None:
        (renamed,) = send(host, "a", "rename", name="c")["renamed"]
        assert (renamed["provider"]["name"], renamed["was"]["name"]) == ("c", "a")
        assert self.names(host) == ["a_x", "a_x_x", "ab", "b", "c"]

    def test_providers_below_follow_on_request(self, host: ApiClient) -> None:
        renamed = send(host, "a", "rename", name="a_x", descendants=True)["renamed"]
        assert {each["was"]["name"]: each["provider"]["name"] for each in renamed} == {
            "a": "a_x",
            "a_x": "a_x_x",
            "a_x_x": "a_x_x_x",
        }
        assert self.names(host) == ["a_x", "a_x_x", "a_x_x_x", "ab", "b"]
        send(host, "a_x", "rename", name="a", descendants=True)
        assert self.names(host) == ["a", "a_x", "a_x_x", "ab", "b"]

    def test_a_dry_run_writes_nothing(self, host: ApiClient) -> None:
        before = everything(host)
        tried = send(host, "a", "rename", name="z", descendants=True, dry_run=True)
        assert len(tried["renamed"]) == 3
        assert everything(host) == before

    def test_a_name_that_is_taken_is_refused(self, host: ApiClient) -> None:
        answer = host.post("/roost/providers/a/rename", {"name": "b", "descendants": True})
        assert "'b'" in refused(answer, 409, "placement.duplicate_name")
        assert self.names(host) == ["a", "a_x", "a_x_x", "ab", "b"]


class TestMerge:
    def test_the_target_takes_over_all_that_the_source_has(self, api: ApiClient) -> None:
        build_world(
            api,
            "OLD(VCPU 8, DISK 50, agg A, agg B, T1, T2), N1<OLD(MEM 100), D1<N1(GOLD 1), "
            "NEW(VCPU 8, agg B, T2), REST(VCPU 8)",
        )
        first = hold(api, 1, {"OLD": {"VCPU": 2, "DISK_GB": 5}, "REST": {"VCPU": 1}})
        second = hold(api, 2, {"OLD": {"VCPU": 1}, "NEW": {"VCPU": 2}})
        third = hold(api, 3, {"N1": {"MEMORY_MB": 7}})
        before = everything(api)
        tried = send(api, "OLD", "merge", into="NEW", dry_run=True)
        assert everything(api) == before
        answer = send(api, "OLD", "merge", into="NEW")
        assert answer == tried
        assert answer == {
            "provider": {"uuid": provider_uuid("NEW"), "name": "NEW"},
            "merged": {"uuid": provider_uuid("OLD"), "name": "OLD"},
            "consumers": 2,
            "resource_classes": ["DISK_GB"],
            "traits": ["CUSTOM_T1"],
            "aggregates": [aggregate_uuid("A")],
            "children": [{"uuid": provider_uuid("N1"), "name": "N1"}],
        }
        assert held(api, first) == {"NEW": {"VCPU": 2, "DISK_GB": 5}, "REST": {"VCPU": 1}}
        assert held(api, second) == {"NEW": {"VCPU": 3}}
        assert held(api, third) == {"N1": {"MEMORY_MB": 7}}
        after = everything(api)
        assert set(after) == {"NEW", "N1", "D1", "REST"}
        _, (inventories, usages, traits, aggregates, _) = after["NEW"]
        assert set(inventories["inventories"]) == {"VCPU", "DISK_GB"}
        assert usages["usages"] == {"VCPU": 5, "DISK_GB": 5}
        assert traits["traits"] == ["CUSTOM_T1", "CUSTOM_T2"]
        assert aggregates["aggregates"] == sorted(map(aggregate_uuid, "AB"))
        for name in ("N1", "D1"):
            assert after[name][0]["root_provider_uuid"] == provider_uuid("NEW")
        # Clients that read a consumer before have to read it again.
        assert api.get(f"/allocations/{first}").json["consumer_generation"] == 2
        # The forest knows, too.
        query = f"resources=VCPU:3&resources_M=MEMORY_MB:93&in_tree={provider_uuid('NEW')}"
        answer = api.get(f"/allocation_candidates?{query}&group_policy=none").json
        assert len(answer["allocation_requests"]) == 1
        assert not api.get(
            f"/allocation_candidates?resources=VCPU:4&in_tree={provider_uuid('NEW')}"
        ).json["allocation_requests"]

    def test_a_provider_without_consumers_is_merged(self, api: ApiClient) -> None:
        build_world(api, "OLD(VCPU 8), NEW(VCPU 8)")
        assert send(api, "OLD", "merge", into="NEW")["consumers"] == 0
        assert set(everything(api)) == {"NEW"}

    def test_too_little_capacity_is_refused_unless_forced(self, api: ApiClient) -> None:
        build_world(api, "OLD(VCPU 8), NEW(VCPU 8)")
        consumer = hold(api, 1, {"OLD": {"VCPU": 5}})
        hold(api, 2, {"NEW": {"VCPU": 4}})
        before = everything(api)
        answer = api.post("/roost/providers/OLD/merge", {"into": "NEW"})
        assert "5 VCPU" in refused(answer, 409, "roost.no_room")
        assert everything(api) == before
        send(api, "OLD", "merge", into="NEW", force=True)
        assert held(api, consumer) == {"NEW": {"VCPU": 5}}

    def test_allocations_without_a_consumer_are_not_lost(
        self, api: ApiClient, database: Database
    ) -> None:
        build_world(api, "OLD(VCPU 8), NEW(VCPU 8)")
        hold(api, 1, {"OLD": {"VCPU": 5}})
        database.write_at_once(lambda connection: connection.execute(delete(consumers)))
        answer = api.post("/roost/providers/OLD/merge", {"into": "NEW"})
        assert "'OLD'" in refused(answer, 409, "placement.resource_provider.inuse")
        assert set(everything(api)) == {"OLD", "NEW"}

    @on_sqlite
    @pytest.mark.parametrize("into", ["OLD", "N1"])
    def test_a_provider_cannot_be_merged_into_its_own_subtree(
        self, api: ApiClient, into: str
    ) -> None:
        build_world(api, "OLD(VCPU 8), N1<OLD(MEM 100)")
        answer = api.post("/roost/providers/OLD/merge", {"into": into})
        assert answer.status == 400
        assert f"'{into}'" in answer.json["errors"][0]["detail"]

    def test_a_child_is_merged_into_its_parent(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8), N1<H1(MEM 100), D1<N1(GOLD 1)")
        consumer = hold(api, 1, {"N1": {"MEMORY_MB": 7}})
        send(api, "N1", "merge", into="H1")
        assert held(api, consumer) == {"H1": {"MEMORY_MB": 7}}
        assert everything(api)["D1"][0]["parent_provider_uuid"] == provider_uuid("H1")
