"""`POST /roost/audit`: what is wrong with the cloud, and the requests that mend it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, delete, update

from roost.service.ledger.audit import delete_orphans
from roost.store.connections.errors import WriteRefused
from roost.store.database import Database
from roost.store.tables import allocations, consumers
from support.api_client import ApiClient
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
CLEANING = "HW_PCI_ONE_TIME_USE"


def consumer_uuid(number: int) -> str:
    return str(UUID(int=number))


def hold(api: ApiClient, number: int, host: str, consumer_type: str = "INSTANCE") -> str:
    """Let a consumer hold one VCPU of a host."""
    uuid = consumer_uuid(number)
    body = {
        "allocations": {provider_uuid(host): {"resources": {"VCPU": 1}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": consumer_type,
    }
    answer = api.put(f"/allocations/{uuid}", body)
    assert answer.status == 204, answer.body
    return uuid


def audit(api: ApiClient, query: str = "", /, **body: Any) -> Any:
    answer = api.post(f"/roost/audit{query}", body)
    assert answer.status == 200, answer.body
    return answer.json


def found(api: ApiClient, **body: Any) -> list[tuple[str, str]]:
    """Each finding as its kind, and the name or number of what it is about."""
    return [
        (
            finding["kind"],
            finding["provider"]["name"]
            if finding["provider"]
            else str(UUID(finding["consumer"]).int),
        )
        for finding in audit(api, **body)["findings"]
    ]


def mend(api: ApiClient, finding: dict[str, Any]) -> None:
    """Send the request of a finding as it is."""
    request = finding["mend"]
    answer = api.request(request["method"], request["path"], request["body"])
    assert answer.status in (200, 204), answer.body


class TestOrphans:
    def test_consumers_that_are_not_known_are_orphans(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        known = [hold(api, 1, "H1"), hold(api, 2, "H1")]
        hold(api, 3, "H1")
        hold(api, 4, "H1", "MIGRATION")
        assert found(api) == []
        assert found(api, known_consumers=known) == [("orphan", "3"), ("orphan", "4")]
        assert found(api, known_consumers=known, types=["INSTANCE"]) == [("orphan", "3")]
        (finding,) = audit(api, known_consumers=known, types=["MIGRATION"])["findings"]
        assert finding["mend"] == {
            "method": "DELETE",
            "path": f"/allocations/{consumer_uuid(4)}",
            "body": None,
        }
        mend(api, finding)
        assert found(api, known_consumers=known) == [("orphan", "3")]

    @on_sqlite
    def test_a_known_consumer_may_be_spelt_in_any_way(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        uuid = hold(api, 0xABC, "H1")
        assert found(api, known_consumers=[uuid.upper().replace("-", "")]) == []

    def test_consumers_that_are_newer_than_the_list_are_no_orphans(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 1, "H1")
        now = datetime.now(UTC)
        before, after = now - timedelta(hours=1), now + timedelta(hours=1)
        assert found(api, known_consumers=[], known_at=before.isoformat()) == []
        assert found(api, known_consumers=[], known_at=after.isoformat()) == [("orphan", "1")]

    def test_the_second_of_the_list_counts_as_a_whole(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 1, "H1")
        created = api.get(f"/roost/consumers/{consumer_uuid(1)}").json["created_at"]
        second = datetime.fromisoformat(created)
        late = second + timedelta(seconds=1) - timedelta(microseconds=1)
        assert found(api, known_consumers=[], known_at=late.isoformat()) == []

    @on_sqlite
    def test_a_deletion_that_stops_says_how_far_it_came(
        self, api: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build_world(api, "H1(VCPU 8)")
        for number in (1, 2, 3):
            hold(api, number, "H1")
        monkeypatch.setattr("roost.api.extensions.ledger.audit._DELETED_AT_ONCE", 2)
        delete_some = delete_orphans

        def refuse_later(transaction: Any, orphans: Any) -> Any:
            if len(orphans) < 2:
                raise WriteRefused("the disk is full")
            return delete_some(transaction, orphans)

        monkeypatch.setattr("roost.api.extensions.ledger.audit.delete_orphans", refuse_later)
        answer = audit(api, known_consumers=[], delete=True, at_most_percent=100)
        assert [finding["deleted"] for finding in answer["findings"]] == [True, True, False]
        assert answer["problem"].startswith("2 of 3 orphans are deleted.")
        monkeypatch.undo()
        again = audit(api, known_consumers=[], delete=True, at_most_percent=100)
        assert (again["counts"], again["problem"]) == ({"orphan": 1}, None)

    def test_orphans_are_deleted_on_request(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8), H2(VCPU 8)")
        known = [hold(api, 1, "H1")]
        hold(api, 2, "H1")
        hold(api, 3, "H2")
        body: dict[str, Any] = {"known_consumers": known, "delete": True, "at_most_percent": 100}
        tried = audit(api, **body, dry_run=True)
        assert [finding["deleted"] for finding in tried["findings"]] == [True, True]
        assert len(found(api, known_consumers=known)) == 2
        assert audit(api, **body) == tried
        assert found(api, known_consumers=known) == []
        usages = api.get(f"/resource_providers/{provider_uuid('H1')}/usages").json["usages"]
        assert usages == {"VCPU": 1}
        # The forest knows, too.
        query = f"/allocation_candidates?resources=VCPU:8&in_tree={provider_uuid('H2')}"
        assert len(api.get(query).json["allocation_requests"]) == 1

    def test_too_many_orphans_are_not_deleted(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 30)")
        known = [hold(api, number, "H1") for number in range(1, 20)]
        hold(api, 20, "H1")
        assert audit(api, known_consumers=known, delete=True)["counts"] == {"orphan": 1}
        hold(api, 20, "H1")
        refused = api.post(
            "/roost/audit", {"known_consumers": known[1:], "delete": True, "at_most_percent": 5}
        )
        assert refused.status == 409
        error = refused.json["errors"][0]
        assert error["code"] == "roost.too_many_orphans"
        assert "2 of 20 consumers" in error["detail"]
        assert len(found(api, known_consumers=[])) == 20

    @on_sqlite
    def test_a_consumer_that_changed_meanwhile_is_not_deleted(
        self, api: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 1, "H1")
        hold(api, 2, "H1")

        def change(*counts: Any) -> None:
            body = api.get(f"/allocations/{consumer_uuid(2)}").json
            api.put(f"/allocations/{consumer_uuid(2)}", body)

        monkeypatch.setattr("roost.api.extensions.ledger.audit.check_orphan_share", change)
        answer = audit(api, known_consumers=[], delete=True)
        assert [finding["deleted"] for finding in answer["findings"]] == [True, False]
        assert api.get(f"/allocations/{consumer_uuid(2)}").json["allocations"]

    def test_a_consumer_that_was_made_anew_meanwhile_is_not_deleted(
        self, api: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has its first generation again; in SQLite, the newest one has the same id, too."""
        build_world(api, "H1(VCPU 8)")
        hold(api, 1, "H1")
        hold(api, 2, "H1")

        def make_anew(*counts: Any) -> None:
            assert api.delete(f"/allocations/{consumer_uuid(2)}").status == 204
            hold(api, 2, "H1")

        monkeypatch.setattr("roost.api.extensions.ledger.audit.check_orphan_share", make_anew)
        answer = audit(api, known_consumers=[], delete=True)
        assert [finding["deleted"] for finding in answer["findings"]] == [True, False]
        assert api.get(f"/allocations/{consumer_uuid(2)}").json["allocations"]

    @on_sqlite
    def test_many_known_consumers_are_one_request(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 7, "H1")
        known = [consumer_uuid(number) for number in range(100, 100_100)]
        assert found(api, known_consumers=known) == [("orphan", "7")]
        assert found(api, known_consumers=[*known, consumer_uuid(7)]) == []


