"""The query of `GET /resource_providers`: the providers that each key finds, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from support.api_client import ApiClient
from support.store.setup_cache import SetupCache

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

A, B, C, D = (f"c0ffee00-0000-0000-0000-00000000000{letter}" for letter in "abcd")
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
NORTH, SOUTH, EAST, WEST = (f"a66e0000-0000-0000-0000-00000000000{number}" for number in "1234")
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"

VERSIONS = tuple(range(40))


@pytest.fixture
def world(api: ApiClient, setup_cache: SetupCache) -> ApiClient:
    setup_cache.once(make_world, api)
    return api


def make_world(api: ApiClient) -> None:
    """Four providers: `b` is a child of `a`.

    - `a`: aggregate NORTH; trait GOLD; (10 - 2) * 1.5 VCPU, 3 of them in use.
    - `b`: aggregate SOUTH; trait SILVER; 100 VCPU in tens up to 50, 20 of them in use; 5 DISK_GB.
    - `c`: both aggregates; both traits; 1000 DISK_GB.
    - `d`: aggregate EAST.
    """
    for name in ("CUSTOM_GOLD", "CUSTOM_SILVER", "CUSTOM_UNUSED"):
        api.put(f"/traits/{name}")
    make(
        api, A, [NORTH], ["CUSTOM_GOLD"], VCPU={"total": 10, "reserved": 2, "allocation_ratio": 1.5}
    )
    tens = {"total": 100, "min_unit": 10, "max_unit": 50, "step_size": 10}
    make(api, B, [SOUTH], ["CUSTOM_SILVER"], VCPU=tens, DISK_GB={"total": 5})
    make(api, C, [NORTH, SOUTH], ["CUSTOM_GOLD", "CUSTOM_SILVER"], DISK_GB={"total": 1000})
    make(api, D, [EAST], [])
    claim = {
        "allocations": {A: {"resources": {"VCPU": 3}}, B: {"resources": {"VCPU": 20}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", claim).status == 204


def make(
    api: ApiClient, uuid: str, aggregates: list[str], traits: list[str], **inventories: Any
) -> None:
    path = f"/resource_providers/{uuid}"
    parent = A if uuid == B else None
    body: dict[str, Any] = {"name": uuid[-1], "uuid": uuid, "parent_provider_uuid": parent}
    assert api.post("/resource_providers", body).status == 200
    assert api.at("1.18").put(f"{path}/aggregates", aggregates).status == 200
    body = {"traits": traits, "resource_provider_generation": 0}
    generation = api.put(f"{path}/traits", body).json["resource_provider_generation"]
    body = {"inventories": inventories, "resource_provider_generation": generation}
    assert api.put(f"{path}/inventories", body).status == 200


def find(api: ApiClient, *query: str) -> str:
    """The names of the providers that the query finds, as one word."""
    answer = api.get("/resource_providers?" + quote("&".join(query), safe="&=:,!%+"))
    assert answer.status == 200, answer.body
    return "".join(sorted(item["name"] for item in answer.json["resource_providers"]))


def found(api: ApiClient, key: str, expected: Mapping[str, str]) -> dict[str, str]:
    """The providers that each of the values finds."""
    return {value: find(api, f"{key}={value}") for value in expected}


def refusal(api: ApiClient, *query: str) -> str:
    """The detail of a refused query."""
    answer = api.get("/resource_providers?" + quote("&".join(query), safe="&=:,!%+"))
    assert answer.status == 400, answer.body
    if "code" in answer.error:
        assert answer.error["code"] == "placement.undefined_code"
    return answer.detail


# The keys.


@on_sqlite
@pytest.mark.parametrize(
    ("key", "value", "since"),
    [
        ("name", "a", 0),
        ("uuid", A, 0),
        ("member_of", NORTH, 3),
        ("resources", "VCPU:1", 4),
        ("in_tree", A, 14),
        ("required", "HW_CPU_X86_VMX", 18),
        ("limit", "1", 40),
        ("root_required", "HW_CPU_X86_VMX", 40),
        ("NAME", "a", 40),
        ("unknown", "", 40),
    ],
)
def test_a_key_is_known_from_its_version_on(
    api: ApiClient, key: str, value: str, since: int
) -> None:
    for minor in VERSIONS:
        answer = api.at(f"1.{minor}").get(f"/resource_providers?{key}={value}")
        assert (minor, answer.status) == (minor, 200 if minor >= since else 400)
        if minor < since:
            assert "Invalid query string parameters: " in answer.detail
            assert (
                f"Additional properties are not allowed ('{key}' was unexpected)" in answer.detail
            )


@on_sqlite
@pytest.mark.parametrize("query", ["name=%FF", "%FF=a", "name=a%C3"])
def test_a_query_must_be_utf_8(api: ApiClient, query: str) -> None:
    assert "Invalid query string parameters" in refusal(api, query)


@on_sqlite
def test_the_query_of_another_route_is_ignored(api: ApiClient) -> None:
    body = {"name": "a", "uuid": A}
    assert api.post("/resource_providers?unknown=1", body).status == 200
    assert api.get(f"/resource_providers/{A}?unknown=%FF").status == 200
    assert api.get("/resource_classes?unknown=1").status == 200
    assert api.delete(f"/resource_providers/{A}?unknown=1").status == 204


def test_all_providers_are_found_without_a_query(world: ApiClient) -> None:
    assert find(world) == "abcd"


# name, uuid and in_tree.


def test_name_finds_the_provider_of_that_name(world: ApiClient) -> None:
    expected = {"a": "a", "unknown": "", "": "abcd", "a&name=c": "c", "%61": "a"}
    assert found(world, "name", expected) == expected
    assert find(world, "name") == "abcd"


def test_a_plus_in_a_name_is_a_blank(api: ApiClient) -> None:
    api.post("/resource_providers", {"name": "a b"})
    assert find(api, "name=a+b") == "a b"


def test_uuid_finds_the_provider_with_that_uuid(world: ApiClient) -> None:
    expected = {A: "a", NOWHERE: "", f"{A}&uuid={C}": "c"}
    assert found(world, "uuid", expected) == expected


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"], indirect=True)
def test_a_uuid_in_upper_case_is_accepted_and_finds_no_provider(world: ApiClient) -> None:
    assert find(world, f"uuid={A.upper()}") == ""
    assert find(world, f"in_tree={A.upper()}") == ""


@on_sqlite
@pytest.mark.parametrize("key", ["uuid", "in_tree"])
@pytest.mark.parametrize("value", ["", "a", A.replace("-", ""), f"{{{A}}}", A[:-1], f"{A}%0A"])
def test_a_uuid_without_the_dashed_form_is_refused(api: ApiClient, key: str, value: str) -> None:
    assert "Invalid query string parameters: " in refusal(api, f"{key}={value}")


@on_sqlite
def test_the_last_of_repeated_values_is_the_only_one_checked(api: ApiClient) -> None:
    assert find(api, "uuid=nonsense", f"uuid={A}") == ""
    refusal(api, f"uuid={A}", "uuid=nonsense")


def test_in_tree_finds_the_whole_tree_of_any_member(world: ApiClient) -> None:
    expected = {A: "ab", B: "ab", C: "c", NOWHERE: ""}
    assert found(world, "in_tree", expected) == expected


# member_of.


def test_member_of_finds_members_and_no_children_of_members(world: ApiClient) -> None:
    expected = {
        NORTH: "ac",
        SOUTH: "bc",
        EAST: "d",
        WEST: "",
        f"in:{NORTH}": "ac",
        f"in:{NORTH},{EAST}": "acd",
        f"in:{NORTH},{WEST}": "ac",
        f"in:{WEST}": "",
    }
    assert found(world.at("1.3"), "member_of", expected) == expected


def test_every_member_of_must_hold_from_1_24_on(world: ApiClient) -> None:
    expected = {
        f"{NORTH}&member_of={SOUTH}": "c",
        f"in:{NORTH},{EAST}&member_of=in:{SOUTH},{EAST}": "cd",
        f"{NORTH}&member_of={EAST}": "",
        f"{NORTH}&member_of={NORTH}": "ac",
    }
    assert found(world.at("1.24"), "member_of", expected) == expected


def test_aggregates_can_be_forbidden_from_1_32_on(world: ApiClient) -> None:
    expected = {
        f"!{NORTH}": "bd",
        f"!in:{NORTH},{SOUTH}": "d",
        f"!in:{NORTH}": "bd",
        f"!{WEST}": "abcd",
        f"{NORTH}&member_of=!{SOUTH}": "a",
        f"!{NORTH}&member_of=!{EAST}": "b",
        f"{NORTH}&member_of=!{NORTH}": "",
    }
    assert found(world.at("1.32"), "member_of", expected) == expected


@on_sqlite
@pytest.mark.parametrize("version", ["1.3", "1.23"])
def test_a_repeated_member_of_is_refused_until_1_23(api: ApiClient, version: str) -> None:
    detail = refusal(api.at(version), f"member_of={NORTH}", f"member_of={SOUTH}")
    assert "Multiple member_of parameters are not supported" in detail


@on_sqlite
@pytest.mark.parametrize("version", ["1.3", "1.31"])
@pytest.mark.parametrize("value", [f"!{NORTH}", f"!in:{NORTH},{SOUTH}"])
def test_a_forbidden_aggregate_is_refused_until_1_31(
    api: ApiClient, version: str, value: str
) -> None:
    detail = refusal(api.at(version), f"member_of={value}")
    assert (
        "Forbidden member_of parameters are not supported in the specified microversion" in detail
    )


@on_sqlite
@pytest.mark.parametrize("version", ["1.3", "1.24", "1.39"])
def test_several_aggregates_without_a_prefix_are_refused(api: ApiClient, version: str) -> None:
    detail = refusal(api.at(version), f"member_of={NORTH},{SOUTH}")
    assert (
        "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using "
        "the valid microversion." in detail
    )


@on_sqlite
@pytest.mark.parametrize(
    "value",
    [
        "",
        "in:",
        "!",
        "!in:",
        "north",
        f"in:{NORTH},north",
        f"in:{NORTH},",
        f"in:!{NORTH}",
        f"!!{NORTH}",
    ],
)
def test_an_aggregate_that_is_no_uuid_is_refused(api: ApiClient, value: str) -> None:
    detail = refusal(api, f"member_of={value}")
    assert "Expected 'member_of' parameter to contain valid UUID(s)." in detail


# required.


def test_required_finds_the_providers_that_have_all_traits(world: ApiClient) -> None:
    expected = {
        "CUSTOM_GOLD": "ac",
        "CUSTOM_SILVER": "bc",
        "CUSTOM_GOLD,CUSTOM_SILVER": "c",
        "CUSTOM_GOLD,CUSTOM_GOLD": "ac",
        " CUSTOM_GOLD , CUSTOM_SILVER ": "c",
        "CUSTOM_UNUSED": "",
        "CUSTOM_GOLD,CUSTOM_UNUSED": "",
    }
    assert found(world.at("1.18"), "required", expected) == expected


def test_traits_can_be_forbidden_from_1_22_on(world: ApiClient) -> None:
    expected = {
        "!CUSTOM_GOLD": "bd",
        "!CUSTOM_GOLD,!CUSTOM_SILVER": "d",
        "CUSTOM_GOLD,!CUSTOM_SILVER": "a",
        "!CUSTOM_UNUSED": "abcd",
        "!!CUSTOM_GOLD": "bd",
        "CUSTOM_GOLD,!CUSTOM_GOLD": "",
    }
    assert found(world.at("1.22"), "required", expected) == expected


def test_one_of_several_traits_is_enough_from_1_39_on(world: ApiClient) -> None:
    expected = {
        "in:CUSTOM_GOLD,CUSTOM_SILVER": "abc",
        "in:CUSTOM_GOLD": "ac",
        "in:CUSTOM_GOLD,CUSTOM_UNUSED": "ac",
        "in:CUSTOM_UNUSED": "",
        "in: CUSTOM_GOLD , CUSTOM_SILVER ": "abc",
    }
    assert found(world.at("1.39"), "required", expected) == expected


def test_every_required_must_hold_from_1_39_on(world: ApiClient) -> None:
    expected = {
        "CUSTOM_GOLD&required=CUSTOM_SILVER": "c",
        "CUSTOM_GOLD&required=!CUSTOM_SILVER": "a",
        "in:CUSTOM_GOLD,CUSTOM_SILVER&required=!CUSTOM_GOLD": "b",
        "in:CUSTOM_GOLD,CUSTOM_UNUSED&required=in:CUSTOM_SILVER,CUSTOM_UNUSED": "c",
        "!CUSTOM_GOLD&required=!CUSTOM_SILVER": "d",
    }
    assert found(world.at("1.39"), "required", expected) == expected


def test_the_last_required_counts_until_1_38(world: ApiClient) -> None:
    expected = {
        "CUSTOM_GOLD&required=CUSTOM_SILVER": "bc",
        "&required=CUSTOM_SILVER": "bc",
        "CUSTOM_NOWHERE&required=CUSTOM_SILVER": "bc",
    }
    assert found(world.at("1.38"), "required", expected) == expected


@on_sqlite
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("CUSTOM_NOWHERE", "CUSTOM_NOWHERE"),
        ("!CUSTOM_NOWHERE", "CUSTOM_NOWHERE"),
        ("in:CUSTOM_NOWHERE", "CUSTOM_NOWHERE"),
        ("in:HW_CPU_X86_VMX,CUSTOM_NOWHERE", "CUSTOM_NOWHERE"),
        ("HW_CPU_X86_VMX,CUSTOM_NOWHERE", "CUSTOM_NOWHERE"),
        ("!in:HW_CPU_X86_VMX", "in:HW_CPU_X86_VMX"),
        ("hw_cpu_x86_vmx", "hw_cpu_x86_vmx"),
    ],
)
def test_a_trait_that_does_not_exist_is_refused(api: ApiClient, value: str, named: str) -> None:
    detail = refusal(api, f"required={value}")
    assert f'Invalid trait(s) in "required" parameter: No such trait(s): {named}.' in detail


FORM = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,"


@on_sqlite
@pytest.mark.parametrize("version", ["1.18", "1.21"])
def test_a_forbidden_trait_is_refused_until_1_21(api: ApiClient, version: str) -> None:
    detail = refusal(api.at(version), "required=!HW_CPU_X86_VMX")
    assert f"Invalid query string parameters: {FORM}CUSTOM_MAGIC." in detail
    assert "Got: !HW_CPU_X86_VMX" in detail


@on_sqlite
@pytest.mark.parametrize(
    ("version", "form"),
    [("1.18", "CUSTOM_MAGIC."), ("1.21", "CUSTOM_MAGIC."), ("1.22", "!CUSTOM_MAGIC.")],
)
@pytest.mark.parametrize("value", ["", "HW_CPU_X86_VMX,", ",HW_CPU_X86_VMX", " "])
def test_a_trait_without_a_name_is_refused(
    api: ApiClient, version: str, form: str, value: str
) -> None:
    detail = refusal(api.at(version), f"required={value}")
    assert f"Invalid query string parameters: {FORM}{form}" in detail
    assert "Got an empty trait in: " in detail


@on_sqlite
@pytest.mark.parametrize(
    ("version", "value", "problem"),
    [
        (
            "1.38",
            "in:HW_CPU_X86_VMX",
            "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39.",
        ),
        ("1.39", "in:!HW_CPU_X86_VMX", "does not support forbidden traits"),
        ("1.39", "in:HW_CPU_X86_VMX,!CUSTOM_MAGIC", "does not support forbidden traits"),
        (
            "1.39",
            "in:",
            "of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: ",
        ),
        (
            "1.39",
            "in:HW_CPU_X86_VMX,",
            "of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: ",
        ),
        ("1.39", "!", "Got an empty trait in: "),
    ],
)
def test_a_bad_list_of_alternative_traits_is_refused(
    api: ApiClient, version: str, value: str, problem: str
) -> None:
    assert problem in refusal(api.at(version), f"required={value}")


# resources.


def test_resources_finds_the_providers_with_room_of_their_own(world: ApiClient) -> None:
    expected = {
        # Provider a has room for 12 - 3. Provider b has room for 80, in tens from 10 to 50.
        "VCPU:1": "a",
        "VCPU:9": "a",
        "VCPU:10": "b",
        "VCPU:15": "",
        "VCPU:50": "b",
        "VCPU:60": "",
        "DISK_GB:5": "bc",
        "DISK_GB:6": "c",
        "VCPU:10,DISK_GB:5": "b",
        "VCPU:1,DISK_GB:5": "",
        "VCPU:10,DISK_GB:6": "",
        "VCPU:999,VCPU:9": "a",
        "MEMORY_MB:1": "",
        "VCPU:2147483647": "",
    }
    assert found(world.at("1.4"), "resources", expected) == expected


def test_an_amount_that_no_inventory_can_have_finds_no_provider(world: ApiClient) -> None:
    expected = {"VCPU:2147483648": "", "VCPU:9223372036854775808": "", f"VCPU:{10**40}": ""}
    assert found(world, "resources", expected) == expected


def test_allocations_take_room(world: ApiClient) -> None:
    body = {"resource_class": "VCPU", "total": 10}
    assert world.post(f"/resource_providers/{D}/inventories", body).status == 201
    assert find(world, "resources=VCPU:10") == "bd"
    claim = {
        "allocations": {D: {"resources": {"VCPU": 1}}, B: {"resources": {"VCPU": 50}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
    }
    assert world.put(f"/allocations/{CONSUMER}", claim).status == 204
    assert find(world, "resources=VCPU:10") == "ab"
    assert find(world, "resources=VCPU:50") == "b"
    assert find(world, "resources=VCPU:9") == "ad"


FORM_OF_RESOURCES = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: "
)


@on_sqlite
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", f"{FORM_OF_RESOURCES}empty string."),
        ("VCPU", f"{FORM_OF_RESOURCES}VCPU."),
        ("VCPU:1:2", f"{FORM_OF_RESOURCES}VCPU:1:2."),
        ("VCPU:1,", FORM_OF_RESOURCES),
        ("VCPU:", "Requested resource VCPU expected positive integer amount. Got: ."),
        ("VCPU:a", "Requested resource VCPU expected positive integer amount. Got: a."),
        ("VCPU:1.5", "Requested resource VCPU expected positive integer amount. Got: 1.5."),
        ("VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU:-1", "Requested resource VCPU requires amount >= 1. Got: -1."),
        (
            "CUSTOM_NOWHERE:1",
            "Invalid resource class in resources parameter: No such resource class CUSTOM_NOWHERE.",
        ),
        (
            "vcpu:1",
            "Invalid resource class in resources parameter: No such resource class vcpu.",
        ),
    ],
)
@pytest.mark.parametrize("version", ["1.4", "1.39"])
def test_a_bad_resources_value_is_refused(
    api: ApiClient, version: str, value: str, problem: str
) -> None:
    assert problem in refusal(api.at(version), f"resources={value}")


# Several keys.


def test_every_filter_must_hold_for_the_provider_itself(world: ApiClient) -> None:
    expected = {
        f"name=a&member_of={NORTH}&required=CUSTOM_GOLD&resources=VCPU:1&in_tree={B}": "a",
        f"name=a&member_of={SOUTH}": "",
        f"in_tree={A}&required=CUSTOM_SILVER": "b",
        f"in_tree={A}&resources=DISK_GB:1": "b",
        f"uuid={B}&in_tree={A}": "b",
        f"uuid={C}&in_tree={A}": "",
        f"member_of={NORTH}&required=CUSTOM_SILVER": "c",
        "required=CUSTOM_SILVER&resources=DISK_GB:6": "c",
        f"in_tree={A}&member_of=!{NORTH}&required=!CUSTOM_GOLD": "b",
        "name=c&resources=VCPU:1": "",
    }
    assert {query: find(world, query) for query in expected} == expected


@on_sqlite
def test_the_first_of_several_mistakes_is_reported(api: ApiClient) -> None:
    mistakes = [
        ("unknown=1", "Invalid query string parameters: Additional properties"),
        ("member_of=north", "'member_of' parameter"),
        ("required=", "'required' parameter"),
        ("resources=", "Badly formed resources parameter"),
    ]
    for first, (_, problem) in enumerate(mistakes):
        queries = [query for query, _ in reversed(mistakes[first:])]
        assert problem in refusal(api, *queries)


@pytest.mark.parametrize(
    "query",
    [
        # A tree that does not exist.
        f"in_tree={NOWHERE}&required=CUSTOM_NOWHERE",
        f"in_tree={NOWHERE}&required=!CUSTOM_NOWHERE",
        f"in_tree={NOWHERE}&resources=CUSTOM_NOWHERE:1",
        # A trait that no provider has.
        "required=CUSTOM_UNUSED,!CUSTOM_NOWHERE",
        "required=CUSTOM_UNUSED&resources=CUSTOM_NOWHERE:1",
        # An aggregate without members.
        f"member_of={WEST}&resources=CUSTOM_NOWHERE:1",
        f"member_of={NORTH}&member_of={EAST}&resources=CUSTOM_NOWHERE:1",
    ],
)
@on_sqlite
def test_an_unknown_name_is_not_noticed_behind_a_filter_that_no_provider_passes(
    world: ApiClient, query: str
) -> None:
    assert find(world, query) == ""


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        # The server looks up all required traits together, before it filters providers.
        ("required=CUSTOM_UNUSED,CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        ("required=in:CUSTOM_UNUSED&required=CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        (f"member_of={WEST}&required=CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        # The name and uuid filters hide no mistake.
        ("name=nobody&required=CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        ("name=nobody&required=!CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        ("name=nobody&resources=CUSTOM_NOWHERE:1", "No such resource class CUSTOM_NOWHERE."),
        (f"uuid={NOWHERE}&resources=CUSTOM_NOWHERE:1", "No such resource class CUSTOM_NOWHERE."),
        # Filters that some provider passes hide no mistake, even if no provider passes them all.
        (f"in_tree={D}&required=CUSTOM_NOWHERE", "No such trait(s): CUSTOM_NOWHERE."),
        (
            f"in_tree={D}&required=CUSTOM_GOLD&resources=CUSTOM_NOWHERE:1",
            "No such resource class CUSTOM_NOWHERE.",
        ),
        (
            f"member_of={EAST}&required=CUSTOM_GOLD&resources=CUSTOM_NOWHERE:1",
            "No such resource class CUSTOM_NOWHERE.",
        ),
        ("resources=VCPU:999,CUSTOM_NOWHERE:1", "No such resource class CUSTOM_NOWHERE."),
    ],
)
@on_sqlite
def test_an_unknown_name_is_noticed_in_every_other_case(
    world: ApiClient, query: str, problem: str
) -> None:
    assert problem in refusal(world, query)
