"""Resource providers are made, shown, renamed, moved in their trees and deleted."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update

from roost.store import tables
from roost.store.database import Database
from support.api_client import Answer, ApiClient

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

A, B, C, D, E = (f"c0ffee00-0000-0000-0000-00000000000{letter}" for letter in "abcde")
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"


def path(uuid: str) -> str:
    return f"/resource_providers/{uuid}"


def make(api: ApiClient, uuid: str, parent: str | None = None) -> None:
    """Make a provider whose name is the last letter of its uuid."""
    body = {"name": uuid[-1], "uuid": uuid, "parent_provider_uuid": parent}
    assert api.post("/resource_providers", body).status == 200


def move(api: ApiClient, uuid: str, parent: str | None) -> Answer:
    """Ask for a new parent of the provider."""
    return api.put(path(uuid), {"name": uuid[-1], "parent_provider_uuid": parent})


def forest(api: ApiClient) -> dict[str, tuple[str | None, str]]:
    """Parent and root of each provider, all by the last letter of their uuids."""
    found = api.get("/resource_providers").json["resource_providers"]
    return {
        item["uuid"][-1]: (
            item["parent_provider_uuid"] and item["parent_provider_uuid"][-1],
            item["root_provider_uuid"][-1],
        )
        for item in found
    }


@pytest.fixture
def trees(api: ApiClient) -> None:
    """Two trees: a over b over c, and d over e."""
    for uuid, parent in ((A, None), (B, A), (C, B), (D, None), (E, D)):
        make(api, uuid, parent)


def claim_on(api: ApiClient, uuid: str) -> None:
    body = {"resource_class": "VCPU", "total": 4}
    assert api.post(f"{path(uuid)}/inventories", body).status == 201
    claim = {
        "allocations": {uuid: {"resources": {"VCPU": 1}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", claim).status == 204


def age_of(answer: Answer) -> timedelta:
    return datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])


def set_times(database: Database, days_ago: int) -> None:
    """Set the times of all providers to so many days ago."""
    moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days_ago)
    statement = update(tables.resource_providers).values(created_at=moment, updated_at=moment)
    database.write_at_once(lambda connection: connection.execute(statement))


# The representation of a provider.

LINKS = {"aggregates": 1, "traits": 6, "allocations": 11}


@on_sqlite
@pytest.mark.parametrize("minor", [0, 1, 5, 6, 10, 11, 13, 14, 39])
def test_a_provider_has_the_representation_of_the_version(api: ApiClient, minor: int) -> None:
    make(api, A)
    make(api, B, A)
    parts = ["inventories", "usages"] + [part for part, since in LINKS.items() if since <= minor]
    expected: dict[str, Any] = {
        "uuid": B,
        "name": "b",
        "generation": 0,
        "links": [
            {"rel": "self", "href": path(B)},
            *({"rel": part, "href": f"{path(B)}/{part}"} for part in parts),
        ],
    }
    if minor >= 14:
        expected |= {"parent_provider_uuid": A, "root_provider_uuid": A}
    version = api.at(f"1.{minor}")
    assert version.get(path(B)).json == expected
    assert version.get("/resource_providers?name=b").json == {"resource_providers": [expected]}
    assert version.put(path(B), {"name": "b"}).json == expected


def test_a_root_is_its_own_root_and_has_no_parent(api: ApiClient) -> None:
    make(api, A)
    shown = api.get(path(A)).json
    assert (shown["parent_provider_uuid"], shown["root_provider_uuid"]) == (None, A)


def test_a_missing_provider_is_reported_with_the_text_that_neutron_matches_on(
    api: ApiClient,
) -> None:
    answer = api.get(path(NOWHERE))
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found" in answer.detail
    assert answer.error["code"] == "placement.undefined_code"


@on_sqlite
@pytest.mark.parametrize("part", ["inventories", "usages", "aggregates", "traits", "allocations"])
def test_the_parts_of_a_missing_provider_are_reported_with_the_same_text(
    api: ApiClient, part: str
) -> None:
    answer = api.get(f"{path(NOWHERE)}/{part}")
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found" in answer.detail


@pytest.mark.parametrize("text", ["no-uuid", "%F0%9F%90%A6", "a%27b", "x" * 300])
def test_a_provider_that_is_no_uuid_is_not_found(api: ApiClient, text: str) -> None:
    for part in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
        assert api.get(path(text) + part).status == 404
    assert api.delete(path(text)).status == 404


# Making a provider.


@on_sqlite
@pytest.mark.parametrize("version", ["1.0", "1.14", "1.19"])
def test_a_new_provider_is_not_shown_until_1_19(api: ApiClient, version: str) -> None:
    answer = api.at(version).post("/resource_providers", {"name": "a", "uuid": A})
    assert (answer.status, answer.body) == (201, b"")
    assert answer.headers["location"] == f"http://roost.example{path(A)}"
    assert "last-modified" not in answer.headers
    assert api.get(path(A)).json["name"] == "a"


@on_sqlite
@pytest.mark.parametrize("version", ["1.20", "1.39"])
def test_a_new_provider_is_shown_to_nova_from_1_20_on(api: ApiClient, version: str) -> None:
    answer = api.at(version).post("/resource_providers", {"name": "a", "uuid": A})
    assert answer.status == 200
    assert answer.headers["location"] == f"http://roost.example{path(A)}"
    assert answer.headers["cache-control"] == "no-cache"
    assert abs(age_of(answer)) < timedelta(minutes=5)
    assert answer.json == api.at(version).get(path(A)).json
    assert answer.json["generation"] == 0


def test_a_uuid_is_made_up_if_none_is_given(api: ApiClient) -> None:
    made = [api.post("/resource_providers", {"name": name}).json["uuid"] for name in "ab"]
    assert [str(UUID(uuid)) for uuid in made] == made
    assert made[0] != made[1]


@on_sqlite
@pytest.mark.parametrize(
    "spelling",
    [
        A.upper(),
        A.replace("-", ""),
        f"{{{A}}}",
        f"urn:uuid:{A}",
    ],
    ids=["upper case", "without dashes", "braces", "urn"],
)
def test_a_uuid_in_any_spelling_is_stored_in_canonical_form(api: ApiClient, spelling: str) -> None:
    answer = api.post("/resource_providers", {"name": "a", "uuid": spelling})
    assert answer.json["uuid"] == A
    assert answer.headers["location"].endswith(path(A))
    assert api.get(path(A)).status == 200


def test_a_uuid_that_exists_is_a_conflict_in_every_spelling(api: ApiClient) -> None:
    make(api, A)
    answer = api.post("/resource_providers", {"name": "other", "uuid": A.upper()})
    assert answer.status == 409
    assert f"Conflicting resource provider uuid: {A} already exists." in answer.detail


@pytest.mark.parametrize("name", ["x" * 200, "h\u00f4te-\u2603", "\U0001f426", "<b>'; DROP %/"])
def test_a_name_is_any_text_of_up_to_200_characters(api: ApiClient, name: str) -> None:
    answer = api.post("/resource_providers", {"name": name, "uuid": A})
    assert (answer.status, answer.json["name"]) == (200, name)
    assert api.get(path(A)).json["name"] == name


INVALID_NAMES = [
    ({}, "'name' is a required property"),
    ({"name": None}, "None is not of type 'string'"),
    ({"name": 5}, "5 is not of type 'string'"),
    ({"name": "x" * 201}, "is too long"),
    ({"name": "a", "size": 1}, "Additional properties are not allowed ('size' was unexpected)"),
    ({"name": "a", "generation": 1}, "('generation' was unexpected)"),
    (["a"], "is not of type 'object'"),
]


@on_sqlite
@pytest.mark.parametrize("version", ["1.0", "1.39"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        *INVALID_NAMES,
        ({"uuid": A}, "'name' is a required property"),
        ({"name": "a", "uuid": "a"}, "'a' is not a 'uuid'"),
        ({"name": "a", "uuid": ""}, "'' is not a 'uuid'"),
        ({"name": "a", "uuid": f" {A}"}, "is not a 'uuid'"),
        ({"name": "a", "uuid": f"{A}\n"}, "is not a 'uuid'"),
        ({"name": "a", "uuid": A[:-1]}, "is not a 'uuid'"),
        ({"name": "a", "uuid": None}, "None is not of type 'string'"),
        ({"name": "a", "uuid": 5}, "5 is not of type 'string'"),
    ],
)
def test_a_bad_body_makes_no_provider(
    api: ApiClient, version: str, body: Any, problem: str
) -> None:
    answer = api.at(version).post("/resource_providers", body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail
    assert problem in answer.detail


@on_sqlite
@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_a_provider_must_have_a_name(api: ApiClient, version: str) -> None:
    answer = api.at(version).post("/resource_providers", {"name": ""})
    assert answer.status == 400
    assert "name is required" in answer.detail


@on_sqlite
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_parents_are_unknown_before_1_14(api: ApiClient, method: str) -> None:
    make(api, A)
    target = path(A) if method == "PUT" else "/resource_providers"
    for parent in (A, None):
        body = {"name": "b", "parent_provider_uuid": parent}
        answer = api.at("1.13").request(method, target, body)
        assert answer.status == 400
        assert "('parent_provider_uuid' was unexpected)" in answer.detail


@on_sqlite
@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("parent", ["", "a", 5, [], f"{A} "])
def test_a_parent_that_is_no_uuid_is_refused(api: ApiClient, method: str, parent: Any) -> None:
    make(api, A)
    target = path(A) if method == "PUT" else "/resource_providers"
    answer = api.request(method, target, {"name": "b", "parent_provider_uuid": parent})
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail


@on_sqlite
@pytest.mark.parametrize("version", ["1.14", "1.39"])
def test_a_child_belongs_to_the_tree_of_its_parent(api: ApiClient, version: str) -> None:
    make(api, A)
    make(api, B, A)
    body = {"name": "c", "uuid": C, "parent_provider_uuid": B}
    assert api.at(version).post("/resource_providers", body).status in (200, 201)
    assert forest(api) == {"a": (None, "a"), "b": ("a", "a"), "c": ("b", "a")}


def test_a_provider_cannot_be_made_as_its_own_parent(api: ApiClient) -> None:
    body = {"name": "a", "uuid": A, "parent_provider_uuid": A}
    answer = api.post("/resource_providers", body)
    assert answer.status == 400
    assert f'Unable to create resource provider "a", {A}: ' in answer.detail
    assert "parent provider UUID cannot be same as UUID" in answer.detail


def test_a_provider_cannot_be_made_below_a_missing_parent(api: ApiClient) -> None:
    body = {"name": "a", "uuid": A, "parent_provider_uuid": NOWHERE}
    answer = api.post("/resource_providers", body)
    assert answer.status == 400
    assert f'Unable to create resource provider "a", {A}: ' in answer.detail
    assert "parent provider UUID does not exist." in answer.detail
    assert api.get(path(A)).status == 404


def test_a_taken_name_is_reported_with_the_text_that_nova_matches_on(api: ApiClient) -> None:
    make(api, A)
    answer = api.post("/resource_providers", {"name": "a"})
    assert answer.status == 409
    assert "Conflicting resource provider name: a already exists." in answer.detail
    assert answer.error["code"] == "placement.duplicate_name"


def test_a_taken_uuid_is_reported_without_the_text_that_nova_matches_on(api: ApiClient) -> None:
    make(api, A)
    for name in ("other", "a"):
        answer = api.post("/resource_providers", {"name": name, "uuid": A})
        assert answer.status == 409
        assert f"Conflicting resource provider uuid: {A} already exists." in answer.detail
        assert "Conflicting resource provider name:" not in answer.detail
        assert answer.error["code"] == "placement.duplicate_name"


def test_a_missing_parent_is_reported_before_a_taken_name(api: ApiClient) -> None:
    make(api, A)
    body = {"name": "a", "parent_provider_uuid": NOWHERE}
    assert api.post("/resource_providers", body).status == 400


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("other", ["Host", "host ", "h\u00f6st"])
def test_names_are_compared_letter_by_letter(api: ApiClient, other: str) -> None:
    api.post("/resource_providers", {"name": "host"})
    assert api.post("/resource_providers", {"name": other}).status == 200
    assert len(api.get("/resource_providers?name=host").json["resource_providers"]) == 1


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_names_are_compared_by_the_unique_key_of_mariadb(api: ApiClient) -> None:
    api.post("/resource_providers", {"name": "host", "uuid": A})
    answer = api.post("/resource_providers", {"name": "HOST"})
    assert answer.status == 409
    assert "Conflicting resource provider name: HOST already exists." in answer.detail
    (found,) = api.get("/resource_providers?name=Host").json["resource_providers"]
    assert found["name"] == "host"
    assert api.put(path(A), {"name": "HOST"}).json["name"] == "HOST"


# Renaming.


@on_sqlite
@pytest.mark.parametrize("version", ["1.0", "1.13", "1.14", "1.39"])
def test_a_provider_can_be_renamed_and_keeps_its_place(api: ApiClient, version: str) -> None:
    make(api, A)
    make(api, B, A)
    answer = api.at(version).put(path(B), {"name": "new"})
    assert answer.status == 200
    assert answer.json["name"] == "new"
    shown = api.get(path(B)).json
    assert (shown["name"], shown["parent_provider_uuid"]) == ("new", A)
    assert shown["generation"] == 0


@on_sqlite
@pytest.mark.parametrize(("body", "problem"), [*INVALID_NAMES, ({"name": "a", "uuid": A}, "uuid")])
def test_a_bad_body_changes_no_provider(api: ApiClient, body: Any, problem: str) -> None:
    make(api, A)
    answer = api.put(path(A), body)
    assert answer.status == 400
    assert problem in answer.detail


def test_a_missing_provider_cannot_be_renamed(api: ApiClient) -> None:
    answer = api.put(path(NOWHERE), {"name": "a"})
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found" in answer.detail


def test_a_provider_cannot_be_renamed_to_a_taken_name(api: ApiClient) -> None:
    make(api, A)
    make(api, B)
    answer = api.put(path(B), {"name": "a"})
    assert answer.status == 409
    assert "Conflicting resource provider a already exists." in answer.detail
    assert answer.error["code"] == "placement.duplicate_name"
    assert api.get(path(B)).json["name"] == "b"


def test_a_provider_that_cannot_be_renamed_is_not_moved(api: ApiClient) -> None:
    make(api, A)
    make(api, B)
    answer = api.put(path(B), {"name": "a", "parent_provider_uuid": A})
    assert answer.status == 409
    assert forest(api) == {"a": (None, "a"), "b": (None, "b")}


# Moving, until 1.36: a root gets a parent once.

BEFORE = {"a": (None, "a"), "b": ("a", "a"), "c": ("b", "a"), "d": (None, "d"), "e": ("d", "d")}
REPARENTING = "re-parenting a provider is not currently allowed"
UNPARENTING = "un-parenting a provider is not currently allowed"
LOOP = "creating loop in the provider tree is not allowed."
MISSING = "parent provider UUID does not exist."


@on_sqlite
@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("version", ["1.14", "1.36", "1.37", "1.39"])
def test_a_root_can_be_moved_below_another_tree_with_its_subtree(
    api: ApiClient, version: str
) -> None:
    answer = move(api.at(version), A, E)
    assert answer.status == 200
    assert (answer.json["parent_provider_uuid"], answer.json["root_provider_uuid"]) == (E, D)
    assert forest(api) == BEFORE | {"a": ("e", "d"), "b": ("a", "d"), "c": ("b", "d")}


@on_sqlite
@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("version", ["1.14", "1.36", "1.37", "1.39"])
@pytest.mark.parametrize(("uuid", "parent"), [(A, None), (B, A), (E, D)])
def test_a_move_to_the_present_parent_changes_nothing(
    api: ApiClient, version: str, uuid: str, parent: str | None
) -> None:
    assert move(api.at(version), uuid, parent).status == 200
    assert forest(api) == BEFORE


@on_sqlite
@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize(
    ("uuid", "parent", "problem"),
    [
        (B, D, REPARENTING),
        (C, A, REPARENTING),
        (B, B, REPARENTING),
        (B, C, REPARENTING),
        (B, None, UNPARENTING),
        (A, A, LOOP),
        (A, C, LOOP),
        (A, NOWHERE, MISSING),
        (B, NOWHERE, MISSING),
    ],
)
@pytest.mark.parametrize("version", ["1.14", "1.36"])
def test_a_child_cannot_be_moved_until_1_36(
    api: ApiClient, *, version: str, uuid: str, parent: str | None, problem: str
) -> None:
    answer = move(api.at(version), uuid, parent)
    assert answer.status == 400
    assert f"Unable to save resource provider {uuid}: " in answer.detail
    assert problem in answer.detail
    assert forest(api) == BEFORE


# Moving, from 1.37 on: any provider moves.


@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize(
    ("uuid", "parent", "changed"),
    [
        (B, D, {"b": ("d", "d"), "c": ("b", "d")}),
        (B, E, {"b": ("e", "d"), "c": ("b", "d")}),
        (C, A, {"c": ("a", "a")}),
        (B, None, {"b": (None, "b"), "c": ("b", "b")}),
        (E, None, {"e": (None, "e")}),
        (E, C, {"e": ("c", "a")}),
    ],
)
def test_a_provider_moves_with_its_subtree_from_1_37_on(
    api: ApiClient, uuid: str, parent: str | None, changed: dict[str, tuple[str | None, str]]
) -> None:
    answer = move(api.at("1.37"), uuid, parent)
    assert answer.status == 200
    assert answer.json["parent_provider_uuid"] == parent
    assert forest(api) == BEFORE | changed


@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize(
    ("uuid", "parent", "problem"),
    [(A, A, LOOP), (A, C, LOOP), (B, B, LOOP), (B, C, LOOP), (A, NOWHERE, MISSING)],
)
def test_a_provider_cannot_be_moved_below_its_own_subtree_or_a_missing_parent(
    api: ApiClient, uuid: str, parent: str, problem: str
) -> None:
    answer = move(api, uuid, parent)
    assert answer.status == 400
    assert f"Unable to save resource provider {uuid}: " in answer.detail
    assert problem in answer.detail
    assert forest(api) == BEFORE


@pytest.mark.usefixtures("trees")
def test_a_provider_with_allocations_can_be_moved_and_keeps_its_generation(api: ApiClient) -> None:
    claim_on(api, C)
    generation = api.get(path(C)).json["generation"]
    assert move(api, B, E).status == 200
    assert move(api, B, None).status == 200
    assert api.get(path(C)).json["generation"] == generation
    assert [api.get(path(uuid)).json["generation"] for uuid in (A, B, D, E)] == [0] * 4
    assert C in api.get(f"/allocations/{CONSUMER}").json["allocations"]


def test_clients_that_move_providers_against_each_other_make_no_loop(api: ApiClient) -> None:
    for uuid in (A, B, C, D, E):
        make(api, uuid)
    moves = [(A, B), (B, C), (C, D), (D, E), (E, A)] * 2
    with ThreadPoolExecutor(4) as pool:
        statuses = Counter(pool.map(lambda pair: move(api, *pair).status, moves))
    assert statuses.keys() <= {200, 400}
    parents = {name: parent for name, (parent, _) in forest(api).items()}
    for name, (_, root) in forest(api).items():
        above = name
        for _ in parents:
            above = parents[above] or above
        assert (above, parents[above]) == (root, None)


# Deleting.


def test_a_provider_can_be_deleted(api: ApiClient) -> None:
    make(api, A)
    answer = api.delete(path(A))
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(path(A)).status == 404


def test_a_missing_provider_cannot_be_deleted(api: ApiClient) -> None:
    answer = api.delete(path(NOWHERE))
    assert answer.status == 404
    assert f"No resource provider with uuid {NOWHERE} found for delete" in answer.detail


@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("uuid", [A, B, D])
def test_a_provider_with_children_cannot_be_deleted(api: ApiClient, uuid: str) -> None:
    answer = api.delete(path(uuid))
    assert answer.status == 409
    assert (
        f"Unable to delete parent resource provider {uuid}: It has child resource providers."
        in answer.detail
    )
    assert answer.error["code"] == "placement.resource_provider.cannot_delete_parent"


@pytest.mark.usefixtures("trees")
def test_a_tree_can_be_deleted_from_its_leaves(api: ApiClient) -> None:
    assert [api.delete(path(uuid)).status for uuid in (C, B, A)] == [204] * 3
    assert forest(api).keys() == {"d", "e"}


def test_a_provider_with_allocations_cannot_be_deleted(api: ApiClient) -> None:
    make(api, A)
    claim_on(api, A)
    answer = api.delete(path(A))
    assert answer.status == 409
    assert (
        f"Unable to delete resource provider {A}: Resource provider has allocations."
        in answer.detail
    )
    assert answer.error["code"] == "placement.resource_provider.inuse"
    assert api.delete(f"/allocations/{CONSUMER}").status == 204
    assert api.delete(path(A)).status == 204


def test_children_are_reported_before_allocations(api: ApiClient) -> None:
    make(api, A)
    make(api, B, A)
    claim_on(api, A)
    code = api.delete(path(A)).error["code"]
    assert code == "placement.resource_provider.cannot_delete_parent"


def test_a_deletion_takes_only_the_inventories_aggregates_and_traits_of_the_provider(
    api: ApiClient,
) -> None:
    for uuid in (A, B):
        make(api, uuid)
        api.put("/traits/CUSTOM_GOLD")
        body = {"resource_class": "VCPU", "total": 4}
        assert api.post(f"{path(uuid)}/inventories", body).status == 201
        assert api.at("1.18").put(f"{path(uuid)}/aggregates", [NOWHERE]).status == 200
        body = {"traits": ["CUSTOM_GOLD"], "resource_provider_generation": 1}
        assert api.put(f"{path(uuid)}/traits", body).status == 200
    assert api.delete(path(A)).status == 204
    make(api, A)
    assert api.get(f"{path(A)}/inventories").json["inventories"] == {}
    assert api.get(f"{path(A)}/aggregates").json["aggregates"] == []
    assert api.get(f"{path(A)}/traits").json["traits"] == []
    assert list(api.get(f"{path(B)}/inventories").json["inventories"]) == ["VCPU"]
    assert api.get(f"{path(B)}/aggregates").json["aggregates"] == [NOWHERE]
    assert api.get("/traits/CUSTOM_GOLD").status == 204


# The header last-modified.


@on_sqlite
@pytest.mark.parametrize("target", ["/resource_providers", path(A)])
def test_reads_have_last_modified_from_1_15_on(api: ApiClient, target: str) -> None:
    make(api, A)
    before, after = (api.at(version).get(target).headers for version in ("1.14", "1.15"))
    assert not before.keys() & {"last-modified", "cache-control"}
    assert after["cache-control"] == "no-cache"
    assert after["last-modified"].endswith(" GMT")


def test_last_modified_is_the_time_of_the_last_change_of_the_provider(
    api: ApiClient, database: Database
) -> None:
    make(api, A)
    make(api, B, A)
    set_times(database, days_ago=3)
    assert age_of(api.get(path(B))) > timedelta(days=2)
    assert api.delete(f"{path(B)}/inventories").status == 204
    assert age_of(api.get(path(B))) < timedelta(minutes=5)
    assert age_of(api.get(path(A))) > timedelta(days=2)


def test_last_modified_of_a_list_is_the_time_of_its_newest_provider(
    api: ApiClient, database: Database
) -> None:
    make(api, A)
    set_times(database, days_ago=3)
    make(api, B)
    assert age_of(api.get("/resource_providers?name=a")) > timedelta(days=2)
    assert age_of(api.get("/resource_providers")) < timedelta(minutes=5)


@on_sqlite
def test_last_modified_of_an_empty_list_is_now(api: ApiClient) -> None:
    assert abs(age_of(api.get("/resource_providers"))) < timedelta(minutes=5)


@on_sqlite
def test_last_modified_of_a_new_child_is_now(api: ApiClient) -> None:
    make(api, A)
    make(api, B, A)
    assert abs(age_of(api.get(path(B)))) < timedelta(minutes=5)


@on_sqlite
def test_a_deletion_has_no_last_modified(api: ApiClient) -> None:
    make(api, A)
    assert not api.delete(path(A)).headers.keys() & {"last-modified", "cache-control"}


# Many clients at once.


def test_one_of_many_clients_makes_the_provider(api: ApiClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        bodies = [{"name": "same"}] * 8
        statuses = Counter(
            pool.map(lambda body: api.post("/resource_providers", body).status, bodies)
        )
    assert statuses == {200: 1, 409: 7}


def test_a_child_never_outlives_its_parent(api: ApiClient) -> None:
    make(api, A)

    def act(number: int) -> int:
        if number % 3 == 0:
            return api.delete(path(A)).status
        body = {"name": f"child {number}", "parent_provider_uuid": A}
        return api.post("/resource_providers", body).status

    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(act, range(12)))
    assert statuses <= {200, 204, 400, 404, 409}
    left = api.get("/resource_providers").json["resource_providers"]
    assert left == [] or A in {item["uuid"] for item in left}