class TestProviders:
    def test_an_inventory_over_its_capacity_is_found(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8), H2(VCPU 8)")
        for number in (1, 2, 3):
            hold(api, number, "H1")
        path = f"/resource_providers/{provider_uuid('H1')}/inventories/VCPU"
        generation = api.get(path).json["resource_provider_generation"]
        api.put(path, {"resource_provider_generation": generation, "total": 2})
        (finding,) = audit(api)["findings"]
        assert finding["kind"] == "over_capacity"
        assert finding["provider"] == {"uuid": provider_uuid("H1"), "name": "H1"}
        assert finding["text"] == "Consumers hold 3 VCPU of H1, whose capacity is 2."
        assert finding["mend"] is None

    def test_a_used_device_for_one_use_needs_cleaning(self, api: ApiClient) -> None:
        build_world(
            api,
            "H1(VCPU 8), D1<H1(GOLD 1), D2<H1(GOLD 1 reserved 1), D3<H1(GOLD 2 reserved 1)",
        )
        for name in ("D1", "D2", "D3"):
            path = f"/resource_providers/{provider_uuid(name)}"
            generation = api.get(path).json["generation"]
            traits = {"resource_provider_generation": generation, "traits": [CLEANING]}
            assert api.put(f"{path}/traits", traits).status == 200
        assert found(api) == [("needs_cleaning", "D2")]
        assert found(api, one_time_use_traits=["CUSTOM_T1"]) == []
        (finding,) = audit(api)["findings"]
        mend(api, finding)
        assert found(api) == []
        path = f"/resource_providers/{provider_uuid('D2')}/inventories/CUSTOM_GOLD"
        assert api.get(path).json["reserved"] == 0

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["n1_0000:81:00.0", "n1_pci_0000_81_00_0"], ["n1_pci_0000_81_00_0"]),
            (["n1_0000:81:00.0", "n1_0000:81:00.1"], []),
            (["n1_numa0", "n1_eth0"], []),
        ],
    )
    @on_sqlite
    def test_a_device_with_two_providers_is_found(
        self, api: ApiClient, names: list[str], expected: list[str]
    ) -> None:
        parent = api.post("/resource_providers", {"name": "n1"}).json["uuid"]
        other = api.post("/resource_providers", {"name": "n2_0000:81:00.0"}).json["uuid"]
        assert other != parent
        for name in names:
            api.post("/resource_providers", {"name": name, "parent_provider_uuid": parent})
        assert found(api) == [("same_device_twice", name) for name in expected]

    @on_sqlite
    def test_a_part_of_a_device_is_no_second_one(self, api: ApiClient) -> None:
        parent = api.post("/resource_providers", {"name": "n1"}).json["uuid"]
        device = {"name": "n1_0000:81:00.0", "parent_provider_uuid": parent}
        uuid = api.post("/resource_providers", device).json["uuid"]
        for name in ("n1_0000:81:00.0_a", "n1_0000:81:00.0_a_b"):
            part = {"name": name, "parent_provider_uuid": uuid}
            uuid = api.post("/resource_providers", part).json["uuid"]
        assert found(api) == []

    def test_a_sharing_provider_that_reaches_no_tree_is_found(self, api: ApiClient) -> None:
        build_world(
            api,
            "H1(VCPU 8, agg A), *S1(DISK 10, agg A), *S2(DISK 10, agg B), *S3(DISK 10)",
        )
        assert sorted(found(api)) == [
            ("unreachable_sharing", "S2"),
            ("unreachable_sharing", "S3"),
        ]


