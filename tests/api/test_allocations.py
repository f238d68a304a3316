"""The allocations of one consumer: read, replaced and deleted, in every version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store import tables
from roost.store.database import Database
from roost.store.tables import utc_now
from support.api_client import ApiClient, in_process_client

# The first and the last version of each form of the body.
FORMS = (
    "1.0", "1.7", "1.8", "1.11", "1.12", "1.27", "1.28", "1.33", "1.34", "1.37", "1.38", "1.39",
)  # fmt: skip
INCOMPLETE = "00000000-0000-0000-0000-000000000000"

Resources = Mapping[str, int]

# Marks tests of behaviour that does not depend on the kind of database.
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def minor(version: str) -> int:
    return int(version.split(".")[1])


def make_provider(api: ApiClient, **inventories: int | dict[str, Any]) -> str:
    """A provider with these inventories, by class: all fields or only the total."""
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    if inventories:
        records = {
            name: given if isinstance(given, dict) else {"total": given}
            for name, given in inventories.items()
        }
        body = {"resource_provider_generation": 0, "inventories": records}
        assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def claim(version: str, allocations: Mapping[str, Resources], **members: Any) -> dict[str, Any]:
    """The body for a new consumer in the form of a version; members may be added or replaced."""
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": dict(held)} for uuid, held in allocations.items()}
    }
    if minor(version) < 12:
        body["allocations"] = [
            {"resource_provider": {"uuid": uuid}, "resources": dict(held)}
            for uuid, held in allocations.items()
        ]
    if minor(version) >= 8:
        body |= {"project_id": "a project", "user_id": "a user"}
    if minor(version) >= 28:
        body["consumer_generation"] = None
    if minor(version) >= 38:
        body["consumer_type"] = "INSTANCE"
    return body | members


def claimed(api: ApiClient, allocations: Mapping[str, Resources], **members: Any) -> str:
    """A new consumer that holds these allocations."""
    consumer = str(uuid4())
    body = claim("1.39", allocations, **members)
    assert api.at("1.39").put(f"/allocations/{consumer}", body).status == 204
    return consumer


def held(api: ApiClient, consumer: str) -> dict[str, Resources]:
    """The amounts that the consumer holds, by provider."""
    found = api.get(f"/allocations/{consumer}").json["allocations"]
    return {uuid: record["resources"] for uuid, record in found.items()}


def consumer_generation(api: ApiClient, consumer: str) -> int | None:
    found: int | None = api.get(f"/allocations/{consumer}").json.get("consumer_generation")
    return found


def provider_generation(api: ApiClient, uuid: str) -> int:
    found: int = api.get(f"/resource_providers/{uuid}").json["generation"]
    return found


class TestReading:
    def test_a_consumer_without_allocations_has_an_empty_list(self, api: ApiClient) -> None:
        answer = api.get(f"/allocations/{uuid4()}")
        assert (answer.status, answer.json) == (200, {"allocations": {}})

    def test_a_consumer_that_is_no_uuid_has_an_empty_list(self, api: ApiClient) -> None:
        answer = api.get("/allocations/no-uuid")
        assert (answer.status, answer.json) == (200, {"allocations": {}})

    @on_sqlite
    @pytest.mark.parametrize(
        ("version", "members"),
        [
            ("1.0", set()),
            ("1.11", set()),
            ("1.12", {"project_id", "user_id"}),
            ("1.27", {"project_id", "user_id"}),
            ("1.28", {"project_id", "user_id", "consumer_generation"}),
            ("1.37", {"project_id", "user_id", "consumer_generation"}),
            ("1.38", {"project_id", "user_id", "consumer_generation", "consumer_type"}),
        ],
    )
    def test_each_version_shows_its_own_members_of_the_consumer(
        self, api: ApiClient, version: str, members: set[str]
    ) -> None:
        consumer = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 2}})
        answer = api.at(version).get(f"/allocations/{consumer}")
        assert answer.json.keys() == {"allocations"} | members

    def test_amounts_are_shown_by_provider_with_its_generation(self, api: ApiClient) -> None:
        host, disks = make_provider(api, VCPU=8, MEMORY_MB=100), make_provider(api, DISK_GB=50)
        wanted = {host: {"VCPU": 2, "MEMORY_MB": 64}, disks: {"DISK_GB": 20}}
        consumer = claimed(api, wanted)
        assert api.get(f"/allocations/{consumer}").json == {
            "allocations": {
                host: {"generation": 2, "resources": {"VCPU": 2, "MEMORY_MB": 64}},
                disks: {"generation": 2, "resources": {"DISK_GB": 20}},
            },
            "project_id": "a project",
            "user_id": "a user",
            "consumer_generation": 1,
            "consumer_type": "INSTANCE",
        }

    @on_sqlite
    def test_another_media_type_than_json_is_not_provided(self, api: ApiClient) -> None:
        answer = api.get(f"/allocations/{uuid4()}", accept="image/png")
        assert answer.status == 406
        assert b"Only application/json is provided" in answer.body


class TestRequestsThatAreGranted:
    @pytest.mark.parametrize("version", FORMS)
    def test_a_claim_in_the_form_of_the_version_is_granted(
        self, api: ApiClient, version: str
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        body = claim(version, {provider: {"VCPU": 2}})
        answer = api.at(version).put(f"/allocations/{consumer}", body)
        assert (answer.status, answer.body) == (204, b"")
        assert held(api, consumer) == {provider: {"VCPU": 2}}

    def test_a_whole_number_may_be_spelt_as_a_float(self, api: ApiClient) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        # The types of the helper allow whole numbers only.
        body = claim("1.39", {provider: {"VCPU": 2.0}})  # type: ignore[dict-item]
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 2}}

    @pytest.mark.parametrize("version", ["1.0", "1.11"])
    def test_the_last_entry_of_a_provider_named_twice_in_an_old_list_counts(
        self, api: ApiClient, version: str
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8, DISK_GB=8), str(uuid4())
        body = claim(version, {provider: {"VCPU": 2}})
        body["allocations"] += claim(version, {provider: {"DISK_GB": 3}})["allocations"]
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"DISK_GB": 3}}

    @pytest.mark.parametrize("text", ["x" * 255, "späße 日本 🐦", "a <b> & 'c' \\ \" %s ;--"])
    def test_a_project_and_a_user_may_be_any_text(self, api: ApiClient, text: str) -> None:
        consumer = claimed(
            api, {make_provider(api, VCPU=8): {"VCPU": 2}}, project_id=text, user_id=text
        )
        shown = api.get(f"/allocations/{consumer}").json
        assert (shown["project_id"], shown["user_id"]) == (text, text)

    @pytest.mark.parametrize("value", ["X", "0", "_", "X" * 255, "ALL", "UNKNOWN"])
    def test_a_consumer_type_may_be_any_valid_name(self, api: ApiClient, value: str) -> None:
        consumer = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 2}}, consumer_type=value)
        assert api.get(f"/allocations/{consumer}").json["consumer_type"] == value

    @pytest.mark.parametrize(
        "spell",
        [
            str.upper,
            lambda uuid: uuid.replace("-", ""),
            lambda uuid: f"%7B{uuid}%7D",
            lambda uuid: f"urn:uuid:{uuid}",
            lambda uuid: uuid.replace("-", "").upper(),
        ],
    )
    def test_a_consumer_may_be_spelt_in_many_ways_and_is_the_same(
        self, api: ApiClient, spell: Any
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        body = claim("1.39", {provider: {"VCPU": 2}})
        assert api.put(f"/allocations/{spell(consumer)}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 2}}


@on_sqlite
class TestForm:
    """The schema of the body, which is checked before the database is read."""

    @pytest.mark.parametrize(
        ("version", "form"),
        [("1.0", "1.8"), ("1.7", "1.8"), ("1.11", "1.12"), ("1.12", "1.11"), ("1.27", "1.28"),
         ("1.37", "1.38")],
    )  # fmt: skip
    def test_the_form_of_another_version_is_refused(
        self, api: ApiClient, version: str, form: str
    ) -> None:
        body = claim(form, {make_provider(api, VCPU=8): {"VCPU": 2}})
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert "JSON does not validate: " in answer.detail

    @pytest.mark.parametrize(
        ("version", "member"),
        [
            ("1.0", "allocations"),
            ("1.8", "project_id"),
            ("1.8", "user_id"),
            ("1.12", "allocations"),
            ("1.12", "project_id"),
            ("1.12", "user_id"),
            ("1.28", "consumer_generation"),
            ("1.34", "consumer_generation"),
            ("1.38", "consumer_generation"),
            ("1.38", "consumer_type"),
        ],
    )
    def test_a_member_that_the_version_requires_must_be_there(
        self, api: ApiClient, version: str, member: str
    ) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": 2}})
        del body[member]
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert f"'{member}' is a required property" in answer.detail

    @pytest.mark.parametrize(
        ("version", "member", "value"),
        [
            ("1.7", "project_id", "a project"),
            ("1.27", "consumer_generation", None),
            ("1.33", "mappings", {"1": [str(uuid4())]}),
            ("1.37", "consumer_type", "INSTANCE"),
            ("1.39", "anything", 1),
        ],
    )
    def test_a_member_that_the_version_does_not_know_is_refused(
        self, api: ApiClient, version: str, member: str, value: Any
    ) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": 2}}, **{member: value})
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        unexpected = f"Additional properties are not allowed ('{member}' was unexpected)"
        assert unexpected in answer.detail

    @pytest.mark.parametrize("place", ["entry", "resource_provider"])
    def test_unknown_members_inside_an_old_list_are_refused(
        self, api: ApiClient, place: str
    ) -> None:
        body = claim("1.0", {make_provider(api, VCPU=8): {"VCPU": 2}})
        (entry,) = body["allocations"]
        (entry if place == "entry" else entry["resource_provider"])["extra"] = 1
        answer = api.at("1.0").put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert "('extra' was unexpected)" in answer.detail

    def test_unknown_members_beside_resources_are_refused(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.39", {provider: {"VCPU": 2}})
        body["allocations"][provider]["extra"] = 1
        answer = api.put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert "('extra' was unexpected)" in answer.detail

    @pytest.mark.parametrize("version", ["1.0", "1.8", "1.12", "1.27"])
    def test_an_empty_claim_is_refused_below_1_28(self, api: ApiClient, version: str) -> None:
        answer = api.at(version).put(f"/allocations/{uuid4()}", claim(version, {}))
        assert answer.status == 400
        assert "should be non-empty" in answer.detail

    @pytest.mark.parametrize("version", ["1.0", "1.12", "1.39"])
    def test_a_provider_without_resources_is_refused(self, api: ApiClient, version: str) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {}})
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert "should be non-empty" in answer.detail

    @pytest.mark.parametrize(
        ("amount", "fragment"),
        [
            (0, "0 is less than the minimum of 1"),
            (-3, "-3 is less than the minimum of 1"),
            (1.5, "1.5 is not of type 'integer'"),
            ("1", "'1' is not of type 'integer'"),
            (True, "True is not of type 'integer'"),
            (None, "None is not of type 'integer'"),
        ],
    )
    @pytest.mark.parametrize("version", ["1.0", "1.39"])
    def test_an_amount_is_a_positive_integer(
        self, api: ApiClient, version: str, amount: Any, fragment: str
    ) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": amount}})
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert fragment in answer.detail

    @pytest.mark.parametrize("name", ["vcpu", "VCPU ", "VC PU", "", "VCPU\n", "É"])
    @pytest.mark.parametrize("version", ["1.0", "1.39"])
    def test_a_class_has_capitals_digits_and_underscores_only(
        self, api: ApiClient, version: str, name: str
    ) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {name: 1}})
        assert api.at(version).put(f"/allocations/{uuid4()}", body).status == 400

    @pytest.mark.parametrize(
        "key", ["", "x" * 36, "0" * 35, "0" * 37, "0" * 32, f"{{{'0' * 34}}}", f"{'0' * 36}\n"]
    )
    def test_a_provider_key_has_36_hexadecimal_digits_and_dashes(
        self, api: ApiClient, key: str
    ) -> None:
        answer = api.put(f"/allocations/{uuid4()}", claim("1.39", {key: {"VCPU": 1}}))
        assert answer.status == 400
        assert "JSON does not validate: " in answer.detail

    @pytest.mark.parametrize("value", ["nothing", "", 5, None, f" {'0' * 31}", f"0x{'0' * 30}"])
    def test_a_provider_in_an_old_list_is_a_uuid(self, api: ApiClient, value: Any) -> None:
        entry = {"resource_provider": {"uuid": value}, "resources": {"VCPU": 1}}
        answer = api.at("1.0").put(f"/allocations/{uuid4()}", {"allocations": [entry]})
        assert answer.status == 400
        assert "JSON does not validate: " in answer.detail

    def test_a_provider_in_an_old_list_must_be_spelt_as_it_is_stored(self, api: ApiClient) -> None:
        spelt = make_provider(api, VCPU=8).replace("-", "")
        answer = api.at("1.0").put(f"/allocations/{uuid4()}", claim("1.0", {spelt: {"VCPU": 1}}))
        assert answer.status == 400
        expected = f"Allocation for resource provider '{spelt}' that does not exist."
        assert expected in answer.detail

    @pytest.mark.parametrize("generation", [0, 1, 77])
    def test_a_provider_generation_inside_the_claim_is_ignored(
        self, api: ApiClient, generation: int
    ) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.39", {provider: {"VCPU": 2}})
        body["allocations"][provider]["generation"] = generation
        assert api.put(f"/allocations/{uuid4()}", body).status == 204

    def test_a_provider_generation_inside_the_claim_is_an_integer(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.39", {provider: {"VCPU": 2}})
        body["allocations"][provider]["generation"] = "1"
        assert api.put(f"/allocations/{uuid4()}", body).status == 400

    @pytest.mark.parametrize("version", ["1.34", "1.37", "1.38"])
    @pytest.mark.parametrize(
        "mappings",
        [
            {"1": [str(uuid4())]},
            {"_net-1": [str(uuid4()), str(uuid4())], "": [str(uuid4())]},
            {"": "the server ignores this value"},
        ],
    )
    def test_mappings_are_accepted_and_ignored(
        self, api: ApiClient, version: str, mappings: dict[str, Any]
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        body = claim(version, {provider: {"VCPU": 2}}, mappings=mappings)
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 2}}

    @pytest.mark.parametrize(
        "mappings", [{}, {"1": []}, {"1": ["no uuid"]}, {"1": str(uuid4())}, {"1": [5]}, [], None]
    )
    def test_mappings_list_the_providers_of_each_group(self, api: ApiClient, mappings: Any) -> None:
        body = claim("1.39", {make_provider(api, VCPU=8): {"VCPU": 2}}, mappings=mappings)
        assert api.put(f"/allocations/{uuid4()}", body).status == 400

    @pytest.mark.parametrize("member", ["project_id", "user_id"])
    @pytest.mark.parametrize("value", ["", "x" * 256, 5, None])
    @pytest.mark.parametrize("version", ["1.8", "1.39"])
    def test_project_and_user_have_1_to_255_characters(
        self, api: ApiClient, version: str, member: str, value: Any
    ) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": 2}}, **{member: value})
        assert api.at(version).put(f"/allocations/{uuid4()}", body).status == 400

    @pytest.mark.parametrize("value", ["1", 1.5, True, [], {}])
    def test_a_consumer_generation_is_an_integer_or_null(self, api: ApiClient, value: Any) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.28", {provider: {"VCPU": 2}}, consumer_generation=value)
        answer = api.at("1.28").put(f"/allocations/{uuid4()}", body)
        assert answer.status == 400
        assert "is not of type 'integer', 'null'" in answer.detail

    @pytest.mark.parametrize(
        "value", ["", "unknown", "all", "Instance", "A-B", "A B", "A\n", "X" * 256, 5, None]
    )
    def test_a_consumer_type_has_capitals_digits_and_underscores_only(
        self, api: ApiClient, value: Any
    ) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.38", {provider: {"VCPU": 2}}, consumer_type=value)
        assert api.put(f"/allocations/{uuid4()}", body).status == 400

    def test_another_media_type_than_json_is_refused(self, api: ApiClient) -> None:
        answer = api.put(f"/allocations/{uuid4()}", b"{}", content_type="text/plain")
        assert answer.status == 415

    @pytest.mark.parametrize(
        "text",
        ["nobody", "0" * 31, f"%20{'0' * 31}", f"0x{'0' * 30}", f"0_{'0' * 30}", "%D9%A1" * 32],
    )
    def test_a_consumer_that_is_no_uuid_is_refused_before_the_body_is_read(
        self, api: ApiClient, text: str
    ) -> None:
        answer = api.put(f"/allocations/{text}", b"no JSON")
        assert answer.status == 400
        assert "Malformed consumer_uuid: " in answer.detail


@on_sqlite
class TestOrderOfFailures:
    # The faults of a request, in the order in which the server notices them.
    FAULTS = (
        (400, "Malformed consumer_uuid: no-uuid"),
        (400, "Additional properties are not allowed ('extra' was unexpected)"),
        (409, "consumer generation conflict - expected null but got 5"),
        (400, "Allocation for resource provider '{ghost}' that does not exist."),
        (400, "Unable to allocate inventory for consumer {consumer}: "
              "No such resource class CUSTOM_GHOST."),
        (409, "on resource provider '{bare}' invalid."),
        (409, "The requested amount would exceed the capacity."),
    )  # fmt: skip

    @pytest.mark.parametrize("first", range(len(FAULTS)))
    def test_the_first_fault_hides_all_later_ones(self, api: ApiClient, first: int) -> None:
        host, bare = make_provider(api, VCPU=8), make_provider(api)
        names = {"ghost": str(uuid4()), "consumer": str(uuid4()), "bare": bare}
        body = claim("1.39", {host: {"VCPU": 9}})
        entries = body["allocations"]
        if first <= 1:
            body["extra"] = 1
        if first <= 2:
            body["consumer_generation"] = 5
        if first <= 3:
            entries[names["ghost"]] = {"resources": {"VCPU": 1}}
        if first <= 4:
            entries[host]["resources"]["CUSTOM_GHOST"] = 1
        if first <= 5:
            entries[bare] = {"resources": {"VCPU": 1}}
        answer = api.put(f"/allocations/{'no-uuid' if first == 0 else names['consumer']}", body)
        status, text = self.FAULTS[first]
        assert answer.status == status
        assert text.format(**names) in answer.detail

    @pytest.mark.parametrize("others_first", [False, True])
    def test_the_first_entry_of_the_claim_that_fails_is_named(
        self, api: ApiClient, others_first: bool
    ) -> None:
        full = make_provider(api, VCPU=8)
        stepped = make_provider(api, VCPU={"total": 8, "step_size": 4})
        wanted = [(full, {"VCPU": 9}), (stepped, {"VCPU": 3})]
        if others_first:
            wanted.reverse()
        answer = api.put(f"/allocations/{uuid4()}", claim("1.39", dict(wanted)))
        assert answer.status == 409
        assert f"on resource provider '{wanted[0][0]}'" in answer.detail

    def test_an_amount_above_max_unit_and_capacity_violates_the_constraints(
        self, api: ApiClient
    ) -> None:
        provider = make_provider(api, VCPU={"total": 8, "max_unit": 4})
        answer = api.put(f"/allocations/{uuid4()}", claim("1.39", {provider: {"VCPU": 9}}))
        assert answer.status == 409
        assert "The requested amount would violate inventory constraints." in answer.detail


class TestRefusals:
    def test_the_class_that_would_be_exceeded_is_named(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        answer = api.put(f"/allocations/{uuid4()}", claim("1.39", {provider: {"VCPU": 9}}))
        assert answer.status == 409
        assert (
            "Unable to allocate inventory: Unable to create allocation for 'VCPU' on resource "
            f"provider '{provider}'. The requested amount would exceed the capacity."
        ) in answer.detail

    def test_the_class_whose_constraints_are_violated_is_named(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU={"total": 8, "max_unit": 2})
        answer = api.put(f"/allocations/{uuid4()}", claim("1.39", {provider: {"VCPU": 3}}))
        assert answer.status == 409
        assert (
            "Unable to allocate inventory: Unable to create allocation for 'VCPU' on resource "
            f"provider '{provider}'. The requested amount would violate inventory constraints."
        ) in answer.detail

    def test_the_class_without_inventory_is_named(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.39", {provider: {"VCPU": 1, "DISK_GB": 1}})
        answer = api.put(f"/allocations/{uuid4()}", body)
        assert answer.status == 409
        assert (
            f"Unable to allocate inventory: Inventory for 'DISK_GB' on resource provider "
            f"'{provider}' invalid."
        ) in answer.detail

    def test_a_provider_without_any_inventory_is_named_with_all_classes(
        self, api: ApiClient
    ) -> None:
        host, bare = make_provider(api, VCPU=8, DISK_GB=8), make_provider(api)
        body = claim("1.39", {host: {"VCPU": 1, "DISK_GB": 1}, bare: {"VCPU": 1}})
        answer = api.put(f"/allocations/{uuid4()}", body)
        assert answer.status == 409
        sentence = (
            "Unable to allocate inventory: Inventory for '{}, {}' on resource provider "
            f"'{bare}' invalid."
        )
        either = (sentence.format("VCPU", "DISK_GB"), sentence.format("DISK_GB", "VCPU"))
        assert any(text in answer.detail for text in either)

    def test_a_class_that_a_claim_gives_up_counts_as_no_inventory_of_the_claim(
        self, api: ApiClient
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        resources = {provider: {"MEMORY_MB": 1, "DISK_GB": 1}}
        answer = api.put(
            f"/allocations/{consumer}", claim("1.39", resources, consumer_generation=1)
        )
        assert answer.status == 409
        assert "Inventory for 'MEMORY_MB, DISK_GB' on resource provider" in answer.detail

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.23", "1.29", "1.36", "1.39"])
    def test_a_refused_claim_has_no_special_code(self, api: ApiClient, version: str) -> None:
        # Blazar (1.29) and Nova (1.36) read the code before the text.
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": 9}})
        answer = api.at(version).put(f"/allocations/{uuid4()}", body)
        assert answer.error["code"] == "placement.undefined_code"

    @on_sqlite
    def test_errors_have_no_code_below_1_23(self, api: ApiClient) -> None:
        body = claim("1.22", {make_provider(api, VCPU=8): {"VCPU": 9}})
        answer = api.at("1.22").put(f"/allocations/{uuid4()}", body)
        assert "code" not in answer.error

    @on_sqlite
    @pytest.mark.parametrize("version", FORMS)
    def test_capacity_is_respected_in_every_version(self, api: ApiClient, version: str) -> None:
        body = claim(version, {make_provider(api, VCPU=8): {"VCPU": 9}})
        assert api.at(version).put(f"/allocations/{uuid4()}", body).status == 409

    def test_an_amount_beyond_all_inventories_is_a_conflict(self, api: ApiClient) -> None:
        body = claim("1.39", {make_provider(api, VCPU=8): {"VCPU": 10**30}})
        assert api.put(f"/allocations/{uuid4()}", body).status == 409


class TestConsumerGenerations:
    def test_the_first_claim_gives_generation_1(self, api: ApiClient) -> None:
        consumer = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 1}})
        assert consumer_generation(api, consumer) == 1

    @on_sqlite
    @pytest.mark.parametrize("version", FORMS)
    def test_the_first_claim_gives_generation_1_in_every_version(
        self, api: ApiClient, version: str
    ) -> None:
        consumer, provider = str(uuid4()), make_provider(api, VCPU=8)
        body = claim(version, {provider: {"VCPU": 1}})
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert consumer_generation(api, consumer) == 1

    @pytest.mark.parametrize("amount", [1, 2])
    def test_each_replacement_adds_one_even_if_the_amounts_are_the_same(
        self, api: ApiClient, amount: int
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim("1.39", {provider: {"VCPU": amount}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert consumer_generation(api, consumer) == 2

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.28", "1.34", "1.39"])
    @pytest.mark.parametrize(("sent", "shown"), [(None, "None"), (0, "0"), (2, "2"), (-1, "-1")])
    def test_another_generation_than_the_present_is_a_conflict(
        self, api: ApiClient, version: str, sent: int | None, shown: str
    ) -> None:
        # Nova recognizes this conflict by its text, and then reads the consumer again.
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim(version, {provider: {"VCPU": 2}}, consumer_generation=sent)
        answer = api.at(version).put(f"/allocations/{consumer}", body)
        assert answer.status == 409
        assert answer.error["code"] == "placement.concurrent_update"
        expected = f"consumer generation conflict - expected 1 but got {shown}"
        assert expected in answer.detail

    @on_sqlite
    @pytest.mark.parametrize("sent", [0, 1, 5])
    def test_a_generation_for_a_new_consumer_is_a_conflict(self, api: ApiClient, sent: int) -> None:
        provider = make_provider(api, VCPU=8)
        body = claim("1.39", {provider: {"VCPU": 2}}, consumer_generation=sent)
        answer = api.put(f"/allocations/{uuid4()}", body)
        assert answer.status == 409
        assert answer.error["code"] == "placement.concurrent_update"
        expected = f"consumer generation conflict - expected null but got {sent}"
        assert expected in answer.detail

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.0", "1.8", "1.12", "1.27"])
    def test_a_claim_below_1_28_is_not_compared_and_adds_one(
        self, api: ApiClient, version: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim(version, {provider: {"VCPU": 3}})
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 3}}
        assert consumer_generation(api, consumer) == 2

    def test_a_refused_claim_leaves_the_generation(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim("1.39", {provider: {"VCPU": 9}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 409
        assert consumer_generation(api, consumer) == 1

    @pytest.mark.parametrize("how", ["empty claim", "delete"])
    def test_a_consumer_that_gave_up_everything_starts_again_as_new(
        self, api: ApiClient, how: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        if how == "delete":
            assert api.delete(f"/allocations/{consumer}").status == 204
        else:
            body = claim("1.39", {}, consumer_generation=1)
            assert api.put(f"/allocations/{consumer}", body).status == 204
        body = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=None)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert consumer_generation(api, consumer) == 1


class TestProviderGenerations:
    def test_a_claim_adds_one_however_many_classes_it_has(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8, MEMORY_MB=8, DISK_GB=8)
        claimed(api, {provider: {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}})
        assert provider_generation(api, provider) == 2

    def test_a_claim_moves_every_provider_that_it_names(self, api: ApiClient) -> None:
        providers = [make_provider(api, VCPU=8) for _ in range(3)]
        claimed(api, {provider: {"VCPU": 1} for provider in providers})
        assert [provider_generation(api, provider) for provider in providers] == [2, 2, 2]

    def test_a_replacement_adds_one_even_if_the_amounts_are_the_same(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=1)
        api.put(f"/allocations/{consumer}", body)
        assert provider_generation(api, provider) == 3

    def test_a_provider_that_a_replacement_leaves_keeps_its_generation(
        self, api: ApiClient
    ) -> None:
        left, taken = make_provider(api, VCPU=8), make_provider(api, VCPU=8)
        consumer = claimed(api, {left: {"VCPU": 1}})
        body = claim("1.39", {taken: {"VCPU": 1}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert (provider_generation(api, left), provider_generation(api, taken)) == (2, 2)

    def test_an_empty_claim_moves_every_provider_that_it_frees(self, api: ApiClient) -> None:
        providers = [make_provider(api, VCPU=8) for _ in range(2)]
        consumer = claimed(api, {provider: {"VCPU": 1} for provider in providers})
        body = claim("1.39", {}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert [provider_generation(api, provider) for provider in providers] == [3, 3]

    def test_a_deletion_moves_no_provider(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        assert api.delete(f"/allocations/{consumer}").status == 204
        assert provider_generation(api, provider) == 2

    def test_a_refused_claim_moves_no_provider(self, api: ApiClient) -> None:
        roomy, full = make_provider(api, VCPU=8), make_provider(api, VCPU=1)
        body = claim("1.39", {roomy: {"VCPU": 1}, full: {"VCPU": 2}})
        assert api.put(f"/allocations/{uuid4()}", body).status == 409
        assert (provider_generation(api, roomy), provider_generation(api, full)) == (1, 1)


class TestSideEffects:
    @pytest.mark.parametrize("fault", ["provider", "class", "inventory", "constraints", "room"])
    def test_a_refused_first_claim_leaves_no_consumer(self, api: ApiClient, fault: str) -> None:
        provider, consumer = make_provider(api, VCPU={"total": 8, "max_unit": 6}), str(uuid4())
        claimed(api, {provider: {"VCPU": 4}})
        wanted: dict[str, tuple[str, Resources]] = {
            "provider": (str(uuid4()), {"VCPU": 1}),
            "class": (provider, {"CUSTOM_GHOST": 1}),
            "inventory": (provider, {"DISK_GB": 1}),
            "constraints": (provider, {"VCPU": 7}),
            "room": (provider, {"VCPU": 5}),
        }
        body = claim("1.39", dict([wanted[fault]]))
        assert api.put(f"/allocations/{consumer}", body).status in (400, 409)
        # A claim without a generation is granted only to a consumer that does not exist.
        good = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=None)
        assert api.put(f"/allocations/{consumer}", good).status == 204

    def test_a_refused_replacement_leaves_the_consumer_as_it_was(self, api: ApiClient) -> None:
        provider, full = make_provider(api, VCPU=8), make_provider(api, VCPU=1)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        before = api.get(f"/allocations/{consumer}").json
        body = claim(
            "1.39",
            {provider: {"VCPU": 2}, full: {"VCPU": 2}},
            consumer_generation=1,
            project_id="another",
            user_id="another",
            consumer_type="ANOTHER",
        )
        assert api.put(f"/allocations/{consumer}", body).status == 409
        assert api.get(f"/allocations/{consumer}").json == before

    def test_a_replacement_replaces_all_allocations(self, api: ApiClient) -> None:
        first, second = make_provider(api, VCPU=8, DISK_GB=8), make_provider(api, VCPU=8)
        consumer = claimed(api, {first: {"VCPU": 1, "DISK_GB": 2}})
        body = claim("1.39", {second: {"VCPU": 3}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {second: {"VCPU": 3}}
        usages = api.get(f"/resource_providers/{first}/usages").json["usages"]
        assert usages == {"VCPU": 0, "DISK_GB": 0}

    @pytest.mark.parametrize("member", ["project_id", "user_id", "consumer_type"])
    def test_a_claim_records_the_owner_that_it_names(self, api: ApiClient, member: str) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})
        body = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=1, **{member: "ANOTHER"})
        assert api.put(f"/allocations/{consumer}", body).status == 204
        shown = api.get(f"/allocations/{consumer}").json
        expected = {"project_id": "a project", "user_id": "a user", "consumer_type": "INSTANCE"}
        assert {name: shown[name] for name in expected} == expected | {member: "ANOTHER"}

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.8", "1.12", "1.28", "1.37"])
    def test_a_claim_below_1_38_leaves_the_consumer_type(
        self, api: ApiClient, version: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}}, consumer_type="MIGRATION")
        body = claim(version, {provider: {"VCPU": 1}})
        if minor(version) >= 28:
            body["consumer_generation"] = 1
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert api.get(f"/allocations/{consumer}").json["consumer_type"] == "MIGRATION"

    @on_sqlite
    @pytest.mark.parametrize("version", ["1.0", "1.8", "1.12", "1.37"])
    def test_a_consumer_made_below_1_38_is_of_unknown_type(
        self, api: ApiClient, version: str
    ) -> None:
        consumer, provider = str(uuid4()), make_provider(api, VCPU=8)
        body = claim(version, {provider: {"VCPU": 1}})
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        assert api.get(f"/allocations/{consumer}").json["consumer_type"] == "unknown"

    @on_sqlite
    @pytest.mark.parametrize("known", [False, True])
    @pytest.mark.parametrize("version", ["1.0", "1.7"])
    def test_a_claim_below_1_8_makes_an_incomplete_consumer(
        self, api: ApiClient, version: str, known: bool
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}}) if known else str(uuid4())
        body = claim(version, {provider: {"VCPU": 1}})
        assert api.at(version).put(f"/allocations/{consumer}", body).status == 204
        shown = api.get(f"/allocations/{consumer}").json
        assert (shown["project_id"], shown["user_id"]) == (INCOMPLETE, INCOMPLETE)

    @on_sqlite
    def test_incomplete_consumers_have_the_configured_project_and_user(
        self, database: Database, tmp_path: Path
    ) -> None:
        configuration = (
            "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
            "[placement]\nincomplete_consumer_project_id = lost\n"
            "incomplete_consumer_user_id = found\n"
        )
        api = in_process_client(database, tmp_path, configuration)
        consumer, provider = str(uuid4()), make_provider(api, VCPU=8)
        api.at("1.0").put(f"/allocations/{consumer}", claim("1.0", {provider: {"VCPU": 1}}))
        shown = api.get(f"/allocations/{consumer}").json
        assert (shown["project_id"], shown["user_id"]) == ("lost", "found")

    def test_an_empty_claim_takes_everything_from_the_consumer(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 8}})
        body = claim("1.39", {}, consumer_generation=1)
        answer = api.put(f"/allocations/{consumer}", body)
        assert (answer.status, answer.body) == (204, b"")
        assert api.get(f"/allocations/{consumer}").json == {"allocations": {}}
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert usages == {"VCPU": 0}

    @on_sqlite
    @pytest.mark.parametrize("sent", [None, 2])
    def test_an_empty_claim_needs_the_right_generation(
        self, api: ApiClient, sent: int | None
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 8}})
        body = claim("1.39", {}, consumer_generation=sent)
        assert api.put(f"/allocations/{consumer}", body).status == 409
        assert held(api, consumer) == {provider: {"VCPU": 8}}

    def test_an_empty_claim_of_an_unknown_consumer_does_nothing(self, api: ApiClient) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        assert api.put(f"/allocations/{consumer}", claim("1.39", {})).status == 204
        good = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=None)
        assert api.put(f"/allocations/{consumer}", good).status == 204

    @on_sqlite
    def test_an_empty_claim_of_an_unknown_consumer_has_no_generation(self, api: ApiClient) -> None:
        body = claim("1.39", {}, consumer_generation=1)
        answer = api.put(f"/allocations/{uuid4()}", body)
        assert answer.status == 409
        assert "consumer generation conflict - expected null but got 1" in answer.detail


class TestDeletion:
    @on_sqlite
    @pytest.mark.parametrize("version", ["1.0", "1.12", "1.28", "1.39"])
    def test_a_deletion_removes_all_allocations_at_every_version(
        self, api: ApiClient, version: str
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 8}})
        answer = api.at(version).delete(f"/allocations/{consumer}")
        assert (answer.status, answer.body) == (204, b"")
        assert held(api, consumer) == {}
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert usages == {"VCPU": 0}

    def test_a_deletion_leaves_other_consumers(self, api: ApiClient) -> None:
        provider = make_provider(api, VCPU=8)
        mine, other = (claimed(api, {provider: {"VCPU": 2}}) for _ in range(2))
        assert api.delete(f"/allocations/{mine}").status == 204
        assert held(api, other) == {provider: {"VCPU": 2}}

    @on_sqlite
    @pytest.mark.parametrize("consumer", ["5f1de7e0-0000-4000-8000-00000000c0de", "nobody"])
    def test_a_consumer_without_allocations_is_not_found(
        self, api: ApiClient, consumer: str
    ) -> None:
        answer = api.delete(f"/allocations/{consumer}")
        assert answer.status == 404
        assert f"No allocations for consumer '{consumer}'" in answer.detail

    def test_a_second_deletion_is_not_found(self, api: ApiClient) -> None:
        consumer = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 8}})
        assert api.delete(f"/allocations/{consumer}").status == 204
        assert api.delete(f"/allocations/{consumer}").status == 404


class TestTimes:
    def test_last_modified_is_when_the_allocations_were_written(
        self, api: ApiClient, database: Database
    ) -> None:
        consumer = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 1}})
        written = datetime(2020, 2, 20, 20, 20, 20)

        def age(connection: Connection) -> None:
            connection.execute(sa.update(tables.allocations).values(created_at=written))

        database.write_at_once(age)
        answer = api.get(f"/allocations/{consumer}")
        assert answer.headers["last-modified"] == "Thu, 20 Feb 2020 20:20:20 GMT"
        assert answer.headers["cache-control"] == "no-cache"

    def test_a_replacement_renews_last_modified(self, api: ApiClient, database: Database) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 1}})

        def age(connection: Connection) -> None:
            long_ago = utc_now() - timedelta(days=300)
            connection.execute(sa.update(tables.allocations).values(created_at=long_ago))

        database.write_at_once(age)
        body = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        shown = api.get(f"/allocations/{consumer}").headers["last-modified"]
        assert datetime.now(UTC) - parsedate_to_datetime(shown) < timedelta(minutes=5)

    @on_sqlite
    def test_last_modified_is_now_for_an_unknown_consumer(self, api: ApiClient) -> None:
        shown = api.get(f"/allocations/{uuid4()}").headers["last-modified"]
        assert abs(datetime.now(UTC) - parsedate_to_datetime(shown)) < timedelta(minutes=5)

    @on_sqlite
    @pytest.mark.parametrize("consumer", ["somebody", "nobody"])
    def test_last_modified_is_absent_below_1_15(self, api: ApiClient, consumer: str) -> None:
        uuid = str(uuid4())
        if consumer == "somebody":
            uuid = claimed(api, {make_provider(api, VCPU=8): {"VCPU": 1}})
        headers = api.at("1.14").get(f"/allocations/{uuid}").headers
        assert not {"last-modified", "cache-control"} & headers.keys()

    @on_sqlite
    def test_last_modified_is_absent_from_writes(self, api: ApiClient) -> None:
        consumer, provider = str(uuid4()), make_provider(api, VCPU=8)
        path = f"/allocations/{consumer}"
        for answer in (api.put(path, claim("1.39", {provider: {"VCPU": 1}})), api.delete(path)):
            assert answer.status == 204
            assert not {"last-modified", "cache-control"} & answer.headers.keys()


class TestAdoptedRows:
    """Rows of consumers that Roost does not write, in a database of another service."""

    @staticmethod
    def leave_consumer(database: Database, uuid: str, generation: int) -> None:
        def write(connection: Connection) -> None:
            owners = []
            for table in (tables.projects, tables.users):
                values = {"created_at": utc_now(), "external_id": "left"}
                connection.execute(sa.insert(table), values)
                owners.append(connection.execute(sa.select(table.c.id)).scalar_one())
            connection.execute(
                sa.insert(tables.consumers),
                {
                    "created_at": utc_now(),
                    "uuid": uuid,
                    "project_id": owners[0],
                    "user_id": owners[1],
                    "generation": generation,
                },
            )

        database.write_at_once(write)

    @pytest.mark.parametrize("sent", [None, 0])
    def test_a_consumer_left_by_a_failed_claim_may_claim_as_new(
        self, api: ApiClient, database: Database, sent: int | None
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        self.leave_consumer(database, consumer, generation=0)
        body = claim("1.39", {provider: {"VCPU": 1}}, consumer_generation=sent)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 1}}

    @pytest.mark.parametrize("sent", [None, 0])
    def test_a_consumer_left_by_a_failed_claim_may_be_emptied(
        self, api: ApiClient, database: Database, sent: int | None
    ) -> None:
        consumer = str(uuid4())
        self.leave_consumer(database, consumer, generation=0)
        body = claim("1.39", {}, consumer_generation=sent)
        assert api.put(f"/allocations/{consumer}", body).status == 204

    @pytest.mark.parametrize("spell", [str.upper, lambda uuid: uuid.replace("-", "")])
    def test_a_consumer_left_in_another_spelling_is_shown_with_its_claim(
        self, api: ApiClient, database: Database, spell: Any
    ) -> None:
        provider, consumer = make_provider(api, VCPU=8), str(uuid4())
        self.leave_consumer(database, spell(consumer), generation=0)
        body = claim("1.39", {provider: {"VCPU": 1}})
        assert api.put(f"/allocations/{consumer}", body).status == 204
        assert held(api, consumer) == {provider: {"VCPU": 1}}

    @staticmethod
    def respell(database: Database, consumer: str, spelt: str) -> None:
        def write(connection: Connection) -> None:
            for column in (tables.consumers.c.uuid, tables.allocations.c.consumer_id):
                connection.execute(
                    sa.update(column.table).where(column == consumer).values({column.name: spelt})
                )

        database.write_at_once(write)

    @pytest.mark.parametrize("spell", [str.upper, lambda uuid: uuid.replace("-", "")])
    def test_a_consumer_in_another_spelling_is_found(
        self, api: ApiClient, database: Database, spell: Any
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 3}})
        self.respell(database, consumer, spell(consumer))
        assert held(api, consumer) == {provider: {"VCPU": 3}}

    @pytest.mark.parametrize("spell", [str.upper, lambda uuid: uuid.replace("-", "")])
    def test_a_consumer_in_another_spelling_is_replaced_and_not_doubled(
        self, api: ApiClient, database: Database, spell: Any
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 3}})
        self.respell(database, consumer, spell(consumer))
        body = claim("1.39", {provider: {"VCPU": 4}}, consumer_generation=1)
        assert api.put(f"/allocations/{consumer}", body).status == 204
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert (held(api, consumer), usages) == ({provider: {"VCPU": 4}}, {"VCPU": 4})

    @pytest.mark.parametrize("spell", [str.upper, lambda uuid: uuid.replace("-", "")])
    def test_a_consumer_in_another_spelling_can_be_deleted(
        self, api: ApiClient, database: Database, spell: Any
    ) -> None:
        provider = make_provider(api, VCPU=8)
        consumer = claimed(api, {provider: {"VCPU": 3}})
        self.respell(database, consumer, spell(consumer))
        assert api.delete(f"/allocations/{consumer}").status == 204
        usages = api.get(f"/resource_providers/{provider}/usages").json["usages"]
        assert usages == {"VCPU": 0}
