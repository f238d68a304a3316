"""The notation of worlds, requests and answers, and the texts of its failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.api_client import Answer, ApiClient
from support.worlds.candidate_notation import (
    CandidateNote,
    differences,
    parse_candidates,
    read_candidates,
)
from support.worlds.case_tables import Case, rows
from support.worlds.notation import (
    InventoryNote,
    ProviderNote,
    aggregate_uuid,
    parse_world,
    provider_uuid,
    write_query,
)
from support.worlds.world import World, Worlds


def test_a_world_is_read_into_providers() -> None:
    text = "R(VCPU 8, agg A B, T1), *N<R(MEM 9 reserved 1 ratio 1.5 max 4 used 1+2), M<N()"
    assert parse_world(text) == (
        ProviderNote("R", None, {"VCPU": InventoryNote({"total": 8})}, ("A", "B"), ("CUSTOM_T1",)),
        ProviderNote(
            "N",
            "R",
            {
                "MEMORY_MB": InventoryNote(
                    {"total": 9, "reserved": 1, "allocation_ratio": 1.5, "max_unit": 4}, (1, 2)
                )
            },
            (),
            ("MISC_SHARES_VIA_AGGREGATE",),
        ),
        ProviderNote("M", "N"),
    )


@pytest.mark.parametrize("text", ["R", "R(VCPU 8", "R(VCPU eight)", "R(VCPU 8 max)", "R() N!"])
def test_a_malformed_world_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_world(text)


def test_a_request_is_written_with_full_names() -> None:
    assert write_query("DISK:1,GOLD:2&required=in:T1,T2&member_of=!in:{A},{Z}&in_tree_X=<N>") == (
        "resources=DISK_GB%3A1%2CCUSTOM_GOLD%3A2&required=in%3ACUSTOM_T1%2CCUSTOM_T2"
        f"&member_of=%21in%3A{aggregate_uuid('A')}%2C{aggregate_uuid('Z')}"
        f"&in_tree_X={provider_uuid('N')}"
    )
    assert write_query("resources_T1=VCPU:1&same_subtree=_T1") == (
        "resources_T1=VCPU%3A1&same_subtree=_T1"
    )


@pytest.mark.parametrize("text", ["", "N[VCPU:1", "N R", "N;", "{''=N} x"])
def test_a_malformed_answer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a candidate"):
        parse_candidates(text)


def test_a_candidate_may_be_written_in_part() -> None:
    candidate = CandidateNote({"R": {"MEM": 1}, "N": {"VCPU": 1}}, {"": ["R", "N"], "_1": ["N"]})
    assert str(candidate) == "N[VCPU:1] R[MEM:1] {''=N+R _1=N}"
    for text in (
        "R[MEM:1] N[VCPU:1] {_1=N ''=R+N}",
        "R[MEM:1] N[VCPU:1]",
        "R+N",
        "{''=R+N _1=N}",
    ):
        assert differences(parse_candidates(text), [candidate]) == ([], [])
    for text in ("R[MEM:2] N[VCPU:1]", "R", "{''=R _1=N}", "R[MEM:1] N[VCPU:1] {''=R+N}"):
        missing, surplus = differences(parse_candidates(text), [candidate])
        assert (len(missing), surplus) == (1, [str(candidate)])


def test_candidates_are_counted() -> None:
    candidate = CandidateNote({"N": {"VCPU": 1}})
    assert differences(["N"], [candidate, candidate]) == ([], ["N[VCPU:1]"])
    assert differences(["N", "N"], [candidate]) == (["N"], [])


def test_both_shapes_of_a_response_are_read() -> None:
    taken = {"resources": {"MEMORY_MB": 2}}
    old = {"allocations": [{"resource_provider": {"uuid": "u"}, **taken}]}
    new = {"allocations": {"u": taken}, "mappings": {"": ["u"]}}
    found = read_candidates({"allocation_requests": [old, new]}, {"u": "N"})
    assert [str(candidate) for candidate in found] == ["N[MEM:2]", "N[MEM:2] {''=N}"]


def test_a_table_is_read_into_cases() -> None:
    text = """
        World: H(VCPU 4),
            N<H()

        VCPU:1          | H     | H, N
        ... limit=1     | H
        resources_1=VCPU:1
            &resources_2=VCPU:1
            | H[VCPU:2];
            N
        """
    world = "H(VCPU 4), N<H()"
    assert [Case(*row) for row in rows(text)] == [
        Case(world, "VCPU:1", "H", "H, N"),
        Case(world, "VCPU:1&limit=1", "H"),
        Case(world, "resources_1=VCPU:1&resources_2=VCPU:1", "H[VCPU:2]; N"),
    ]


def test_a_world_is_made_as_it_is_written(worlds: Worlds) -> None:
    world = worlds("R(VCPU 2 used 1+3, MEM 8 reserved 1 ratio 1.5 step 2, agg A), *N<R(T1)")
    root, child = (f"/resource_providers/{provider_uuid(name)}" for name in "RN")
    inventories = world.api.get(f"{root}/inventories").json["inventories"]
    assert inventories["VCPU"]["total"] == 2
    assert inventories["MEMORY_MB"] == {
        "total": 8,
        "reserved": 1,
        "min_unit": 1,
        "max_unit": 2**31 - 1,
        "step_size": 2,
        "allocation_ratio": 1.5,
    }
    assert world.api.get(f"{root}/usages").json["usages"] == {"VCPU": 4, "MEMORY_MB": 0}
    assert world.api.get(f"{root}/aggregates").json["aggregates"] == [aggregate_uuid("A")]
    assert world.api.get(child).json["parent_provider_uuid"] == provider_uuid("R")
    traits = world.api.get(f"{child}/traits").json["traits"]
    assert sorted(traits) == ["CUSTOM_T1", "MISC_SHARES_VIA_AGGREGATE"]


# A world whose service always gives the same answer.


def stubborn(text: str, *entries: Mapping[str, Any], summaries: str) -> World:
    body = {
        "allocation_requests": entries,
        "provider_summaries": {provider_uuid(name): {} for name in summaries},
    }
    answer = Answer(200, {}, json.dumps(body).encode())
    return World(ApiClient(lambda method, path, data, headers: answer), text)


def entry(name: str, amount: int, **mappings: str) -> dict[str, Any]:
    return {
        "allocations": {provider_uuid(name): {"resources": {"VCPU": amount}}},
        "mappings": {
            suffix.strip("u"): [provider_uuid(name) for name in names]
            for suffix, names in mappings.items()
        },
    }


def test_a_failure_names_missing_and_unexpected_candidates() -> None:
    world = stubborn("R(VCPU 4), N<R(VCPU 4)", entry("N", 1, u="N"), summaries="NR")
    world.expect("VCPU:1", "N[VCPU:1] {''=N}", "N, R")
    with pytest.raises(AssertionError) as caught:
        world.expect("VCPU:1", "R[VCPU:1]; R", "N")
    assert str(caught.value).splitlines() == [
        "",
        "world:      R(VCPU 4), N<R(VCPU 4)",
        "request:    VCPU:1 at 1.39",
        "expected:   R[VCPU:1]; R",
        "answered:   N[VCPU:1] {''=N}",
        "missing:    R",
        "missing:    R[VCPU:1]",
        "unexpected: N[VCPU:1] {''=N}",
        "summaries:  N, R instead of N",
    ]


@pytest.mark.parametrize(
    ("wrong", "summaries", "complaint"),
    [
        (entry("N", 2, u="N"), "NR", "amounts that"),
        (entry("N", 1, _1="N"), "NR", "mappings of other groups"),
        (entry("N", 1, u="NN"), "NR", "a provider twice in one mapping"),
        (entry("N", 1, u="R"), "NR", "mappings that do not fit the allocations"),
        (entry("N", 1, u="N"), "N", "summaries of N instead of N, R"),
    ],
)
def test_an_answer_that_contradicts_its_request_is_wrong_whatever_is_expected(
    wrong: dict[str, Any], summaries: str, complaint: str
) -> None:
    world = stubborn("R(VCPU 4), N<R(VCPU 4)", wrong, summaries=summaries)
    with pytest.raises(AssertionError, match=complaint):
        world.ask("VCPU:1")


def test_a_suffixed_group_has_one_provider() -> None:
    world = stubborn("R(VCPU 4), N<R(VCPU 4)", entry("N", 1, _1="NR"), summaries="NR")
    with pytest.raises(AssertionError, match="a suffixed group with several providers"):
        world.ask("resources_1=VCPU:1")


def test_a_refusal_must_have_the_expected_text() -> None:
    body = {"errors": [{"detail": "No.\n\n No such trait(s): NOPE.  "}]}
    answer = Answer(400, {}, json.dumps(body).encode())
    world = World(ApiClient(lambda method, path, data, headers: answer), "")
    world.expect("VCPU:1&required=NOPE", "400 No such trait(s): NOPE.")
    with pytest.raises(AssertionError, match=r"expected:   400 Something else"):
        world.expect("VCPU:1", "400 Something else")
    with pytest.raises(AssertionError, match=r"answered:   400 "):
        world.expect("VCPU:1", "none")
