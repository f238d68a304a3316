"""Claims after conflicts, refusals, and without a connection."""

from __future__ import annotations

import pytest

from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationMoveFailed,
    AllocationUpdateFailed,
)
from roost.client.transport import PlacementResponse
from support.stubs.scripted_claims import (
    CONSUMER_CONFLICT,
    DONE,
    FULL,
    GET_A,
    HOST,
    PROVIDER_CONFLICT,
    PUT_A,
    READ,
    UNREACHABLE,
    VCPU_2,
    Call,
    Run,
    add,
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

# Conflicts


@with_calls(claim, put, move, add, remove_tree)
def test_a_conflict_about_a_provider_is_retried_three_times(call: Call) -> None:
    run = Run(call, *steps(call, PROVIDER_CONFLICT) * 4)
    assert run.result is False
    assert run.slept == [2, 4, 6]


@with_calls(claim, put, move, add, remove_tree)
def test_a_retry_that_succeeds_is_the_result(call: Call) -> None:
    run = Run(call, *steps(call, PROVIDER_CONFLICT), *steps(call, DONE))
    assert run.result is True
    assert run.slept == [2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (claim, AllocationUpdateFailed),
        (put, AllocationUpdateFailed),
        (move, AllocationMoveFailed),
        (delete, AllocationDeleteFailed),
    ],
)
def test_a_conflict_about_the_consumer_is_an_error(call: Call, error: type[Exception]) -> None:
    run = Run(call, *steps(call, CONSUMER_CONFLICT))
    assert isinstance(run.error, error)
    assert "expected 2 but got 1" in str(run.error)
    assert "req-1" in str(run.error)


@with_calls(add, remove_tree)
def test_an_edit_is_repeated_on_the_allocations_of_another_writer(call: Call) -> None:
    again = [(GET_A, holds({HOST: VCPU_2}, 2)), *READ[call][1:]]
    run = Run(call, *steps(call, CONSUMER_CONFLICT), *again, (PUT_A, DONE))
    assert run.result is True
    assert run.body["consumer_generation"] == 2
    expected = {HOST: {"resources": {"VCPU": 3}}} if call is add else {}
    assert run.body["allocations"] == expected


def test_an_edit_is_false_after_four_conflicts_about_the_consumer() -> None:
    run = Run(add, *steps(add, CONSUMER_CONFLICT) * 4)
    assert (run.result, run.slept) == (False, [2, 4, 6])


@pytest.mark.parametrize("text", ["allocations changed", "consumer generation conflict"])
def test_a_refused_deletion_is_not_retried(text: str) -> None:
    conflict = refused(409, text, "placement.concurrent_update")
    run = Run(delete, *steps(delete, conflict))
    assert isinstance(run.error, AllocationDeleteFailed)


# Other refusals


@pytest.mark.parametrize("reply", [FULL, refused(400), PlacementResponse(409, content=b"?")])
@with_calls(claim, put, move)
def test_a_refusal_without_conflict_is_false_at_once(call: Call, reply: PlacementResponse) -> None:
    assert Run(call, *steps(call, reply)).result is False


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (delete, AllocationDeleteFailed),
        (delete_by_force, AllocationDeleteFailed),
        (add, AllocationUpdateFailed),
        (remove_tree, AllocationUpdateFailed),
    ],
)
def test_a_refused_deletion_or_edit_is_an_error(call: Call, error: type[Exception]) -> None:
    run = Run(call, *steps(call, FULL))
    assert isinstance(run.error, error)
    assert "capacity" in str(run.error)


def test_a_deletion_without_force_that_finds_nothing_is_an_error() -> None:
    run = Run(delete, *steps(delete, refused(404)))
    assert isinstance(run.error, AllocationDeleteFailed)


def test_a_consumer_that_cannot_be_read_is_not_written() -> None:
    assert Run(claim, (GET_A, refused(503))).result is False
    assert Run(move, (GET_A, refused(503))).result is False
    assert isinstance(Run(delete, (GET_A, refused(503))).error, AllocationDeleteFailed)
    assert isinstance(Run(add, (GET_A, refused(503))).error, AllocationUpdateFailed)


# No connection


@with_calls(claim, move, delete, delete_by_force)
def test_the_result_is_false_without_connection(call: Call) -> None:
    assert Run(call, *steps(call, UNREACHABLE)).result is False


@with_calls(claim, move, delete)
def test_a_lost_answer_to_a_read_is_false(call: Call) -> None:
    assert Run(call, (GET_A, lost())).result is False
    assert Run(call, (GET_A, UNREACHABLE)).result is False


@with_calls(put, add, remove_tree)
def test_a_put_or_an_edit_is_an_error_without_connection(call: Call) -> None:
    assert Run(call, *steps(call, UNREACHABLE)).error is UNREACHABLE