class TestConsumers:
    def test_a_consumer_that_holds_nothing_is_found(
        self, api: ApiClient, database: Database
    ) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 1, "H1")
        without_type = update(consumers).values(consumer_type_id=None)
        for statement in (delete(allocations), without_type):
            database.write_at_once(Connection.execute, statement)
        (finding,) = audit(api, known_consumers=[])["findings"]
        assert finding["kind"] == "empty_consumer"
        mend(api, finding)
        assert found(api) == []

    def test_a_consumer_is_not_empty_because_its_allocations_spell_it_otherwise(
        self, api: ApiClient, database: Database
    ) -> None:
        build_world(api, "H1(VCPU 8)")
        hold(api, 0xABC, "H1")
        spelt = update(allocations).values(consumer_id=consumer_uuid(0xABC).upper())
        database.write_at_once(lambda connection: connection.execute(spelt))
        assert found(api) == []
        audit(api, known_consumers=[], delete=True, at_most_percent=100)
        usages = api.get(f"/resource_providers/{provider_uuid('H1')}/usages").json["usages"]
        assert usages == {"VCPU": 0}


class TestPages:
    @on_sqlite
    def test_pages_have_each_finding_once(self, api: ApiClient) -> None:
        build_world(api, "H1(VCPU 8), *S1(DISK 10), *S2(DISK 10)")
        for number in range(1, 6):
            hold(api, number, "H1")
        whole = audit(api, known_consumers=[])
        assert whole["counts"] == {"orphan": 5, "unreachable_sharing": 2}
        assert whole["consumers"] == 5
        pages: list[Any] = []
        marker: str | None = ""
        while marker is not None:
            query = "?page_limit=2" + (f"&marker={marker}" if marker else "")
            page = audit(api, query, known_consumers=[])
            assert page["counts"] == whole["counts"]
            pages += page["findings"]
            marker = page["next"]
        assert pages == whole["findings"]


@on_sqlite
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"delete": True}, "known_consumers"),
        ({"known_consumers": [], "known_at": "yesterday"}, "known_at"),
        ({"known_consumers": "all"}, "known_consumers"),
        ({"at_most_percent": 101}, "101"),
        ({"known_consumers": [], "types": []}, "types"),
        ({"consumers": []}, "consumers"),
    ],
)
def test_a_bad_body_is_refused(api: ApiClient, body: dict[str, Any], named: str) -> None:
    answer = api.post("/roost/audit", body)
    assert answer.status == 400
    assert named in answer.json["errors"][0]["detail"]
