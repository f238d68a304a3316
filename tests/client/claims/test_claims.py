"""Claims: the requests of each method, and the errors for bad arguments."""

from __future__ import annotations

from typing import Any

import pytest

from roost.client.claims import Claims
from roost.client.claims.allocation_writer import Retries
from roost.client.errors import (
    AllocationMoveFailed,
    AllocationUpdateFailed,
    AnswerLost,
    ResourceProviderAggregateRetrievalFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    UnreadableAnswer,
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementResponse
from support.stubs.scripted_claims import (
    ALICE,
    BOB,
    DELETE_A,
    DONE,
    GET_A,
    GET_B,
    HOST,
    NOTHING,
    OTHER,
    OWNER,
    POST,
    PUT_A,
    REQUEST,
    TREE,
    UNREACHABLE,
    VCPU_1,
    VCPU_2,
    VERSIONS,
    Call,
    Reply,
    Run,
    Step,
    add,
    answer,
    claim,
    delete,
    delete_by_force,
    holds,
    lost,
    move,
    provider,
    put,
    refused,
    remove_tree,
)

# Accepted requests


def test_a_first_claim_puts_the_request_with_project_user_and_no_generation() -> None:
    run = Run(claim, (GET_A, NOTHING), (PUT_A, DONE))
    assert run.result is True
    assert run.versions == ["1.28", "1.36"]
    assert run.body == {**REQUEST, **OWNER, "consumer_generation": None}
    assert REQUEST.keys() == {"allocations", "mappings"}, "the caller's request is not changed"


def test_a_claim_before_1_28_has_no_generation() -> None:
    def old_claim(claims: Claims) -> bool:
        request = {"allocations": {HOST: VCPU_1}}
        return claims.claim_resources(ALICE, request, "project", "user", version="1.27")

    run = Run(old_claim, (GET_A, NOTHING), (PUT_A, DONE))
    assert run.versions == ["1.28", "1.27"]
    assert run.body == {"allocations": {HOST: VCPU_1}, **OWNER}


def test_claim_resources_keeps_present_allocations_and_adds_only_new_providers() -> None:
    def claim_on_both(claims: Claims) -> bool:
        request = {"allocations": {HOST.upper(): VCPU_1, OTHER: VCPU_1}, "mappings": {"": [OTHER]}}
        return claims.claim_resources(ALICE, request, "project", "user", version="1.36")

    held = holds({HOST: {"generation": 7, **VCPU_2}}, generation=5)
    run = Run(claim_on_both, (GET_A, held), (PUT_A, DONE))
    assert run.body == {
        "allocations": {HOST: VCPU_2, OTHER: VCPU_1},
        "mappings": {"": [OTHER]},
        **OWNER,
        "consumer_generation": 5,
    }


@pytest.mark.parametrize("where", ["argument", "request"])
def test_the_callers_generation_replaces_the_one_that_was_read(where: str) -> None:
    def claim_with_generation(claims: Claims) -> bool:
        if where == "argument":
            return claims.claim_resources(
                ALICE, REQUEST, "project", "user", version="1.36", consumer_generation=4
            )
        request = {**REQUEST, "consumer_generation": 4}
        return claims.claim_resources(ALICE, request, "project", "user", version="1.36")

    run = Run(claim_with_generation, (GET_A, holds({OTHER: VCPU_1}, 5)), (PUT_A, DONE))
    assert run.body["consumer_generation"] == 4


def test_a_claim_keeps_the_consumer_type_of_its_request() -> None:
    def typed_claim(claims: Claims) -> bool:
        request = {**REQUEST, "consumer_type": "INSTANCE"}
        return claims.claim_resources(ALICE, request, "project", "user", version="1.38")

    run = Run(typed_claim, (GET_A, holds({OTHER: VCPU_1})), (PUT_A, DONE))
    assert run.versions[-1] == "1.38"
    assert run.body["consumer_type"] == "INSTANCE"
    assert run.body["allocations"].keys() == {HOST, OTHER}


def test_put_sends_the_body_unchanged() -> None:
    run = Run(put, (PUT_A, DONE))
    assert (run.result, run.versions) == (True, ["1.28"])
    assert run.body == {"allocations": {HOST: VCPU_1}, **OWNER, "consumer_generation": 1}


def test_a_move_gives_the_allocations_of_the_source_to_the_target() -> None:
    run = Run(move, (GET_A, holds({HOST: VCPU_1}, 3)), (GET_B, NOTHING), (POST, DONE))
    assert (run.result, run.versions) == (True, ["1.28", "1.28", "1.28"])
    assert run.body == {
        ALICE: {"allocations": {}, **OWNER, "consumer_generation": 3},
        BOB: {"allocations": {HOST: VCPU_1}, **OWNER, "consumer_generation": None},
    }


def test_a_move_replaces_the_allocations_of_the_target() -> None:
    read = [(GET_A, holds({HOST: VCPU_1})), (GET_B, holds({OTHER: VCPU_2}, 8))]
    run = Run(move, *read, (POST, DONE))
    assert run.body[BOB] == {"allocations": {HOST: VCPU_1}, **OWNER, "consumer_generation": 8}


@pytest.mark.parametrize(("target", "moved"), [(holds({HOST: VCPU_1}), True), (NOTHING, False)])
def test_a_move_from_an_empty_source_is_true_if_the_target_has_allocations(
    target: PlacementResponse, moved: bool
) -> None:
    run = Run(move, (GET_A, NOTHING), (GET_B, target))
    assert run.result is moved


@pytest.mark.parametrize(
    ("type_", "version", "sent"), [("INSTANCE", "1.38", "INSTANCE"), ("unknown", "1.37", None)]
)
def test_a_move_from_1_38_on_moves_the_consumer_type(
    type_: str, version: str, sent: str | None
) -> None:
    def typed_move(claims: Claims) -> bool:
        return claims.move_allocations(ALICE, BOB, version="1.38")

    source = holds({HOST: VCPU_1}, consumer_type=type_)
    run = Run(typed_move, (GET_A, source), (GET_B, NOTHING), (POST, DONE))
    assert run.versions == ["1.38", "1.38", version]
    assert [run.body[consumer].get("consumer_type") for consumer in (ALICE, BOB)] == [sent, sent]


def test_a_swap_is_one_request() -> None:
    read = [(GET_A, holds({HOST: VCPU_1}, 3)), (GET_B, holds({OTHER: VCPU_2}, 8))]
    run = Run(lambda claims: claims.swap_allocations(ALICE, BOB), *read, (POST, DONE))
    assert run.result is True
    assert run.body == {
        ALICE: {"allocations": {OTHER: VCPU_2}, **OWNER, "consumer_generation": 3},
        BOB: {"allocations": {HOST: VCPU_1}, **OWNER, "consumer_generation": 8},
    }


def test_a_swap_with_a_consumer_without_allocations_is_an_error() -> None:
    read = [(GET_A, holds({HOST: VCPU_1})), (GET_B, NOTHING)]
    run = Run(lambda claims: claims.swap_allocations(ALICE, BOB), *read)
    assert isinstance(run.error, AllocationMoveFailed)
    assert BOB in str(run.error)


def test_a_deletion_puts_empty_allocations_at_the_generation_read() -> None:
    run = Run(delete, (GET_A, holds({HOST: VCPU_1}, 6)), (PUT_A, DONE))
    assert (run.result, run.versions) == (True, ["1.28", "1.28"])
    assert run.body == {"allocations": {}, **OWNER, "consumer_generation": 6}


def test_a_deletion_for_a_consumer_without_allocations_is_false() -> None:
    assert Run(delete, (GET_A, NOTHING)).result is False
    assert Run(delete_by_force, (DELETE_A, refused(404))).result is False


def test_a_forced_deletion_reads_nothing() -> None:
    run = Run(delete_by_force, (DELETE_A, DONE))
    assert (run.result, run.versions) == (True, [None])


def test_resources_are_added_to_present_allocations() -> None:
    def add_on_two(claims: Claims) -> bool:
        return claims.add_resources(ALICE, {HOST: {"VCPU": 2, "DISK_GB": 5}, OTHER: {"VCPU": 1}})

    run = Run(add_on_two, (GET_A, holds({HOST: VCPU_1}, 3)), (PUT_A, DONE))
    assert (run.result, run.versions) == (True, ["1.28", "1.28"])
    assert run.body == {
        "allocations": {HOST: {"resources": {"VCPU": 3, "DISK_GB": 5}}, OTHER: VCPU_1},
        **OWNER,
        "consumer_generation": 3,
    }


def test_resources_are_removed_with_providers_that_become_empty() -> None:
    def remove(claims: Claims) -> bool:
        return claims.remove_resources(ALICE, {HOST: {"VCPU": 1, "DISK_GB": 5}, OTHER: {"VCPU": 2}})

    held = {HOST: {"resources": {"VCPU": 3, "DISK_GB": 5}}, OTHER: VCPU_2}
    run = Run(remove, (GET_A, holds(held)), (PUT_A, DONE))
    assert run.result is True
    assert run.body["allocations"] == {HOST: VCPU_2}


@pytest.mark.parametrize(
    "resources", [{HOST: {"VCPU": 2}}, {HOST: {"DISK_GB": 1}}, {OTHER: {"VCPU": 1}}]
)
def test_more_resources_than_the_consumer_has_cannot_be_removed(
    resources: dict[str, dict[str, int]],
) -> None:
    read = (GET_A, holds({HOST: VCPU_1}))
    run = Run(lambda claims: claims.remove_resources(ALICE, resources), read)
    assert isinstance(run.error, AllocationUpdateFailed)


def test_resources_cannot_be_added_to_a_consumer_without_allocations() -> None:
    run = Run(add, (GET_A, NOTHING))
    assert isinstance(run.error, AllocationUpdateFailed)
    assert ALICE in str(run.error)


def test_allocations_in_one_tree_are_removed_and_the_rest_stays() -> None:
    third = "c0000000-0000-4000-8000-00000000000c"
    held = holds({HOST: VCPU_1, OTHER: VCPU_2, third: VCPU_1}, 3)
    tree = answer({"resource_providers": [provider(HOST), provider(third)]})
    run = Run(remove_tree, (GET_A, held), (TREE, tree), (PUT_A, DONE))
    assert (run.result, run.versions) == (True, ["1.28", "1.14", "1.28"])
    assert run.body == {"allocations": {OTHER: VCPU_2}, **OWNER, "consumer_generation": 3}


@pytest.mark.parametrize("held", [NOTHING, holds({OTHER: VCPU_1})])
def test_a_tree_without_allocations_of_the_consumer_needs_no_write(held: PlacementResponse) -> None:
    tree = answer({"resource_providers": [provider(HOST)]})
    assert Run(remove_tree, (GET_A, held), (TREE, tree)).result is True


def test_a_tree_that_cannot_be_read_is_an_error() -> None:
    run = Run(remove_tree, (GET_A, holds({HOST: VCPU_1})), (TREE, refused(500)))
    assert isinstance(run.error, ResourceProviderRetrievalFailed)


# Candidates


def test_the_query_of_candidates_is_sorted_and_has_a_limit() -> None:
    def ask(claims: Claims) -> object:
        query = {"resources": "VCPU:1", "group_policy": "none", "member_of": ["in:a,b", "!c"]}
        return claims.allocation_candidates(query)

    path = (
        "/allocation_candidates?group_policy=none&limit=1000&member_of=in%3Aa%2Cb&member_of=%21c"
        "&resources=VCPU%3A1"
    )
    body = {"allocation_requests": [REQUEST], "provider_summaries": {HOST: {}}}
    run = Run(ask, VERSIONS, (f"GET {path}", answer(body)))
    assert run.result == ([REQUEST], {HOST: {}}, "1.39")
    assert run.versions == [None, "1.39"]


def test_the_callers_limit_replaces_the_default() -> None:
    path = "/allocation_candidates?limit=5&resources=VCPU%3A1"
    body: dict[str, Any] = {"allocation_requests": [], "provider_summaries": {}}
    query: dict[str, str | int] = {"resources": "VCPU:1", "limit": 5}
    read = (f"GET {path}", answer(body))
    run = Run(lambda claims: claims.allocation_candidates(query), VERSIONS, read)
    assert run.result == ([], {}, "1.39")


@pytest.mark.parametrize("reply", [refused(400), refused(500), lost(), UNREACHABLE])
def test_a_failed_query_of_candidates_returns_three_times_none(reply: Reply) -> None:
    run = Run(
        lambda claims: claims.allocation_candidates({"resources": "VCPU:1"}),
        VERSIONS,
        ("GET /allocation_candidates?limit=1000&resources=VCPU%3A1", reply),
    )
    assert run.result == (None, None, None)


# Answers that no placement server sends


ODD: list[Any] = [[], {}, None, {"allocations": []}, {"allocations": {HOST: {}}}]


@pytest.mark.parametrize("body", [*ODD, {"allocations": {HOST: {"resources": 1}}}])
@pytest.mark.parametrize("call", [claim, move, delete, add])
def test_an_odd_answer_to_a_read_is_an_unreadable_answer(call: Call, body: Any) -> None:
    run = Run(call, (GET_A, answer(body)))
    assert isinstance(run.error, UnreadableAnswer)
    assert "req-1" in str(run.error)


@pytest.mark.parametrize("body", [*ODD, {"allocation_requests": []}])
def test_odd_candidates_are_an_unreadable_answer(body: Any) -> None:
    run = Run(
        lambda claims: claims.allocation_candidates({"resources": "VCPU:1"}),
        VERSIONS,
        ("GET /allocation_candidates?limit=1000&resources=VCPU%3A1", answer(body)),
    )
    assert isinstance(run.error, UnreadableAnswer)


@pytest.mark.parametrize("body", [{}, {"resource_providers": [{"name": "host"}]}])
def test_odd_providers_are_an_unreadable_answer(body: Any) -> None:
    held = holds({HOST: VCPU_1})
    assert isinstance(Run(remove_tree, (GET_A, held), (TREE, answer(body))).error, UnreadableAnswer)
    assert isinstance(Run(enter, (NAMED[0], answer(body))).error, UnreadableAnswer)


# Aggregates

NAMED = (
    "GET /resource_providers?name=host+1",
    answer({"resource_providers": [provider(HOST, "host 1")]}),
)
GET_AGGREGATES = f"GET /resource_providers/{HOST}/aggregates"
PUT_AGGREGATES = f"PUT /resource_providers/{HOST}/aggregates"


def in_aggregates(*aggregates: str, generation: int = 7) -> PlacementResponse:
    return answer({"aggregates": list(aggregates), "resource_provider_generation": generation})


def enter(claims: Claims) -> None:
    claims.aggregate_add_host(ALICE, "host 1")


def leave(claims: Claims) -> None:
    claims.aggregate_remove_host(ALICE, "host 1")


@pytest.mark.parametrize(
    ("call", "before", "after"), [(enter, [BOB], [ALICE, BOB]), (leave, [ALICE, BOB], [BOB])]
)
def test_a_host_enters_and_leaves_an_aggregate_and_keeps_its_further_aggregates(
    call: Call, before: list[str], after: list[str]
) -> None:
    read = (GET_AGGREGATES, in_aggregates(*before))
    run = Run(call, NAMED, read, (PUT_AGGREGATES, in_aggregates(*after)))
    assert run.error is None
    assert run.versions == ["1.14", "1.19", "1.19"]
    assert run.body == {"aggregates": after, "resource_provider_generation": 7}


def test_a_host_in_the_right_aggregates_needs_no_write() -> None:
    assert Run(enter, NAMED, (GET_AGGREGATES, in_aggregates(ALICE))).error is None
    assert Run(leave, NAMED, (GET_AGGREGATES, in_aggregates(BOB))).error is None


def test_aggregates_are_read_again_after_a_conflict() -> None:
    run = Run(
        enter,
        NAMED,
        (GET_AGGREGATES, in_aggregates(generation=7)),
        (PUT_AGGREGATES, refused(409)),
        (GET_AGGREGATES, in_aggregates(BOB, generation=8)),
        (PUT_AGGREGATES, in_aggregates(ALICE, BOB, generation=9)),
    )
    assert run.error is None
    assert run.body == {"aggregates": [ALICE, BOB], "resource_provider_generation": 8}


def test_four_conflicts_about_aggregates_are_an_error() -> None:
    attempt = [(GET_AGGREGATES, in_aggregates()), (PUT_AGGREGATES, refused(409))]
    run = Run(enter, NAMED, *attempt * 4)
    assert isinstance(run.error, ResourceProviderUpdateConflict)
    assert run.slept == [2, 4, 6]


@pytest.mark.parametrize("reply", [lost(), refused(502), refused(504)])
@pytest.mark.parametrize("written", [True, False])
def test_aggregates_are_read_again_after_a_lost_answer(reply: Reply, written: bool) -> None:
    after = [ALICE] if written else []
    steps: list[Step] = [
        (GET_AGGREGATES, in_aggregates()),
        (PUT_AGGREGATES, reply),
        (GET_AGGREGATES, in_aggregates(*after, generation=8)),
    ]
    again: list[Step] = [] if written else [(PUT_AGGREGATES, in_aggregates(ALICE))]
    run = Run(enter, NAMED, *steps, *again)
    assert run.error is None
    assert run.body["resource_provider_generation"] == (7 if written else 8)


def test_four_lost_answers_about_aggregates_are_an_error() -> None:
    attempt: list[Step] = [(GET_AGGREGATES, in_aggregates()), (PUT_AGGREGATES, lost())]
    run = Run(enter, NAMED, *attempt * 4)
    assert isinstance(run.error, AnswerLost)


@pytest.mark.parametrize("reply", [UNREACHABLE, lost(), refused(503), refused(404)])
def test_a_lost_write_of_aggregates_that_cannot_be_found_out_about_is_lost(reply: Reply) -> None:
    loss = lost()
    written: list[Step] = [(GET_AGGREGATES, in_aggregates()), (PUT_AGGREGATES, loss)]
    run = Run(enter, NAMED, *written, (GET_AGGREGATES, reply))
    assert isinstance(run.error, WriteLost)
    assert outcome_of(run.error) is Outcome.UNKNOWN
    assert isinstance(run.error.__cause__, WriteLost)
    assert run.error.__cause__.__cause__ is loss


def test_a_failure_about_aggregates_has_the_error_of_its_request() -> None:
    unnamed = Run(enter, (NAMED[0], answer({"resource_providers": []})))
    assert type(unnamed.error) is ResourceProviderRetrievalFailed
    assert "host 1" in str(unnamed.error)
    unread = Run(enter, NAMED, (GET_AGGREGATES, refused(500)))
    assert isinstance(unread.error, ResourceProviderAggregateRetrievalFailed)
    read = (GET_AGGREGATES, in_aggregates())
    unwritten = Run(enter, NAMED, read, (PUT_AGGREGATES, refused(400)))
    assert isinstance(unwritten.error, ResourceProviderUpdateFailed)
    assert HOST in str(unwritten.error)


# Bad arguments


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda claims: claims.claim_resources(ALICE, {}, "p", "u", version="1.10"), "1.12"),
        (lambda claims: claims.claim_resources(ALICE, {}, "p", "u", version="latest"), "latest"),
        (
            lambda claims: claims.claim_resources(
                ALICE, {}, "p", "u", version="1.20", consumer_generation=1
            ),
            "1.28",
        ),
        (lambda claims: claims.put_allocations(ALICE, {"allocations": {}}), "consumer_generation"),
        (lambda claims: claims.move_allocations(ALICE, BOB, version="1.20"), "1.28"),
        (lambda claims: claims.add_resources(ALICE, {}), "at least one provider"),
        (lambda claims: claims.add_resources(ALICE, {HOST: {}}), HOST),
        (lambda claims: claims.add_resources(ALICE, {HOST: {"VCPU": 0}}), "VCPU"),
        (lambda claims: claims.remove_resources(ALICE, {HOST: VCPU_1}), "resources"),
    ],
)
def test_a_bad_argument_is_an_error_before_anything_is_sent(call: Call, words: str) -> None:
    run = Run(call)
    assert isinstance(run.error, ValueError)
    assert words in str(run.error)


def test_the_first_try_does_not_wait() -> None:
    slept: list[float] = []
    tries = iter(Retries(slept.append, lambda low, high: high))
    assert (next(tries), slept) == (0, [])
    assert (list(tries), slept) == ([1, 2, 3], [2, 4, 6])
