"""`/roost/consumers`: what each consumer holds, and since when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update

from roost.store.database import Database
from roost.store.tables import consumers, utc_now
from support.api_client import ApiClient
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world


def hold(api: ApiClient, number: int, held: dict[str, dict[str, int]], **owner: Any) -> str:
    """Let a consumer hold these amounts, by provider."""
    uuid = consumer_uuid(number)
    allocations = {provider_uuid(name): {"resources": amounts} for name, amounts in held.items()}
    body = {
        "allocations": allocations,
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        **owner,
    }
    answer = api.put(f"/allocations/{uuid}", body)
    assert answer.status == 204, answer.body
    return uuid


def consumer_uuid(number: int) -> str:
    return str(UUID(int=number))


def listed(api: ApiClient, query: str = "") -> list[int]:
    """The numbers of the consumers of all pages."""
    numbers: list[int] = []
    marker: str | None = ""
    while marker is not None:
        answer = api.get(f"/roost/consumers?{query}" + (f"&marker={marker}" if marker else ""))
        assert answer.status == 200, answer.body
        numbers += [UUID(entry["consumer"]).int for entry in answer.json["consumers"]]
        marker = answer.json["next"]
    return numbers


@pytest.fixture
def cloud(api: ApiClient) -> ApiClient:
    """Three hosts with four consumers."""
    build_world(
        api,
        "H1(VCPU 8), N1<H1(MEM 100), D1<N1(VGPU 4), H2(VCPU 8, MEM 100), H3(VCPU 4)",
    )
    hold(api, 4, {"H1": {"VCPU": 2}, "N1": {"MEMORY_MB": 5}})
    hold(api, 3, {"H2": {"VCPU": 1, "MEMORY_MB": 90}}, project_id="shop")
    hold(api, 2, {"H1": {"VCPU": 1}, "H2": {"VCPU": 4}}, user_id="bob")
    hold(api, 1, {"D1": {"VGPU": 1}}, consumer_type="MIGRATION")
    return api


class TestList:
    def test_the_oldest_comes_first(self, cloud: ApiClient) -> None:
        assert listed(cloud) == listed(cloud, "order=age") == [4, 3, 2, 1]

    def test_the_largest_comes_first(self, cloud: ApiClient) -> None:
        # 1 of 20 VCPU with 90 of 200 MEMORY_MB; 1 of 4 VGPU; 5 of 20 VCPU; 2 of 20 and 5 of 200.
        # Equals are in the order of their uuids.
        assert listed(cloud, "order=size") == [3, 1, 2, 4]

    @pytest.mark.parametrize("order", ["age", "size"])
    def test_pages_have_each_consumer_once(self, cloud: ApiClient, order: str) -> None:
        whole = listed(cloud, f"order={order}")
        for length in (1, 2, 3, 4):
            assert listed(cloud, f"order={order}&page_limit={length}") == whole

    def test_conditions_apply_before_the_page_is_cut(self, cloud: ApiClient) -> None:
        answer = cloud.get("/roost/consumers?type=MIGRATION&page_limit=1").json
        assert [entry["consumer"] for entry in answer["consumers"]] == [consumer_uuid(1)]
        assert answer["next"] is None

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            ("type=INSTANCE", [4, 3, 2]),
            ("type=unknown", []),
            ("project=lab", [4, 2, 1]),
            ("project=lab&user=bob", [2]),
            ("project=nobody", []),
            ("provider=H1", [4, 2, 1]),
            ("provider=N1", [4, 1]),
            (f"provider={provider_uuid('H2')}", [3, 2]),
            ("provider=H3", []),
            ("provider=H1&order=size", [1, 2, 4]),
            ("older_than=0s", [4, 3, 2, 1]),
            ("older_than=1h", []),
        ],
    )
    def test_conditions_select(self, cloud: ApiClient, query: str, numbers: list[int]) -> None:
        assert listed(cloud, query) == numbers

    def test_age_counts_from_the_creation(self, cloud: ApiClient, database: Database) -> None:
        old = update(consumers).where(consumers.c.uuid == consumer_uuid(3))
        created = utc_now() - timedelta(days=2)
        database.write_at_once(
            lambda connection: connection.execute(old.values(created_at=created))
        )
        assert listed(cloud, "older_than=1d") == [3]
        assert listed(cloud, "older_than=36h") == [3]
        assert listed(cloud, "older_than=172900") == []

    def test_consumers_without_type_are_unknown(self, cloud: ApiClient) -> None:
        answer = cloud.at("1.27").put(
            f"/allocations/{consumer_uuid(9)}",
            {
                "allocations": {provider_uuid("H3"): {"resources": {"VCPU": 1}}},
                "project_id": "lab",
                "user_id": "ann",
            },
        )
        assert answer.status == 204
        assert listed(cloud, "type=unknown") == [9]

    def test_an_entry_says_what_a_consumer_is_and_holds(self, cloud: ApiClient) -> None:
        entry = cloud.get("/roost/consumers?user=bob").json["consumers"][0]
        assert entry.pop("created_at").endswith("Z")
        assert entry.pop("updated_at")
        held = [(one["provider"]["name"], one["resources"]) for one in entry.pop("allocations")]
        assert len(held) == 2
        assert sum(resources["VCPU"] for _, resources in held) == 5
        assert entry == {
            "consumer": consumer_uuid(2),
            "consumer_type": "INSTANCE",
            "project_id": "lab",
            "user_id": "bob",
            "generation": 1,
            "resources": {"VCPU": 5},
            "providers": 2,
            "size": 0.25,
        }


class TestOne:
    def test_a_consumer_has_its_providers_and_their_roots(self, cloud: ApiClient) -> None:
        found = cloud.get(f"/roost/consumers/{consumer_uuid(4)}").json
        host = {"uuid": provider_uuid("H1"), "name": "H1"}
        assert found["allocations"] == [
            {"provider": host, "root": host, "resources": {"VCPU": 2}},
            {
                "provider": {"uuid": provider_uuid("N1"), "name": "N1"},
                "root": host,
                "resources": {"MEMORY_MB": 5},
            },
        ]
        assert found["resources"] == {"VCPU": 2, "MEMORY_MB": 5}

    def test_a_uuid_may_be_spelt_in_any_way(self, cloud: ApiClient) -> None:
        uuid = consumer_uuid(4).replace("-", "").upper()
        assert cloud.get(f"/roost/consumers/{uuid}").json["consumer"] == consumer_uuid(4)

    @pytest.mark.parametrize("uuid", [consumer_uuid(77), "no-uuid"])
    def test_an_unknown_consumer_is_told_as_such(self, cloud: ApiClient, uuid: str) -> None:
        answer = cloud.get(f"/roost/consumers/{uuid}")
        assert answer.status == 404
        assert answer.json["errors"][0]["code"] == "roost.no_such_consumer"
        assert uuid in answer.json["errors"][0]["detail"]


class TestBadRequests:
    @pytest.mark.parametrize(
        ("query", "named"),
        [
            ("order=name", "order"),
            ("older_than=soon", "older_than"),
            ("older_than=-1", "older_than"),
            ("older_than=999999999d", "older_than"),
            ("page_limit=0", "page_limit"),
            ("marker=YQ", "marker"),
            ("order=size&marker=YQ", "marker"),
            ("consumer_type=INSTANCE", "consumer_type"),
            ("type=A&type=B", "type"),
        ],
    )
    def test_a_bad_parameter_is_named(self, api: ApiClient, query: str, named: str) -> None:
        answer = api.get(f"/roost/consumers?{query}")
        assert answer.status == 400
        assert named in answer.json["errors"][0]["detail"]

    def test_an_unknown_provider_is_named(self, api: ApiClient) -> None:
        answer = api.get("/roost/consumers?provider=nowhere")
        assert answer.status == 404
        assert answer.json["errors"][0]["code"] == "roost.no_such_provider"
