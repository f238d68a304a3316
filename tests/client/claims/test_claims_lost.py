"""Claims whose answer was lost: never claimed twice, never called refused if they are done."""

from __future__ import annotations

import pytest

from roost.client.claims import Claims
from roost.client.errors import AnswerLost, WriteLost
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementResponse
from support.stubs.scripted_claims import (
    ALICE,
    CONSUMER_CONFLICT,
    DELETE_A,
    DONE,
    FULL,
    GET_A,
    GET_B,
    HOST,
    NOTHING,
    OTHER,
    OWNER,
    POST,
    PROVIDER_CONFLICT,
    PUT_A,
    READ,
    UNREACHABLE,
    VCPU_1,
    VCPU_2,
    WRITE,
    Call,
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
    put,
    refused,
    remove_tree,
    steps,
    with_calls,
)

AFTER: dict[Call, list[Step]] = {
    claim: [(GET_A, holds({HOST: VCPU_1}))],
    put: [(GET_A, holds({HOST: VCPU_1}, 2))],
    move: [(GET_A, NOTHING), (GET_B, holds({HOST: VCPU_1}))],
    delete: [(GET_A, NOTHING)],
    delete_by_force: [(GET_A, NOTHING)],
    add: [(GET_A, holds({HOST: VCPU_2}, 2))],
    remove_tree: [(GET_A, NOTHING)],
}
BEFORE: dict[Call, list[Step]] = {
    **READ,
    put: [(GET_A, holds({HOST: VCPU_2}))],
    delete_by_force: READ[delete],
    remove_tree: READ[delete],
}


@with_calls(*AFTER)
def test_a_lost_write_that_is_done_is_not_sent_again(call: Call) -> None:
    run = Run(call, *steps(call, lost()), *AFTER[call])
    assert run.result is True


@with_calls(*AFTER)
def test_a_lost_write_that_is_not_done_is_sent_again_unchanged(call: Call) -> None:
    again = [*BEFORE[call], (WRITE[call], DONE)]
    run = Run(call, *steps(call, lost()), *again)
    assert run.result is True
    first, second = [request for request in run.sent if request.method != "GET"]
    assert first == second


@with_calls(claim, put, move, add, remove_tree)
def test_a_write_is_done_if_its_first_copy_arrives_before_the_second(call: Call) -> None:
    again = [*BEFORE[call], (WRITE[call], CONSUMER_CONFLICT)]
    run = Run(call, *steps(call, lost()), *again, *AFTER[call])
    assert run.result is True


@with_calls(claim, put, move, delete, add)
def test_a_lost_write_is_not_sent_again_once_another_writer_has_changed_the_consumer(
    call: Call,
) -> None:
    """That writer may have added to what was written, so the write may stand."""
    loss = lost()
    changed = [(GET_A, holds({OTHER: VCPU_1}, 9))]
    if call is move:
        changed.append((GET_B, NOTHING))
    run = Run(call, *steps(call, loss), *changed)
    assert isinstance(run.error, WriteLost)
    assert "another writer" in str(run.error)
    assert outcome_of(run.error) is Outcome.UNKNOWN
    assert run.error.__cause__ is not None
    assert run.error.__cause__.__cause__ is loss


def test_the_same_resources_for_another_project_are_not_the_claim() -> None:
    stranger = answer(
        {
            "allocations": {HOST: VCPU_1},
            "project_id": "another",
            "user_id": "user",
            "consumer_generation": 1,
        }
    )
    run = Run(claim, *steps(claim, lost()), (GET_A, stranger))
    assert isinstance(run.error, WriteLost)


def test_a_provider_in_another_spelling_is_the_same_provider() -> None:
    def shouting_put(claims: Claims) -> bool:
        body = {"allocations": {HOST.upper(): VCPU_1}, **OWNER, "consumer_generation": 1}
        return claims.put_allocations(ALICE, body)

    assert Run(shouting_put, *steps(put, lost()), *AFTER[put]).result is True


def test_a_refusal_after_a_loss_is_an_error_and_not_false() -> None:
    """The server might still carry out the first copy, for instance once there is capacity."""
    again = [(GET_A, NOTHING), (PUT_A, FULL), (GET_A, NOTHING)]
    run = Run(claim, *steps(claim, lost()), *again)
    assert isinstance(run.error, AnswerLost)
    assert "capacity" in str(run.error)


