"""The usages of a provider, its consumers, and the usages of projects by consumer type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store import tables
from roost.store.database import Database
from support.api_client import ApiClient
from support.store.setup_cache import SetupCache

LARGEST = 2_147_483_647

Amounts = Mapping[str, int]

# Marks tests of behaviour that does not depend on the kind of database.
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make_provider(api: ApiClient, **totals: int) -> str:
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    records = {name: {"total": total, "allocation_ratio": 4.0} for name, total in totals.items()}
    body = {"resource_provider_generation": 0, "inventories": records}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def holder(
    api: ApiClient,
    allocations: Mapping[str, Amounts],
    project: str = "a project",
    user: str = "a user",
    consumer_type: str | None = "INSTANCE",
) -> str:
    """A new consumer that holds these allocations. Version 1.37 makes a consumer without type."""
    consumer = str(uuid4())
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": project,
        "user_id": user,
        "consumer_generation": None,
    }
    if consumer_type is not None:
        body["consumer_type"] = consumer_type
    version = "1.37" if consumer_type is None else "1.38"
    assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
    return consumer


def new_name() -> str:
    """The name of a new project."""
    return f"project {uuid4()}"


def about_now(header: str) -> bool:
    return abs(datetime.now(UTC) - parsedate_to_datetime(header)) < timedelta(minutes=5)


class TestProviderUsages:
    def test_every_inventory_is_listed_whether_used_or_not(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8, DISK_GB=8)
        holder(api, {provider: {"VCPU": 3}})
        assert api.get(f"/resource_providers/{provider}/usages").json == {
            "resource_provider_generation": 2,
            "usages": {"VCPU": 3, "DISK_GB": 0},
        }

    def test_a_provider_without_inventory_has_no_usages(self, api: ApiClient) -> None:
        answer = api.get(f"/resource_providers/{make_provider(api)}/usages")
        assert answer.json == {"resource_provider_generation": 1, "usages": {}}

    def test_the_amounts_of_all_consumers_are_added_up(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        for amount in (1, 2, 4):
            holder(api, {provider: {"VCPU": amount}})
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert usages == {"VCPU": 7}

    def test_the_sum_may_be_larger_than_any_single_amount(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=LARGEST)
        for _ in range(3):
            holder(api, {provider: {"VCPU": LARGEST}})
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert usages == {"VCPU": 3 * LARGEST}

    def test_other_providers_do_not_count(self, api: ApiClient) -> None:
        busy, idle = make_provider(api, VCPU=8), make_provider(api, VCPU=8)
        holder(api, {busy: {"VCPU": 3}})
        usages = api.get(f"/resource_providers/{idle}/usages").json["usages"]
        assert usages == {"VCPU": 0}

    def test_an_unknown_provider_is_not_found(self, api: ApiClient) -> None:
        # neutron-lib matches on this text.
        uuid = str(uuid4())
        answer = api.get(f"/resource_providers/{uuid}/usages")
        assert answer.status == 404
        assert f"No resource provider with uuid {uuid} found" in answer.detail

    @on_sqlite
    def test_last_modified_is_now(self, api: ApiClient) -> None:
        headers = api.get(f"/resource_providers/{make_provider(api)}/usages").headers
        assert about_now(headers["last-modified"])
        assert headers["cache-control"] == "no-cache"

    @on_sqlite
    def test_last_modified_is_absent_below_1_15(self, api: ApiClient) -> None:
        path = f"/resource_providers/{make_provider(api)}/usages"
        assert "last-modified" not in api.at("1.14").get(path).headers


class TestProviderAllocations:
    @pytest.mark.parametrize(("version", "with_generation"), [("1.27", False), ("1.28", True)])
    def test_consumers_are_listed_with_their_amounts_of_the_provider(
        self, api: ApiClient, version: str, with_generation: bool
    ) -> None:
        provider, other = make_provider(api, VCPU=8, DISK_GB=8), make_provider(api, VCPU=8)
        first = holder(api, {provider: {"VCPU": 1, "DISK_GB": 2}, other: {"VCPU": 5}})
        second = holder(api, {provider: {"VCPU": 3}})
        holder(api, {other: {"VCPU": 3}})
        extra = {"consumer_generation": 1} if with_generation else {}
        answer = api.at(version).get(f"/resource_providers/{provider}/allocations")
        assert answer.json == {
            "allocations": {
                first: {"resources": {"VCPU": 1, "DISK_GB": 2}} | extra,
                second: {"resources": {"VCPU": 3}} | extra,
            },
            "resource_provider_generation": 3,
        }

    def test_a_provider_without_consumers_has_no_allocations(self, api: ApiClient) -> None:
        answer = api.get(f"/resource_providers/{make_provider(api, VCPU=8)}/allocations")
        assert answer.json == {"allocations": {}, "resource_provider_generation": 1}

    def test_an_unknown_provider_is_not_found(self, api: ApiClient) -> None:
        uuid = str(uuid4())
        answer = api.get(f"/resource_providers/{uuid}/allocations")
        assert answer.status == 404
        expected = (
            f"Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
        )
        assert expected in answer.detail

    def test_last_modified_is_the_newest_allocation(
        self, api: ApiClient, database: Database
    ) -> None:
        provider = make_provider(api, VCPU=8)
        ages = {holder(api, {provider: {"VCPU": 1}}): year for year in (2019, 2021, 2020)}

        def age(connection: Connection) -> None:
            for consumer, year in ages.items():
                connection.execute(
                    sa.update(tables.allocations)
                    .where(tables.allocations.c.consumer_id == consumer)
                    .values(created_at=datetime(year, 1, 1))
                )

        database.write_at_once(age)
        answer = api.get(f"/resource_providers/{provider}/allocations")
        assert answer.headers["last-modified"] == "Fri, 01 Jan 2021 00:00:00 GMT"

    @on_sqlite
    def test_last_modified_is_now_without_allocations(self, api: ApiClient) -> None:
        headers = api.get(f"/resource_providers/{make_provider(api)}/allocations").headers
        assert about_now(headers["last-modified"])

    @on_sqlite
    def test_last_modified_is_absent_below_1_15(self, api: ApiClient) -> None:
        path = f"/resource_providers/{make_provider(api)}/allocations"
        assert "last-modified" not in api.at("1.14").get(path).headers


class TestProjectUsagesBelow138:
    @pytest.mark.parametrize("version", ["1.9", "1.37"])
    def test_classes_are_added_up_over_consumers_and_providers(
        self, api: ApiClient, version: str
    ) -> None:
        left, right = make_provider(api, VCPU=8, DISK_GB=8), make_provider(api, VCPU=8)
        project = new_name()
        holder(api, {left: {"VCPU": 1, "DISK_GB": 5}, right: {"VCPU": 2}}, project)
        holder(api, {right: {"VCPU": 4}}, project, consumer_type=None)
        answer = api.at(version).get(f"/usages?project_id={project.replace(' ', '%20')}")
        assert answer.json == {"usages": {"VCPU": 7, "DISK_GB": 5}}

    def test_a_class_without_use_is_not_listed(self, api: ApiClient) -> None:
        project = str(uuid4())
        holder(api, {make_provider(api, VCPU=8, DISK_GB=8): {"VCPU": 1}}, project)
        usages = api.at("1.37").get(f"/usages?project_id={project}").json["usages"]
        assert usages == {"VCPU": 1}

    def test_other_projects_do_not_count(self, api: ApiClient) -> None:
        provider, project = make_provider(api, VCPU=8), str(uuid4())
        holder(api, {provider: {"VCPU": 1}}, project)
        holder(api, {provider: {"VCPU": 2}}, str(uuid4()))
        usages = api.at("1.37").get(f"/usages?project_id={project}").json["usages"]
        assert usages == {"VCPU": 1}

    def test_a_user_id_narrows_the_usages_to_one_user(self, api: ApiClient) -> None:
        provider, project = make_provider(api, VCPU=8), str(uuid4())
        holder(api, {provider: {"VCPU": 1}}, project, "one")
        holder(api, {provider: {"VCPU": 2}}, project, "other")
        holder(api, {provider: {"VCPU": 4}}, str(uuid4()), "one")
        usages = api.at("1.37").get(f"/usages?project_id={project}&user_id=one").json["usages"]
        assert usages == {"VCPU": 1}

    @pytest.mark.parametrize("query", ["", "&user_id=nobody"])
    def test_unknown_projects_and_users_have_no_usages(self, api: ApiClient, query: str) -> None:
        answer = api.at("1.37").get(f"/usages?project_id={uuid4()}{query}")
        assert (answer.status, answer.json) == (200, {"usages": {}})

    def test_the_sum_may_be_larger_than_any_single_amount(self, api: ApiClient) -> None:
        provider, project = make_provider(api, VCPU=LARGEST), str(uuid4())
        for _ in range(3):
            holder(api, {provider: {"VCPU": LARGEST}}, project)
        usages = api.at("1.37").get(f"/usages?project_id={project}").json["usages"]
        assert usages == {"VCPU": 3 * LARGEST}

    def test_deleted_allocations_do_not_count(self, api: ApiClient) -> None:
        provider, project = make_provider(api, VCPU=8), str(uuid4())
        consumer = holder(api, {provider: {"VCPU": 1}}, project)
        assert api.delete(f"/allocations/{consumer}").status == 204
        assert api.at("1.37").get(f"/usages?project_id={project}").json == {"usages": {}}


class TestProjectUsagesByType:
    @pytest.fixture
    def project(self, api: ApiClient, setup_cache: SetupCache) -> str:
        return setup_cache.once(self.make_project, api)

    @staticmethod
    def make_project(api: ApiClient) -> str:
        """A project with two instances, one migration and one consumer without type."""
        host, disks = make_provider(api, VCPU=100, MEMORY_MB=100), make_provider(api, DISK_GB=100)
        project = str(uuid4())
        holder(api, {host: {"VCPU": 1, "MEMORY_MB": 10}, disks: {"DISK_GB": 5}}, project, "one")
        holder(api, {host: {"VCPU": 2}}, project, "other")
        holder(api, {host: {"VCPU": 4}}, project, "one", "MIGRATION")
        holder(api, {host: {"VCPU": 8}}, project, "one", None)
        holder(api, {host: {"VCPU": 16}}, str(uuid4()), "one")
        return project

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (
                "",
                {
                    "INSTANCE": {"consumer_count": 2, "VCPU": 3, "MEMORY_MB": 10, "DISK_GB": 5},
                    "MIGRATION": {"consumer_count": 1, "VCPU": 4},
                    "unknown": {"consumer_count": 1, "VCPU": 8},
                },
            ),
            ("&consumer_type=MIGRATION", {"MIGRATION": {"consumer_count": 1, "VCPU": 4}}),
            ("&consumer_type=unknown", {"unknown": {"consumer_count": 1, "VCPU": 8}}),
            (
                "&consumer_type=all",
                {"all": {"consumer_count": 4, "VCPU": 15, "MEMORY_MB": 10, "DISK_GB": 5}},
            ),
            (
                "&user_id=one",
                {
                    "INSTANCE": {"consumer_count": 1, "VCPU": 1, "MEMORY_MB": 10, "DISK_GB": 5},
                    "MIGRATION": {"consumer_count": 1, "VCPU": 4},
                    "unknown": {"consumer_count": 1, "VCPU": 8},
                },
            ),
            (
                "&user_id=one&consumer_type=all",
                {"all": {"consumer_count": 3, "VCPU": 13, "MEMORY_MB": 10, "DISK_GB": 5}},
            ),
            ("&user_id=other&consumer_type=unknown", {}),
            ("&user_id=nobody", {}),
            ("&user_id=nobody&consumer_type=all", {}),
            ("&consumer_type=NOTHING_OF_THE_KIND", {}),
            ("&consumer_type=ALL", {}),
        ],
    )
    def test_each_type_is_a_group_with_its_consumers_counted_once(
        self, api: ApiClient, project: str, query: str, expected: dict[str, Any]
    ) -> None:
        answer = api.get(f"/usages?project_id={project}{query}")
        assert (answer.status, answer.json) == (200, {"usages": expected})

    @pytest.mark.parametrize("query", ["", "&consumer_type=all", "&consumer_type=unknown"])
    def test_an_unknown_project_has_no_groups(self, api: ApiClient, query: str) -> None:
        answer = api.get(f"/usages?project_id={uuid4()}{query}")
        assert (answer.status, answer.json) == (200, {"usages": {}})

    def test_sums_may_be_larger_than_any_single_amount(self, api: ApiClient) -> None:
        provider, project = make_provider(api, VCPU=LARGEST), str(uuid4())
        for _ in range(3):
            holder(api, {provider: {"VCPU": LARGEST}}, project)
        usages = api.get(f"/usages?project_id={project}").json["usages"]
        assert usages == {"INSTANCE": {"consumer_count": 3, "VCPU": 3 * LARGEST}}


@on_sqlite
class TestQuery:
    @pytest.mark.parametrize("version", ["1.0", "1.8"])
    def test_the_route_is_unknown_below_1_9(self, api: ApiClient, version: str) -> None:
        assert api.at(version).get("/usages?project_id=x").status == 404

    @pytest.mark.parametrize("version", ["1.9", "1.37", "1.39"])
    @pytest.mark.parametrize("query", ["", "?user_id=x"])
    def test_a_project_is_required(self, api: ApiClient, version: str, query: str) -> None:
        answer = api.at(version).get(f"/usages{query}")
        assert answer.status == 400
        assert "'project_id' is a required property" in answer.detail

    @pytest.mark.parametrize(
        "query",
        [
            "project_id=",
            "project_id",
            f"project_id={'x' * 256}",
            "project_id=x&user_id=",
            f"project_id=x&user_id={'x' * 256}",
            "project_id=x&foo=1",
            "project_id=x&project_id=",
            "project_id=%ff",
            "project_id=%00",
            "project_id=x&consumer_type=",
            "project_id=x&consumer_type=instance",
            "project_id=x&consumer_type=Unknown",
            "project_id=x&consumer_type=UNKNOWN%0A",
            "project_id=x&consumer_type=A-B",
            f"project_id=x&consumer_type={'X' * 256}",
        ],
    )
    def test_a_bad_query_is_refused(self, api: ApiClient, query: str) -> None:
        answer = api.get(f"/usages?{query}")
        assert answer.status == 400
        assert "Invalid query string parameters" in answer.detail

    def test_the_unknown_key_is_named(self, api: ApiClient) -> None:
        answer = api.get("/usages?project_id=x&foo=1")
        unexpected = "Additional properties are not allowed ('foo' was unexpected)"
        assert f"Invalid query string parameters: {unexpected}" in answer.detail

    def test_consumer_type_is_an_unknown_key_below_1_38(self, api: ApiClient) -> None:
        answer = api.at("1.37").get("/usages?project_id=x&consumer_type=INSTANCE")
        assert answer.status == 400
        assert "('consumer_type' was unexpected)" in answer.detail

    def test_the_last_value_of_a_repeated_key_counts(self, api: ApiClient) -> None:
        project = str(uuid4())
        holder(api, {make_provider(api, VCPU=8): {"VCPU": 1}}, project)
        answer = api.at("1.37").get(f"/usages?project_id=&project_id={project}")
        assert answer.json == {"usages": {"VCPU": 1}}

    def test_policy_is_checked_before_the_query(self, api: ApiClient) -> None:
        answer = api.request("GET", "/usages?foo=1", headers={"x-auth-token": "guest"})
        assert answer.status == 403

    def test_last_modified_is_now(self, api: ApiClient) -> None:
        headers = api.get("/usages?project_id=x").headers
        assert about_now(headers["last-modified"])
        assert headers["cache-control"] == "no-cache"

    @pytest.mark.parametrize("other", ["allocations", "usages"])
    def test_queries_of_a_providers_own_lists_are_ignored(self, api: ApiClient, other: str) -> None:
        path = f"/resource_providers/{make_provider(api)}/{other}"
        assert api.get(f"{path}?foo=%ff").status == 200
