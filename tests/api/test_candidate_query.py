"""The query of `GET /allocation_candidates`: its request groups, and the texts of its errors."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.errors import HttpError
from roost.api.http.microversions import Microversion
from roost.api.http.requests import parse_query_string
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.service.errors import ErrorCode

A, B, C = (f"a66e0000-0000-0000-0000-00000000000{number}" for number in "123")
P = "c0ffee00-0000-0000-0000-000000000001"
VERSIONS = tuple(range(10, 40))
INVALID = "Invalid query string parameters: "
# The native validator words the refusal of a line feed at the end. The Python validator words
# every other refusal.
SCHEMA_WORDS = ("Failed validating", "Additional properties are not allowed", "does not match")


def parse(query: str, minor: int = 39) -> CandidateQuery:
    return parse_candidate_query(parse_query_string(query, 4000), Microversion(1, minor), 256)


def group(query: str, minor: int = 39) -> RequestGroup:
    """The only group of a query."""
    (only,) = parse(query, minor).groups
    return only


def refusal(query: str, minor: int = 39, code: ErrorCode = ErrorCode.UNDEFINED) -> str:
    """The text of a refused query."""
    found = problem(query, minor)
    assert found is not None
    assert (found.status, found.code) == (400, code)
    return found.text


def problem(query: str, minor: int) -> HttpError | None:
    """The error of a query, or `None`."""
    try:
        parse(query, minor)
    except HttpError as error:
        return error
    return None


def fits_schema(query: str, minor: int) -> bool:
    """Whether the schema accepts the keys, the limit and the policy of a query."""
    found = problem(query, minor)
    if found is None:
        return True
    assert found.text.startswith(INVALID)
    assert any(words in found.text for words in SCHEMA_WORDS)
    return False


# The keys.


@pytest.mark.parametrize(
    ("query", "since"),
    [
        ("resources=VCPU:1", 10),
        ("resources=VCPU:1&limit=1", 16),
        ("resources=VCPU:1&required=T1", 17),
        ("resources=VCPU:1&required=!T1", 22),
        (f"resources=VCPU:1&member_of={A}", 21),
        ("resources=VCPU:1&group_policy=none", 25),
        ("resources1=VCPU:1", 25),
        ("resources1=VCPU:1&required1=T1", 25),
        (f"resources1=VCPU:1&member_of1={A}", 25),
        (f"resources=VCPU:1&in_tree={P}", 31),
        (f"resources1=VCPU:1&in_tree1={P}", 31),
        ("resources_A=VCPU:1", 33),
        ("resources=VCPU:1&root_required=T1", 35),
        ("resources1=VCPU:1&same_subtree=1", 36),
        ("resources=VCPU:1&Resources=VCPU:1", 40),
        ("resources=VCPU:1&LIMIT=1", 40),
        ("resources=VCPU:1&limit1=1", 40),
        ("resources=VCPU:1&group_policy1=none", 40),
        ("resources=VCPU:1&root_required1=T1", 40),
        ("resources1=VCPU:1&same_subtree1=1", 40),
        ("resources=VCPU:1&name=a", 40),
        ("resources=VCPU:1&=", 40),
    ],
)
def test_a_key_is_known_from_its_version_on(query: str, since: int) -> None:
    if "!" in query:
        assert group(query, since).traits.forbidden
        assert "Got: !T1" in refusal(query, since - 1)
        return
    understood = {minor: fits_schema(query, minor) for minor in VERSIONS}
    assert understood == {minor: minor >= since for minor in VERSIONS}


@pytest.mark.parametrize(
    ("query", "minor", "words"),
    [
        ("resources=VCPU:1&foo=1", 10, "Additional properties are not allowed ('foo' was unex"),
        ("resources=VCPU:1&foo=1", 24, "Additional properties are not allowed ('foo' was unex"),
        ("resources=VCPU:1&foo=1", 25, "'foo' does not match any of the regexes:"),
        ("resources=VCPU:1&foo=1", 39, "'foo' does not match any of the regexes:"),
        ("", 10, "'resources' is a required property"),
        ("limit=1", 24, "'resources' is a required property"),
        ("resources=VCPU:1&limit=0", 39, "'0' does not match '^[1-9][0-9]*$'"),
        ("resources=VCPU:1&group_policy=foo", 39, "'foo' is not one of ['none', 'isolate']"),
    ],
)
def test_a_query_that_fails_the_schema_is_refused_with_the_reason(
    query: str, minor: int, words: str
) -> None:
    sentence = refusal(query, minor)
    assert sentence.startswith(INVALID)
    assert words in sentence


def test_a_query_may_have_both_separators_and_both_blanks() -> None:
    query = parse(f"resources=VCPU:1;limit=2&required=+T1,%20T2%20;;&member_of=%69n:{A}")
    assert query.limit == 2
    assert query.groups == (
        RequestGroup("", {"VCPU": 1}, TraitFilter(("T1", "T2")), AggregateFilter(((A,),))),
    )


def test_an_encoded_separator_is_part_of_the_value() -> None:
    assert group("resources=VCPU:1&required=T1%3BT2%26").traits.required == ("T1;T2&",)


@pytest.mark.parametrize("query", ["resources=%FF", "%FF=1", "resources=VCPU:1&required=%C3"])
def test_a_query_must_be_utf_8(query: str) -> None:
    assert refusal(query).startswith(INVALID)


def test_a_key_without_value_has_an_empty_value() -> None:
    assert refusal("resources") == refusal("resources=")


# Suffixes.


@pytest.mark.parametrize(
    ("suffix", "numbers", "names"),
    [
        ("1", True, True),
        ("42", True, True),
        ("9" * 64, True, True),
        ("9" * 65, True, False),
        ("0", False, True),
        ("01", False, True),
        ("_A", False, True),
        ("-", False, True),
        ("required", False, True),
        ("x" * 64, False, True),
        ("x" * 65, False, False),
        ("a.b", False, False),
        (" 1", False, False),
        ("1 ", False, False),
        ("1%0A", False, False),
        ("%C3%A4", False, False),
        ("%D9%A1", False, False),
    ],
)
@pytest.mark.parametrize("key", ["resources", "required", "member_of", "in_tree"])
def test_suffixes_are_numbers_and_since_1_33_names(
    key: str, suffix: str, numbers: bool, names: bool
) -> None:
    value = {"resources": "VCPU:1", "required": "T1", "member_of": A, "in_tree": P}[key]
    since = 31 if key == "in_tree" else 25
    query = f"resources=VCPU:1&resources{suffix}=VCPU:1&{key}{suffix}={value}"
    understood = {minor: fits_schema(query, minor) for minor in (24, 25, 30, 31, 32, 33, 39)}
    assert understood == {
        minor: minor >= since and (names if minor >= 33 else numbers) for minor in understood
    }


def test_a_group_has_all_values_of_its_suffix() -> None:
    query = parse(
        f"required_a=T1&resources=VCPU:1&in_tree_A={P}&member_of_a={A}&resources_A=DISK_GB:5"
        "&resources_a=VCPU:2&required=T2&resources1=VCPU:3&resources01=VCPU:4&group_policy=none"
    )
    assert query.groups == (
        RequestGroup("_a", {"VCPU": 2}, TraitFilter(("T1",)), AggregateFilter(((A,),))),
        RequestGroup("", {"VCPU": 1}, TraitFilter(("T2",))),
        RequestGroup("_A", {"DISK_GB": 5}, in_tree=P),
        RequestGroup("1", {"VCPU": 3}),
        RequestGroup("01", {"VCPU": 4}),
    )


def test_a_query_without_suffixes_has_one_group_and_no_other_setting() -> None:
    assert parse("resources=VCPU:1", 10) == CandidateQuery(
        (RequestGroup("", {"VCPU": 1}),), nested=False
    )


def test_candidates_span_nested_providers_since_1_29() -> None:
    spanned = [minor for minor in VERSIONS if parse("resources=VCPU:1", minor).nested]
    assert spanned == list(range(29, 40))


# resources.

FORM_OF_RESOURCES = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: "
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("VCPU:1", {"VCPU": 1}),
        ("VCPU:1,MEMORY_MB:512", {"VCPU": 1, "MEMORY_MB": 512}),
        ("VCPU:1,VCPU:2", {"VCPU": 2}),
        ("VCPU:1&resources=DISK_GB:2", {"DISK_GB": 2}),
        ("VCPU:%2B1", {"VCPU": 1}),
        ("VCPU: 1 ", {"VCPU": 1}),
        ("VCPU:01", {"VCPU": 1}),
        ("VCPU:1_0", {"VCPU": 10}),
        ("VCPU:%D9%A1", {"VCPU": 1}),
        # Unknown names are well formed.
        ("vcpu:1", {"vcpu": 1}),
        (" VCPU :1", {" VCPU ": 1}),
        (":1", {"": 1}),
        # No inventory has so much.
        (f"VCPU:{2**63}", {"VCPU": 2**63}),
        (f"VCPU:{10**4000}", {"VCPU": 10**4000}),
    ],
)
def test_resources_are_amounts_of_classes(value: str, expected: dict[str, int]) -> None:
    for minor in (10, 24, 25, 39):
        assert group(f"resources={value}", minor).resources == expected


@pytest.mark.parametrize("digits", [4_300, 4_301, 50_000])
def test_an_amount_may_have_any_number_of_digits(digits: int) -> None:
    assert group(f"resources=VCPU:{'7' * digits}").resources["VCPU"] > 10**3_900
    assert group(f"resources=VCPU:{'0' * digits}7").resources["VCPU"] == 7
    assert "requires amount >= 1. Got: -7" in refusal(f"resources=VCPU:-{'7' * digits}")
    assert "requires amount >= 1. Got: 0." in refusal(f"resources=VCPU:{'0' * digits}")
    assert "expected positive integer" in refusal(f"resources=VCPU:{'0' * digits}x")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", f"{FORM_OF_RESOURCES}empty string."),
        ("  ", f"{FORM_OF_RESOURCES}empty string."),
        ("VCPU", f"{FORM_OF_RESOURCES}VCPU."),
        ("VCPU:1:2", f"{FORM_OF_RESOURCES}VCPU:1:2."),
        ("VCPU:1,", f"{FORM_OF_RESOURCES}."),
        (",VCPU:1", f"{FORM_OF_RESOURCES}."),
        (" ,VCPU:1", f"{FORM_OF_RESOURCES} ."),
        ("VCPU:1,DISK_GB", f"{FORM_OF_RESOURCES}DISK_GB."),
        ("VCPU:a", "Requested resource VCPU expected positive integer amount. Got: a."),
        ("VCPU:1.5", "Requested resource VCPU expected positive integer amount. Got: 1.5."),
        ("VCPU:", "Requested resource VCPU expected positive integer amount. Got: ."),
        ("VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU:-01", "Requested resource VCPU requires amount >= 1. Got: -1."),
        # The first mistake is reported. Every value is checked, although the last value counts.
        ("VCPU:0,DISK_GB:a", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU&resources=VCPU:1", f"{FORM_OF_RESOURCES}VCPU."),
        ("VCPU:1&resources=VCPU", f"{FORM_OF_RESOURCES}VCPU."),
    ],
)
def test_resources_are_refused_with_the_bad_piece(value: str, sentence: str) -> None:
    for minor in (10, 24, 25, 39):
        assert refusal(f"resources={value}", minor) == sentence
    assert refusal(f"resources_A={value.replace('resources', 'resources_A')}") == sentence


# required.

OLD_FORM = f"{INVALID}Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC."
FORM = f"{INVALID}Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC."
ANY_FORM = (
    f"{INVALID}Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC."
)
ANY = f"{INVALID}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'"


@pytest.mark.parametrize(
    ("since", "value", "expected"),
    [
        (17, "T1", TraitFilter(("T1",))),
        (17, " T1 ,T2, T1", TraitFilter(("T1", "T2", "T1"))),
        (17, "T1,in:T2", TraitFilter(("T1", "in:T2"))),
        (17, " in:T1", TraitFilter(("in:T1",))),
        (22, "!T1", TraitFilter(forbidden=("T1",))),
        (22, "!!T1, !T2,T3", TraitFilter(("T3",), (), ("T1", "T2"))),
        (22, "! T1", TraitFilter(forbidden=(" T1",))),
        (22, "!in:T1,T2", TraitFilter(("T2",), (), ("in:T1",))),
        (39, "in:T1", TraitFilter(any_of=(("T1",),))),
        (39, "in: T1 ,T2", TraitFilter(any_of=(("T1", "T2"),))),
        (
            39,
            "T1&required=in:T2,T3&required=!T4&required=in:T5&required=T6,!T7",
            TraitFilter(("T1", "T6"), (("T2", "T3"), ("T5",)), ("T4", "T7")),
        ),
    ],
)
def test_required_is_read_into_a_trait_filter(
    since: int, value: str, expected: TraitFilter
) -> None:
    assert group(f"resources=VCPU:1&required={value}", since).traits == expected
    assert group(f"resources=VCPU:1&required={value}").traits == expected


@pytest.mark.parametrize("first", ["T9", "", "!", "in:T9", "in:"])
def test_only_the_last_required_is_checked_until_1_38(first: str) -> None:
    for minor in (17, 38):
        found = group(f"required={first}&resources=VCPU:1&required=T1", minor)
        assert found.traits == TraitFilter(("T1",))


@pytest.mark.parametrize(
    ("minors", "value", "sentence"),
    [
        ((17, 21), "", f"{OLD_FORM} Got an empty trait in: "),
        ((17, 21), "T1,", f"{OLD_FORM} Got an empty trait in: T1,"),
        ((17, 21), "!", f"{OLD_FORM} Got an empty trait in: !"),
        ((17, 21), "!T1,", f"{OLD_FORM} Got an empty trait in: !T1,"),
        ((17, 21), "!T1", f"{OLD_FORM} Got: !T1"),
        ((17, 21), "T2,!!T1", f"{OLD_FORM} Got: T2,!!T1"),
        ((22, 38, 39), "", f"{FORM} Got an empty trait in: "),
        ((22, 38, 39), "T1,", f"{FORM} Got an empty trait in: T1,"),
        ((22, 38, 39), "T1, ,T2", f"{FORM} Got an empty trait in: T1, ,T2"),
        ((22, 38, 39), "!", f"{FORM} Got an empty trait in: !"),
        ((22, 38, 39), "T1, !! ", f"{FORM} Got an empty trait in: T1, !! "),
        ((17, 22, 38), "in:T1", f"{ANY} only supported since microversion 1.39. Got: in:T1"),
        ((17, 22, 38), "in:", f"{ANY} only supported since microversion 1.39. Got: in:"),
        ((39,), "in:", f"{ANY_FORM} Got an empty trait in: in:"),
        ((39,), "in:T1,", f"{ANY_FORM} Got an empty trait in: in:T1,"),
        ((39,), "in:T1, ,!T2", f"{ANY_FORM} Got an empty trait in: in:T1, ,!T2"),
        ((39,), "in:T1,!T2", f"{ANY} does not support forbidden traits. Got: in:T1,!T2"),
        ((39,), "in: !", f"{ANY} does not support forbidden traits. Got: in: !"),
    ],
)
def test_required_is_refused_with_its_value(
    minors: tuple[int, ...], value: str, sentence: str
) -> None:
    for minor in minors:
        assert refusal(f"resources=VCPU:1&required={value}", minor) == sentence
        if minor >= 25:
            assert refusal(f"resources1=VCPU:1&required1={value}", minor) == sentence


CONFLICT = "Conflicting required and forbidden traits found in the following traits keys: "


@pytest.mark.parametrize(
    ("since", "query", "listed"),
    [
        (22, "resources=VCPU:1&required=T1,!T1", "required: (T1)"),
        (22, "resources=VCPU:1&required=T2,!T1,T1,T3,!T2", "required: (T1), required: (T2)"),
        (25, "resources1=VCPU:1&required1=T1,!T1", "required1: (T1)"),
        (39, "resources=VCPU:1&required=T1&required=!T1", "required: (T1)"),
        (39, "resources=VCPU:1&required=in:T2,T1&required=!T1,!T2,!T3", "required: (T1, T2)"),
        (
            39,
            "resources=VCPU:1&required=in:T2,T1&required=!T1,!T2"
            "&resources1=VCPU:1&required1=T3,!T3",
            "required1: (T3), required: (T1, T2)",
        ),
    ],
)
def test_a_trait_cannot_be_required_and_forbidden(since: int, query: str, listed: str) -> None:
    for minor in (since, 39):
        assert refusal(query, minor) == f"{CONFLICT}{listed}"


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:1&required=in:T1,T2&required=!T1",
        "resources=VCPU:1&required=T1&resources1=VCPU:1&required1=!T1",
        "resources=VCPU:1&required=T1&root_required=!T1",
    ],
)
def test_traits_that_some_provider_can_satisfy_are_no_conflict(query: str) -> None:
    assert parse(query).groups


# member_of.

MULTIPLE = (
    "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the "
    "valid microversion. Got: "
)
UUIDS = f"{INVALID}Expected 'member_of' parameter to contain valid UUID(s). Got: "


@pytest.mark.parametrize(
    ("since", "value", "expected"),
    [
        (21, A, AggregateFilter(((A,),))),
        (21, f"in:{A}", AggregateFilter(((A,),))),
        (21, f"in:{A},{B}", AggregateFilter(((A, B),))),
        (24, f"{A}&member_of=in:{B},{C}", AggregateFilter(((A,), (B, C)))),
        (32, f"!{A}", AggregateFilter(forbidden=(A,))),
        (32, f"!in:{A}&member_of=!{B}", AggregateFilter(forbidden=(A, B))),
        (32, f"!in:{A},{B}&member_of={A}", AggregateFilter(((A,),), (A, B))),
        # Every spelling names the same aggregate, as in the list of providers.
        (21, A.upper(), AggregateFilter(((A,),))),
        (21, A.replace("-", ""), AggregateFilter(((A,),))),
        (21, f"{{{A}}}", AggregateFilter(((A,),))),
        (32, f"!urn:uuid:{A}", AggregateFilter(forbidden=(A,))),
    ],
)
def test_member_of_is_read_into_an_aggregate_filter(
    since: int, value: str, expected: AggregateFilter
) -> None:
    assert group(f"resources=VCPU:1&member_of={value}", since).aggregates == expected
    assert group(f"resources=VCPU:1&member_of={value}").aggregates == expected


@pytest.mark.parametrize(
    ("minors", "value", "sentence"),
    [
        ((21, 39), "nope", f"{UUIDS}nope"),
        ((21, 39), "", UUIDS),
        ((21, 39), "in:", UUIDS),
        ((21, 39), "!", UUIDS),
        ((21, 39), f"in:{A},", UUIDS),
        ((21, 39), f"in:{A},nope,{B}", f"{UUIDS}nope"),
        ((21, 39), f" {A}", f"{UUIDS} {A}"),
        ((21, 39), f"!!{A}", f"{UUIDS}!{A}"),
        ((21, 39), f"in:!{A}", f"{UUIDS}!{A}"),
        ((21, 39), f"{A},{B}", f"{MULTIPLE}{A},{B}"),
        ((21, 39), f"!{A},{B}", f"{MULTIPLE}!{A},{B}"),
        ((21, 39), "nope,", f"{MULTIPLE}nope,"),
        (
            (21, 23),
            f"{A}&member_of={B}",
            "Multiple member_of parameters are not supported",
        ),
        ((21, 23), "nope&member_of=", "Multiple member_of parameters are not supported"),
        (
            (21, 24, 31),
            f"!{A}",
            "Forbidden member_of parameters are not supported in the specified microversion",
        ),
        (
            (24, 31),
            f"!in:{A},{B}&member_of=nope",
            "Forbidden member_of parameters are not supported in the specified microversion",
        ),
    ],
)
def test_member_of_is_refused_with_the_bad_piece(
    minors: tuple[int, ...], value: str, sentence: str
) -> None:
    for minor in minors:
        assert refusal(f"resources=VCPU:1&member_of={value}", minor) == sentence


def test_the_refusal_of_an_old_version_names_member_of_with_its_suffix() -> None:
    assert refusal(f"resources1=VCPU:1&member_of1=!{A}", 31) == (
        "Forbidden member_of1 parameters are not supported in the specified microversion"
    )
    assert refusal("resources1=VCPU:1&member_of1=!nope", 31) == f"{UUIDS}nope"


# in_tree.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (P, P),
        (f" {P} ", P),
        (P.upper(), P.upper()),
        (P.replace("-", ""), P.replace("-", "")),
        (f"{{{P}}}", f"{{{P}}}"),
        (f"{A}&in_tree={P}", P),
    ],
)
def test_in_tree_keeps_the_spelling_of_its_uuid(value: str, expected: str) -> None:
    for minor in (31, 39):
        assert group(f"resources=VCPU:1&in_tree={value}", minor).in_tree == expected


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("nope", "nope"),
        ("", ""),
        (" nope", " nope"),
        (f"in:{P}", f"in:{P}"),
        (f"nope&in_tree={P}", "nope"),
        (f"{P}&in_tree=nope", "nope"),
    ],
)
def test_in_tree_is_refused_with_its_value(value: str, got: str) -> None:
    sentence = f"{INVALID}Expected 'in_tree' parameter to be a format of uuid. Got: {got}"
    for minor in (31, 39):
        assert refusal(f"resources=VCPU:1&in_tree={value}", minor) == sentence
    assert refusal(f"resources1=VCPU:1&in_tree1={value.replace('tree', 'tree1')}", 39) == sentence


# root_required.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T1", TraitFilter(("T1",))),
        (" T1 ,!T2,!!T3", TraitFilter(("T1",), (), ("T2", "T3"))),
        ("!in:T1", TraitFilter(forbidden=("in:T1",))),
    ],
)
def test_root_required_is_read_into_a_trait_filter(value: str, expected: TraitFilter) -> None:
    for minor in (35, 39):
        query = parse(f"resources=VCPU:1&root_required={value}", minor)
        assert query.root_required == expected
        assert query.groups == (RequestGroup("", {"VCPU": 1}),)


@pytest.mark.parametrize(
    ("value", "sentence", "code"),
    [
        ("", f"{FORM} Got an empty trait in: ", ErrorCode.UNDEFINED),
        ("T1,", f"{FORM} Got an empty trait in: T1,", ErrorCode.UNDEFINED),
        (
            "in:T1",
            f"{ANY} only supported since microversion 1.39. Got: in:T1",
            ErrorCode.UNDEFINED,
        ),
        (
            "T1&root_required=",
            "Query parameter 'root_required' may be specified only once.",
            ErrorCode.QUERY_DUPLICATE_KEY,
        ),
        (
            "T1,!T1",
            "Conflicting required and forbidden traits found in root_required: T1",
            ErrorCode.QUERY_BAD_VALUE,
        ),
        (
            "T2,!T1,T3,T1,!T2,T1",
            "Conflicting required and forbidden traits found in root_required: T1, T2",
            ErrorCode.QUERY_BAD_VALUE,
        ),
    ],
)
def test_root_required_is_refused_with_the_reason(
    value: str, sentence: str, code: ErrorCode
) -> None:
    for minor in (35, 38, 39):
        assert refusal(f"resources=VCPU:1&root_required={value}", minor, code) == sentence


# limit and group_policy.


@pytest.mark.parametrize("value", ["1", "10", "9" * 30])
def test_limit_is_a_number(value: str) -> None:
    for minor in (16, 24, 25, 39):
        assert parse(f"resources=VCPU:1&limit={value}", minor).limit == int(value)


@pytest.mark.parametrize("digits", [4_300, 4_301, 50_000])
def test_a_limit_may_have_any_number_of_digits(digits: int) -> None:
    limit = parse(f"resources=VCPU:1&limit={'7' * digits}").limit
    assert limit is not None
    assert limit > 10**3_900


@pytest.mark.parametrize(
    "value", ["0", "-1", "01", "%2B1", " 1", "1 ", "1.0", "1_0", "", "x", "1%0A", "%D9%A1"]
)
def test_a_limit_that_is_no_plain_number_is_refused(value: str) -> None:
    for minor in (16, 24, 25, 39):
        assert not fits_schema(f"resources=VCPU:1&limit={value}", minor)
        assert not fits_schema(f"resources=VCPU:1&limit=1&limit={value}", minor)
        assert not fits_schema(f"resources=VCPU:1&limit={value}&limit=1", minor)


@pytest.mark.parametrize("value", ["", "foo", "None", "ISOLATE", "none "])
def test_an_unknown_group_policy_is_refused(value: str) -> None:
    for minor in (25, 39):
        assert not fits_schema(f"resources=VCPU:1&group_policy={value}", minor)
        for query in (f"{value}&group_policy=none", f"none&group_policy={value}"):
            assert not fits_schema(f"resources=VCPU:1&group_policy={query}", minor)


def test_the_first_limit_and_policy_count() -> None:
    query = parse("resources=VCPU:1&limit=3&group_policy=isolate&limit=1&limit=2&group_policy=none")
    assert (query.limit, query.isolate) == (3, True)
    query = parse("resources=VCPU:1&group_policy=none&group_policy=isolate")
    assert (query.limit, query.isolate) == (None, False)


POLICY_NEEDED = (
    'The "group_policy" parameter is required when specifying more than one "resources{N}" '
    "parameter."
)


@pytest.mark.parametrize(
    ("since", "query"),
    [
        (25, "resources1=VCPU:1&resources2=VCPU:1"),
        (25, "resources=VCPU:1&resources1=VCPU:1&resources2=VCPU:1&resources3=VCPU:1"),
        (36, "resources1=VCPU:1&required2=T1&same_subtree=1,2"),
        (36, "resources=VCPU:1&required1=T1&required2=T1&same_subtree=1,2"),
    ],
)
def test_two_suffixed_groups_need_a_policy(since: int, query: str) -> None:
    for minor in (since, 39):
        assert refusal(query, minor) == POLICY_NEEDED
        assert not parse(f"{query}&group_policy=none", minor).isolate
        assert parse(f"{query}&group_policy=isolate", minor).isolate


@pytest.mark.parametrize("query", ["resources=VCPU:1", "resources=VCPU:1&resources1=VCPU:1"])
def test_one_suffixed_group_needs_no_policy_and_may_have_one(query: str) -> None:
    for minor in (25, 39):
        assert not parse(query, minor).isolate
        assert parse(f"{query}&group_policy=isolate", minor).isolate


# same_subtree and groups without resources.


def test_each_same_subtree_is_a_set_of_suffixes() -> None:
    query = (
        "resources=VCPU:1&resources1=VCPU:1&required_A=T1&group_policy=none"
        "&same_subtree= 1 ,_A,1&same_subtree=_A"
    )
    for minor in (36, 39):
        found = parse(query, minor)
        assert found.same_subtrees == (frozenset({"1", "_A"}), frozenset({"_A"}))
        assert found.groups[2] == RequestGroup("_A", {}, TraitFilter(("T1",)))


@pytest.mark.parametrize("value", ["", " ", "1,", ",1", "1, ,1", "1&same_subtree="])
def test_the_unsuffixed_group_cannot_be_in_same_subtree(value: str) -> None:
    for minor in (36, 39):
        query = f"resources=VCPU:1&resources1=VCPU:1&same_subtree={value}"
        assert refusal(query, minor, ErrorCode.QUERY_BAD_VALUE) == (
            "Empty string (unsuffixed group) can not be specified in `same_subtree`"
        )


@pytest.mark.parametrize(
    ("query", "missing", "present"),
    [
        ("resources=VCPU:1&resources1=VCPU:1&same_subtree=2", "['2']", "['', '1']"),
        ("resources_A=VCPU:1&same_subtree=A", "['A']", "['_A']"),
        ("resources1=VCPU:1&same_subtree=4,1&same_subtree=01", "['01', '4']", "['1']"),
    ],
)
def test_an_unknown_suffix_in_same_subtree_is_refused(
    query: str, missing: str, present: str
) -> None:
    for minor in (36, 39):
        assert refusal(query, minor, ErrorCode.QUERY_BAD_VALUE) == (
            f"Real suffixes should be specified in `same_subtree`: {missing} not found in "
            f"{present}."
        )


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("resources=VCPU:1&required1=T1", "['1']"),
        ("resources1=VCPU:1&required=T1", "['']"),
        (f"resources1=VCPU:1&member_of={A}&same_subtree=1", "['']"),
        (f"resources=VCPU:1&required1=!T1&in_tree2={P}&member_of3={A}", "['1', '2', '3']"),
        ("resources=VCPU:1&required2=T1&required1=T1&same_subtree=2", "['1']"),
    ],
)
def test_a_group_without_resources_outside_same_subtree_is_refused(query: str, listed: str) -> None:
    for minor in (36, 39):
        assert refusal(query, minor, ErrorCode.QUERY_BAD_VALUE) == (
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {listed}."
        )


@pytest.mark.parametrize(
    "query", ["", "limit=1", "group_policy=none", "required=T1", "required1=T1&same_subtree=1"]
)
def test_a_query_without_resources_is_refused(query: str) -> None:
    for minor in (36, 39):
        assert refusal(query, minor, ErrorCode.QUERY_MISSING_VALUE) == (
            "There must be at least one resources or resources[$S] parameter."
        )


ORPHANED_TRAITS = (
    "All traits parameters must be associated with resources.  Found the following orphaned "
    "traits keys: "
)
ORPHANED_AGGREGATES = (
    "All member_of parameters must be associated with resources. Found the following orphaned "
    "member_of keys: "
)


@pytest.mark.parametrize(
    ("since", "query", "sentence"),
    [
        (25, "required1=T1&required=T1&resources2=VCPU:1", f"{ORPHANED_TRAITS}required1, required"),
        (25, f"member_of1={A}&required2=T1&required1=T1", f"{ORPHANED_TRAITS}required1, required2"),
        (25, f"required2=T1,!T2&member_of3={A}", f"{ORPHANED_TRAITS}required2"),
        (25, f"required1=!T1&member_of1={A}", f"{ORPHANED_AGGREGATES}member_of1"),
        (
            25,
            f"resources1=VCPU:1&member_of3={A}&member_of={A}&required2=!T1",
            f"{ORPHANED_AGGREGATES}member_of3, member_of",
        ),
        (32, f"resources=VCPU:1&member_of1=!{A}", f"{ORPHANED_AGGREGATES}member_of1"),
        (25, "resources=VCPU:1&required1=!T1", "All request groups must specify resources."),
        (31, f"resources=VCPU:1&in_tree1={P}", "All request groups must specify resources."),
        (
            25,
            "",
            "At least one request group (`resources` or `resources{$S}`) is required.",
        ),
        (
            25,
            "limit=1&group_policy=none",
            "At least one request group (`resources` or `resources{$S}`) is required.",
        ),
    ],
)
def test_a_group_without_resources_is_refused_until_1_35(
    since: int, query: str, sentence: str
) -> None:
    for minor in (since, 35):
        assert refusal(query, minor) == sentence


# The order of the checks.

UNKNOWN = ("foo=1", "does not match any of the regexes")
BAD_LIMIT = ("limit=0", "'0' does not match")
REPEATED_ROOT = ("root_required=T1&root_required=,", "only once")
BAD_ROOT = ("root_required=,", "Got an empty trait in: ,")
CONFLICTING_ROOT = ("root_required=T1,!T1", "found in root_required")
EMPTY_SUFFIX = ("same_subtree=", "Empty string")
BAD_VALUE = ("in_tree=nope", "'in_tree' parameter")
BARE_GROUP = ("required8=T1", "bad group(s) - ['8']")
UNKNOWN_SUFFIX = ("same_subtree=9", "['9'] not found in")
CONFLICTING = ("required=T1,!T1", "the following traits keys: required: (T1)")
NO_POLICY = ("resources1=VCPU:1&resources2=VCPU:1", "group_policy")


@pytest.mark.parametrize(
    "mistakes",
    [
        [UNKNOWN, REPEATED_ROOT, EMPTY_SUFFIX, BAD_VALUE, BARE_GROUP, CONFLICTING, NO_POLICY],
        [BAD_LIMIT, BAD_ROOT, EMPTY_SUFFIX, BAD_VALUE, UNKNOWN_SUFFIX, CONFLICTING, NO_POLICY],
        [CONFLICTING_ROOT, EMPTY_SUFFIX, BAD_VALUE, BARE_GROUP, UNKNOWN_SUFFIX, NO_POLICY],
        [BARE_GROUP, UNKNOWN_SUFFIX, CONFLICTING, NO_POLICY],
    ],
)
def test_the_first_of_several_mistakes_is_reported(mistakes: list[tuple[str, str]]) -> None:
    for first, (_, words) in enumerate(mistakes):
        queries = [query for query, _ in mistakes[first:]]
        for ordered in (queries, queries[::-1]):
            query = "&".join(["resources=VCPU:1", *ordered])
            found = problem(query, 39)
            assert found is not None
            assert words in found.text


def test_missing_resources_are_reported_before_mistakes_of_groups() -> None:
    query = "required1=T1&required2=T1,!T1&same_subtree=9"
    assert "at least one resources" in refusal(query, code=ErrorCode.QUERY_MISSING_VALUE)
    assert "at least one resources" in refusal(
        "required1=T1&same_subtree=1,9", code=ErrorCode.QUERY_MISSING_VALUE
    )


def test_missing_resources_of_a_group_are_reported_first_until_1_35() -> None:
    query = "required1=T1,!T1&resources2=VCPU:1&resources3=VCPU:1"
    assert refusal(query, 35) == f"{ORPHANED_TRAITS}required1"
    assert refusal(f"{query}&resources1=VCPU:1", 35) == f"{CONFLICT}required1: (T1)"


@pytest.mark.parametrize(
    ("query", "minor", "words"),
    [
        ("resources=bad&required=&member_of=nope&in_tree=nope", 39, "Got: bad."),
        ("required=&member_of=nope&in_tree=nope&resources=bad", 39, "Got an empty trait"),
        ("member_of=nope&in_tree=nope&resources=bad&required=", 39, "'member_of' parameter"),
        ("in_tree=nope&resources=bad&required=&member_of=nope", 39, "'in_tree' parameter"),
        ("required_A=&resources=bad", 39, "Got an empty trait"),
        # All values of required and of member_of are read at the place of the first value.
        ("required=T1&resources=bad&required=", 39, "Got an empty trait"),
        ("required=T1&resources=bad&required=", 38, "Got an empty trait"),
        ("required=&resources=bad&required=T1", 38, "Got: bad."),
        (f"member_of={A}&resources=bad&member_of=nope", 39, "Got: nope"),
        (f"member_of={A}&resources=bad&member_of={A}", 23, "Multiple member_of"),
        (f"resources=bad&member_of={A}&member_of={A}", 23, "Got: bad."),
        # Each value of resources and in_tree is read at its own place.
        ("resources=VCPU:1&required=&resources=bad", 39, "Got an empty trait"),
        (f"in_tree={P}&resources=bad&in_tree=nope", 39, "Got: bad."),
    ],
)
def test_values_are_read_in_their_order(query: str, minor: int, words: str) -> None:
    assert words in refusal(query, minor)


# Arbitrary queries.


@pytest.mark.parametrize(
    ("key", "value"), [("required", "T1"), ("member_of", A), ("same_subtree", "1")]
)
def test_a_key_may_be_repeated_200_times(key: str, value: str) -> None:
    query = "resources=VCPU:1&resources1=VCPU:1"
    assert parse(query + f"&{key}={value}" * 200).groups
    text = refusal(query + f"&{key}={value}" * 201)
    assert text.startswith(f"{INVALID}'{key}' is given 201 times")
    assert "200 are allowed" in text


KEYS = st.one_of(
    st.builds(
        str.__add__,
        st.sampled_from(["resources", "required", "member_of", "in_tree"]),
        st.sampled_from(["", "1", "2", "_A"]),
    ),
    st.sampled_from(["limit", "group_policy", "root_required", "same_subtree"]),
)
VALUES = st.one_of(
    st.lists(
        st.sampled_from(["VCPU", ":", "1", "-", "!", "in:", ",", "T1", A, "_A", " ", "none"]),
        max_size=6,
    ).map("".join),
    st.sampled_from(["VCPU:1", "T1", A, "1", "none", "_A"]),
    st.text(max_size=8),
)


@given(
    pairs=st.lists(st.tuples(st.one_of(KEYS, st.text(max_size=3)), VALUES), max_size=8),
    minor=st.sampled_from(VERSIONS),
)
def test_an_arbitrary_query_is_read_or_refused(pairs: list[tuple[str, str]], minor: int) -> None:
    text = urlencode(pairs)
    found = problem(text, minor)
    if found is not None:
        assert found.status == 400
        assert found.text
        return
    query = parse(text, minor)
    suffixes = [asked.suffix for asked in query.groups]
    assert len(set(suffixes)) == len(suffixes)
    assert any(asked.resources for asked in query.groups)
    assert all(subtree <= set(suffixes) for subtree in query.same_subtrees)
    assert all(amount >= 1 for asked in query.groups for amount in asked.resources.values())