def test_a_claim_that_is_done_after_a_loss_and_a_refusal_is_true() -> None:
    again = [(GET_A, NOTHING), (PUT_A, FULL), (GET_A, holds({HOST: VCPU_1}))]
    assert Run(claim, *steps(claim, lost()), *again).result is True


def test_a_write_that_is_lost_in_all_tries_is_an_error_and_not_false() -> None:
    loss = lost()
    again: list[Step] = [(GET_A, NOTHING), (PUT_A, lost())] * 3
    run = Run(claim, *steps(claim, loss), *again, (GET_A, NOTHING))
    assert isinstance(run.error, WriteLost)
    assert run.error.__cause__ is loss
    assert run.slept == [2, 4, 6]


def test_an_unreachable_server_is_asked_again_after_a_loss() -> None:
    gone: list[Step] = [
        (GET_A, UNREACHABLE),
        (GET_A, refused(503)),
        (GET_A, PlacementResponse(200, content=b"<html>")),
    ]
    run = Run(claim, *steps(claim, lost()), *gone, (GET_A, holds({HOST: VCPU_1})))
    assert run.result is True
    unreachable: list[Step] = [(GET_A, UNREACHABLE)] * 4
    run = Run(claim, *steps(claim, lost()), *unreachable)
    assert isinstance(run.error, AnswerLost)


def test_an_odd_answer_after_the_loss_settles_nothing() -> None:
    odd = (GET_A, answer({"allocations": {HOST: {}}}))
    run = Run(claim, *steps(claim, lost()), odd, (GET_A, holds({HOST: VCPU_1})))
    assert run.result is True


def test_conflicts_and_losses_share_the_tries() -> None:
    run = Run(
        claim,
        *steps(claim, PROVIDER_CONFLICT) * 3,
        *steps(claim, lost()),
        (GET_A, holds({HOST: VCPU_1})),
    )
    assert (run.result, run.slept) == (True, [2, 4, 6])


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@with_calls(*AFTER)
def test_a_server_error_is_a_lost_answer(call: Call, status: int) -> None:
    run = Run(call, *steps(call, PlacementResponse(status)), *AFTER[call])
    assert run.result is True


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_that_keeps_failing_leaves_the_outcome_unknown(status: int) -> None:
    failed = refused(status, "may have been carried out or not")
    again: list[Step] = [(GET_A, NOTHING), (PUT_A, failed)] * 3
    run = Run(claim, *steps(claim, failed), *again, (GET_A, NOTHING))
    assert isinstance(run.error, WriteLost)
    assert run.error.status == status


def test_a_refusal_after_a_server_error_is_not_told_as_a_refusal() -> None:
    run = Run(claim, *steps(claim, refused(503)), (GET_A, NOTHING), (PUT_A, FULL), (GET_A, NOTHING))
    assert isinstance(run.error, WriteLost)


def test_a_lost_claim_before_1_28_is_compared_with_the_generation_read() -> None:
    def old_claim(claims: Claims) -> bool:
        request = {"allocations": {HOST: VCPU_1}}
        return claims.claim_resources(ALICE, request, "project", "user", version="1.27")

    run = Run(old_claim, (GET_A, NOTHING), (PUT_A, lost()), (GET_A, holds({OTHER: VCPU_1})))
    assert isinstance(run.error, WriteLost)


def test_a_move_that_shows_in_one_consumer_only_is_sent_again() -> None:
    half = [(GET_A, holds({HOST: VCPU_1})), (GET_B, holds({HOST: VCPU_1}))]
    again = [*half, (POST, CONSUMER_CONFLICT), *AFTER[move]]
    assert Run(move, *steps(move, lost()), *again).result is True


def test_a_forced_deletion_is_done_if_its_second_copy_finds_nothing() -> None:
    again = [*BEFORE[delete_by_force], (DELETE_A, refused(404)), *AFTER[delete_by_force]]
    run = Run(delete_by_force, *steps(delete_by_force, lost()), *again)
    assert run.result is True


def test_the_transport_may_repeat_only_reads() -> None:
    for call in AFTER:
        run = Run(call, *steps(call, DONE))
        assert [request.repeatable for request in run.sent] == [
            request.method == "GET" for request in run.sent
        ]
